"""Lengths of transactions' segments, requested when their commit is, while the record of that is on its way.

A length above 0 is true whenever it was read, and what looks empty is sealed and looked at once more (`merging.py`): so
it does not matter that these are a little older than the batch. An answer is used once; a later attempt asks anew.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from sluice.pravega.errors import SegmentMissing, SegmentStoreError
from sluice.pravega.store import SegmentInfo, SegmentStore

MAX_UNUSED = 10_000
"""So many answers wait to be used; those of commits that were refused, or are carried out elsewhere, make room."""


class EarlyLengths:
    """Belongs to the event loop."""

    def __init__(self, store: SegmentStore) -> None:
        self._store = store
        self._requested: dict[str, asyncio.Task[SegmentInfo]] = {}

    def request(self, names: Iterable[str]) -> None:
        """Request the lengths of segments that are about to be merged."""
        for name in names:
            if name not in self._requested:
                requested = self._requested[name] = asyncio.ensure_future(self._store.segment_info(name))
                requested.add_done_callback(_retrieve)
        while len(self._requested) > MAX_UNUSED:
            self._requested.pop(next(iter(self._requested))).cancel()

    async def info(self, name: str) -> SegmentInfo | None:
        """What was answered, or is now if there is no answer; None if the segment is missing now."""
        requested = self._requested.pop(name, None)
        if requested is not None:
            with suppress(SegmentStoreError):
                return await requested
        return await info(self._store, name)


async def info(store: SegmentStore, name: str) -> SegmentInfo | None:
    """None if the segment is missing."""
    try:
        return await store.segment_info(name)
    except SegmentMissing:
        return None


def _retrieve(requested: "asyncio.Task[SegmentInfo]") -> None:
    """Retrieve a failure that no one may be left to receive."""
    if not requested.cancelled():
        requested.exception()
