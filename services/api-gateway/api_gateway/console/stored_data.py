"""Reads for people what streams and tables hold: the last events of segments or those from a cut on, and entries.

A segment can be read only from where an event begins, and has nothing that leads backwards. An event begins at its
start, and where it ended whenever its length was measured. So its last events are found like this: it is read forwards
from the youngest such place that lies `NEAR_BYTES` before the end, or, if those are too few events, from the oldest
from which the end can be reached, and the last events of that are kept. If there is no such place, `find_event` looks
for one in the last bytes; if there is none, nothing is shown, and the answer says so. Pravega's LocateOffset would
know; segment stores of its releases close the connection on it.

All of it is bounded: segments, reads, time, events, and how much of an event is kept. What goes wrong with one segment
is said of that segment. Pieces are small, for they are taken apart on the event loop, to which this belongs.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

import msgspec

from api_gateway.edge.errors import RequestTimeoutError
from api_gateway.edge.shares import Shares
from sluice.pravega.errors import SegmentMissing, SegmentStoreError
from sluice.pravega.event_frames import HEADER_BYTES, MalformedEvents, find_event, split_events
from sluice.pravega.store import SegmentInfo, SegmentStore
from sluice.pravega.wire.fields import NOT_EXISTS, TableEntry

T = TypeVar("T")

NEAR_BYTES = 128 * 1024
READ_BYTES = 64 * 1024
MAX_READS = 64
"""Of one segment in one call, and more bytes where events are large, for of those the beginning is read."""
REACH_BYTES = MAX_READS * READ_BYTES // 2
"""So far before the end its last events are looked for: twice that is read if reads come back half full."""
SEARCHED_BYTES = 1024 * 1024
"""So far before the end a beginning is looked for where none is known."""
MAX_VALUE_BYTES = 16 * 1024
"""What is kept of an event or a value."""
MAX_SEGMENTS = 8
"""Of which events are read in one call."""
MAX_PARTITIONS = 16
"""In which entries are looked for in one call."""
READING_S = 5.0
MAX_CALLS = 16


class WantedSegment(msgspec.Struct, frozen=True):
    """A segment of which events are wanted: those from an offset on, or else the last ones.

    `known` are offsets at which events begin.
    """

    id: int
    name: str
    offset: int | None = None
    known: tuple[int, ...] = ()


class ReadEvent(msgspec.Struct, frozen=True):
    """An event and the offsets where it and the next one begin; `data` has MAX_VALUE_BYTES of it at most."""

    start: int
    end: int
    data: bytes

    @property
    def size(self) -> int:
        """How many bytes the event has."""
        return self.end - self.start - HEADER_BYTES


class SegmentEvents(msgspec.Struct):
    """What was found in a segment that holds bytes from `start_offset` up to `length`.

    `next` is the offset where reading may go on, None if there was none to begin at. `problem` says why there is no
    more.
    """

    id: int
    start_offset: int | None = None
    length: int | None = None
    next: int | None = None
    events: list[ReadEvent] = []
    problem: str = ""


class Position(msgspec.Struct, frozen=True):
    """Where a page of entries begins: in which partition, and at which key or behind it."""

    partition: int = 0
    key: bytes = b""


class FoundEntries(msgspec.Struct):
    """Entries, each with its partition's place among all, where the next page begins, and what went wrong by place."""

    entries: list[tuple[int, TableEntry]] = []
    next: Position | None = None
    problems: dict[int, str] = {}


