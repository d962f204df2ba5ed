"""Reading the events of a segment from an offset, without waiting for more to be written.

What a retention policy truncated away before it was read is gone: reading goes on behind it and says how much was
skipped. Concurrency: `read_piece` has no state; a `Reads` belongs to one task.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping
from functools import partial

import msgspec

from at_least_once.patience import patiently
from sluice_client import SegmentMissing, SegmentStore, SegmentTruncated, StoredEvent, split_events

_LONGEST_WAIT_S = 0.25
_log = logging.getLogger(__name__)


class Piece(msgspec.Struct, frozen=True):
    """What was read of a segment: events one after the other, the next one would begin at `end`.

    `finished`: the segment is sealed and nothing follows.
    """

    segment: str
    events: list[StoredEvent]
    end: int
    finished: bool = False


async def read_piece(store: SegmentStore, segment: str, offset: int, length: int, patience_s: float) -> Piece:
    """The whole events in the next `length` bytes, one at least if there is one, however large.

    Raises SegmentStoreError when the patience is over, MalformedEvents.
    """
    try:
        found = await patiently(lambda: store.read_segment(segment, offset, length), patience_s)
        data, ended = found.data, found.end_of_segment
        whole = split_events(data, offset)
        while not whole.events and len(data) < whole.next_bytes and not ended:
            rest = partial(store.read_segment, segment, offset + len(data), whole.next_bytes - len(data))
            more = await patiently(rest, patience_s)
            if not more.data:
                break
            data, ended = data + more.data, more.end_of_segment
            whole = split_events(data, offset)
    except SegmentTruncated as truncated:
        start = int(getattr(truncated.reply, "start_offset", offset))
        _log.warning("%s was truncated: skipped the %d bytes before offset %d", segment, start - offset, start)
        return Piece(segment, [], start)
    except SegmentMissing:
        _log.warning("%s was deleted: skipped what followed offset %d", segment, offset)
        return Piece(segment, [], offset, finished=True)
    return Piece(segment, whole.events, whole.end, finished=ended and whole.end == offset + len(data))


class Reads:
    """The next pieces of several segments, read side by side, so that one that takes long delays no other.

    A piece is kept until it is taken. Of those that are ready the one that was begun first comes first, so that
    segments take turns.
    """

    def __init__(self, store: SegmentStore, length: int, patience_s: float) -> None:
        self._store = store
        self._length = length
        self._patience_s = patience_s
        self._begun: dict[str, asyncio.Task[Piece]] = {}

    async def ready(self, positions: Mapping[str, int]) -> list[str]:
        """The segments that can be taken; begins to read the others from their positions, and forgets all but these.

        Waits for what it begins, but not for long: what takes longer is ready at a later call.
        """
        await self._forget(self._begun.keys() - positions.keys())
        missing = positions.keys() - self._begun.keys()
        for segment, offset in positions.items():
            if segment in missing:
                read = read_piece(self._store, segment, offset, self._length, self._patience_s)
                self._begun[segment] = asyncio.create_task(read, name=f"read {segment}")
        if missing:
            await asyncio.wait([self._begun[segment] for segment in missing], timeout=_LONGEST_WAIT_S)
        return [segment for segment, read in self._begun.items() if read.done()]

    def take(self, segment: str) -> Piece:
        """The piece of a segment that is ready. Raises as `read_piece` does."""
        return self._begun.pop(segment).result()

    async def close(self) -> None:
        """Ends what was begun."""
        await self._forget(list(self._begun))

    async def _forget(self, segments: Collection[str]) -> None:
        reads = [self._begun.pop(segment) for segment in segments]
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
