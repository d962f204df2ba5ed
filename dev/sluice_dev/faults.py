"""Faults on purpose: a segment store that is slow, hangs up, or moves its containers, to test programs against.

Half of the requests that fail have had their effect: the caller cannot know. While a container is moved, requests on
its segments are refused (WrongHost); a read that waits at the end of a segment goes on waiting. Belongs to the event
loop.
"""

import asyncio
from collections.abc import Awaitable
from random import Random

from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import ContainerAway, Moment
from sluice.pravega.routing import container_of
from sluice_dev.options import DevOptions


class Faults:
    """What `failing`, `slow_s` and `moving_s` of the options ask for, of a store with so many containers."""

    def __init__(self, random: Random, containers: int, options: DevOptions) -> None:
        self._random = random
        self._containers = containers
        self._options = options
        self._away: int | None = None
        self._until = 0.0

    def __call__(self, moment: Moment, request: str, segment: str) -> Awaitable[None] | None:
        """See Fault."""
        if self._random.random() < self._options.failing / 2:
            raise ConnectionFailure(Failure.CLOSED_BY_PEER, f"{moment} {request}, on purpose")
        if moment == "after":
            return None
        if self._options.moving_s and self._container_away() == container_of(segment, self._containers):
            raise ContainerAway
        if self._options.slow_s:
            return asyncio.sleep(self._random.uniform(0, self._options.slow_s))
        return None

    def _container_away(self) -> int | None:
        """All are there for a while, then one of them is away for a while."""
        now = asyncio.get_running_loop().time()
        if now >= self._until:
            self._away = self._random.randrange(self._containers) if self._away is None else None
            self._until = now + self._random.uniform(0, self._options.moving_s)
        return self._away