class StoredData:
    """`is_shown`: whether operators may look at it here."""

    def __init__(self, store: SegmentStore, *, is_shown: bool) -> None:
        self.is_shown = is_shown
        self._store = store
        self._shares = Shares(MAX_CALLS, "reads of events and entries")

    async def events(self, wanted: Sequence[WantedSegment], count: int) -> list[SegmentEvents]:
        """Of each segment `count` events at most. Raises OverloadedError, QuotaExceededError."""
        found = [SegmentEvents(one.id) for one in wanted]
        with self._shares.taken():
            await asyncio.gather(*(self._read(*pair, count) for pair in zip(wanted, found, strict=True)))
        return found

    async def entries(self, partitions: Sequence[str], begin: Position, count: int) -> FoundEntries:
        """About `count` entries. Raises OverloadedError, QuotaExceededError."""
        found = FoundEntries()
        at = begin
        with self._shares.taken():
            for _ in range(MAX_PARTITIONS):
                if at.partition >= len(partitions) or len(found.entries) >= count:
                    break
                wanted, behind = count - len(found.entries), None
                try:
                    page = await _in_time(self._store.read_table_entries(partitions[at.partition], wanted, at.key))
                except (SegmentStoreError, RequestTimeoutError) as error:
                    found.problems[at.partition] = f"{error}"
                else:
                    found.entries += [(at.partition, entry) for entry in page]
                    behind = _behind(page[-1].key.key) if page else None
                at = Position(at.partition + 1) if behind is None else Position(at.partition, behind)
        found.next = at if at.partition < len(partitions) else None
        return found

    async def entry(self, partition: str, key: bytes) -> TableEntry | None:
        """The entry of a key, if there is one.

        Raises SegmentStoreError, RequestTimeoutError, OverloadedError, QuotaExceededError.
        """
        with self._shares.taken():
            [entry] = await _in_time(self._store.read_table(partition, [key]))
        return None if entry.key.version == NOT_EXISTS else entry

    async def _read(self, wanted: WantedSegment, found: SegmentEvents, count: int) -> None:
        """Fill in what is found."""
        try:
            async with asyncio.timeout(READING_S):
                info = await self._store.segment_info(wanted.name)
                found.start_offset, found.length = info.start_offset, info.length
                if wanted.offset is not None:
                    found.next = max(wanted.offset, info.start_offset)
                    await self._read_on(wanted.name, found, info.length, count)
                else:
                    await self._read_last(wanted, found, info, count)
        except TimeoutError:
            found.problem = f"no answer within {READING_S:g} s"
        except SegmentMissing:
            found.problem = "its segment store does not have it"
        except SegmentStoreError as error:
            found.problem = f"its segment store does not answer: {error}"
        except MalformedEvents as error:
            found.problem = f"what stands at offset {error.offset} is no event: {error.reason}"

    async def _read_last(self, wanted: WantedSegment, found: SegmentEvents, info: SegmentInfo, count: int) -> None:
        begins = {info.start_offset, *(at for at in wanted.known if info.start_offset < at < info.length)}
        reached = [at for at in begins if info.length - at <= REACH_BYTES]
        if not reached:
            place = await self._event_from(wanted.name, info.length - SEARCHED_BYTES, info.length)
            if place is None:
                found.problem = "where an event begins is not known: read from a cut"
                return
            reached = [place]
        near = [at for at in reached if info.length - at >= NEAR_BYTES]
        for begin in sorted({max(near, default=min(reached)), min(reached)}, reverse=True):
            found.next, found.events = begin, []
            await self._read_on(wanted.name, found, info.length, count, keeps_last=True)
            if len(found.events) >= count:
                break
        if found.next is not None and found.next < info.length:
            found.problem = f"its last events lie behind what is read at once; read on from {found.next}"

    async def _event_from(self, name: str, begin: int, length: int) -> int | None:
        """Where an event begins, at `begin` or behind it; None if that is not known."""
        pieces = bytearray()
        while begin + len(pieces) < length:
            at = begin + len(pieces)
            piece = await self._store.read_segment(name, at, min(READ_BYTES, length - at))
            if not piece.data:
                return None
            pieces += piece.data
        # Not on the event loop: of zeros it takes some tenths of a second.
        place = await asyncio.to_thread(find_event, bytes(pieces))
        return begin + place if place is not None else None

    async def _read_on(
        self, name: str, found: SegmentEvents, length: int, count: int, *, keeps_last: bool = False
    ) -> None:
        """Read forwards from `next`: the first `count` events, or all of which the last are kept."""
        assert found.next is not None, "a place to begin at was found"
        pending = b""
        for _ in range(MAX_READS):
            at = found.next + len(pending)
            if not keeps_last and len(found.events) >= count:
                break
            if at >= length:
                _check_rest(pending, found.next)
                break
            piece = await self._store.read_segment(name, at, min(READ_BYTES, length - at))
            if not piece.data:
                break
            pending += piece.data
            split = split_events(pending, found.next)
            events = [ReadEvent(start, end, data[:MAX_VALUE_BYTES]) for data, start, end in split.events]
            pending, begin = pending[split.end - found.next :], split.end
            if begin + split.next_bytes > length:
                raise MalformedEvents(begin, "it would end behind the segment")
            if split.next_bytes > READ_BYTES and len(pending) >= HEADER_BYTES + MAX_VALUE_BYTES:
                # Of a large event the beginning will do.
                kept = pending[HEADER_BYTES : HEADER_BYTES + MAX_VALUE_BYTES]
                events.append(ReadEvent(begin, begin + split.next_bytes, kept))
                pending, begin = b"", begin + split.next_bytes
            all_events = found.events + events
            found.events = all_events[-count:] if keeps_last else all_events[:count]
            found.next = begin if keeps_last or len(all_events) <= count else found.events[-1].end


def _check_rest(rest: bytes, offset: int) -> None:
    """Raises MalformedEvents if something is left behind the last event."""
    if rest:
        split_events(rest, offset)
        raise MalformedEvents(offset, f"{len(rest)} bytes")


async def _in_time(call: Awaitable[T]) -> T:
    """Raises RequestTimeoutError, and what the call raises."""
    try:
        async with asyncio.timeout(READING_S):
            return await call
    except TimeoutError as error:
        raise RequestTimeoutError(f"the segment store did not answer within {READING_S:g} s") from error


def _behind(key: bytes) -> bytes | None:
    """The next key of the same length, None after the last one."""
    following = int.from_bytes(key) + 1
    return None if following >> 8 * len(key) else following.to_bytes(len(key))
