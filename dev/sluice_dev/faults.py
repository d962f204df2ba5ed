"""Faults on purpose: a segment store that is slow, or hangs up, so that programs can be tested against one.

Half of the requests that fail have had their effect: the caller cannot know.
"""

import asyncio
from collections.abc import Awaitable
from random import Random

from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import Moment


class Faults:
    """`failing` is the share of requests at which the store hangs up, `slow_s` the longest that one takes."""

    def __init__(self, random: Random, failing: float, slow_s: float) -> None:
        self._random = random
        self._failing = failing
        self._slow_s = slow_s

    def __call__(self, moment: Moment, request: str, _segment: str) -> Awaitable[None] | None:
        """See Fault."""
        if self._random.random() < self._failing / 2:
            raise ConnectionFailure(Failure.CLOSED_BY_PEER, f"{moment} {request}, on purpose")
        if self._slow_s and moment == "before":
            return asyncio.sleep(self._random.uniform(0, self._slow_s))
        return None
