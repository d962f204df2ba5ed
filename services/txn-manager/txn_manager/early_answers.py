"""What segment stores know of transactions' segments, requested when their commit is, while the record of that is on
its way.

A length above 0 is true whenever it was read, and what looks empty is sealed and looked at once more (`merging.py`); a
time of creation changes only by a merge (`aged_merge.py`). So it does not matter that these are a little older than the
batch. An answer is used once; a later attempt asks anew.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from sluice.pravega.errors import SegmentMissing, SegmentStoreError

T = TypeVar("T")
Question = Callable[[str], Coroutine[Any, Any, T]]
"""What is asked of a segment, by its name."""

MAX_UNUSED = 10_000
"""So many answers wait to be used; those of commits that were refused, or are carried out elsewhere, make room."""


class EarlyAnswers(Generic[T]):
    """Belongs to the event loop."""

    def __init__(self, question: Question[T]) -> None:
        self._question = question
        self._requested: dict[str, asyncio.Task[T]] = {}

    def request(self, names: Iterable[str]) -> None:
        """Ask about segments that are about to be merged."""
        for name in names:
            if name not in self._requested:
                requested = self._requested[name] = asyncio.ensure_future(self._question(name))
                requested.add_done_callback(_retrieve)
        while len(self._requested) > MAX_UNUSED:
            self._requested.pop(next(iter(self._requested))).cancel()

    async def answer(self, name: str) -> T | None:
        """What was answered, or is now if there is no answer; None if the segment is missing now."""
        requested = self._requested.pop(name, None)
        if requested is not None:
            with suppress(SegmentStoreError):
                return await requested
        return await unless_missing(self._question, name)


async def unless_missing(question: Question[T], name: str) -> T | None:
    """None if the segment is missing."""
    try:
        return await question(name)
    except SegmentMissing:
        return None


def _retrieve(requested: "asyncio.Task[Any]") -> None:
    """Retrieve a failure that no one may be left to receive."""
    if not requested.cancelled():
        requested.exception()
