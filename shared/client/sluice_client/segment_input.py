"""The events of one segment from an offset on, read ahead of the caller, to the end of the segment.

One read at a time is under way; what came waits in a bounded buffer, and is cut into events when the caller takes them.
At the end of an unsealed segment the segment store holds the read until there is more. Only whole events come out,
however large: one that is larger than the buffer is the only one in it. What was truncated away before it was read is
skipped, which the caller gets as `Skipped`.

Concurrency: a task of the input's own reads; taking does not wait, so that a caller which is cancelled while it waits
has lost nothing. Inputs of one reader share the event that wakes it.
"""

import asyncio
import struct
from types import TracebackType
from typing import Self

import msgspec

from sluice.pravega import SegmentData, SegmentMissing, SegmentStore, SegmentTruncated, TryLater
from sluice.pravega.event_frames import HEADER_BYTES, LARGEST_EVENT_BYTES, split_events
from sluice_client.attempts import Patience, patiently
from sluice_client.errors import Unavailable
from sluice_client.groups.encoding import EventPointer

LARGEST_READ_BYTES = 2 * 1024 * 1024
"""As much as a segment store gives at most."""
_TAKEN_EVENTS = 200
"""How many events are taken at most at once: then other segments have their turn."""
_TAIL_WAIT_S = 3600.0
"""How long a read is held at the end of a segment. A connection that breaks is found out much sooner."""
_EVENT_WAIT_S = 30.0
"""How long the rest of an event may take to come: it was appended as a whole."""
_DEFAULT_PATIENCE = Patience()
_header = struct.Struct(">Q").unpack_from
"""The header of an event as one number: its type is 0, so this is the length. That of anything else is larger."""


class Event(msgspec.Struct, frozen=True, gc=False):
    """An event, and where it lies."""

    data: bytes
    segment: str
    start: int
    end: int

    @property
    def pointer(self) -> EventPointer:
        """By which the event can be read once more, as long as it is not truncated away."""
        return EventPointer(self.segment, self.start, self.end - self.start)


class Skipped(msgspec.Struct, frozen=True):
    """What lay between two offsets was truncated before it was read; `end` None: the whole segment is gone."""

    segment: str
    start: int
    end: int | None


class SegmentInput:
    """Reads `segment` from `offset` on, up to `limit` if there is one: an event that ends behind it does not count.

    An async context manager, which ends the reading. `woken` is set whenever the input may have become ready.
    """

    def __init__(
        self,
        store: SegmentStore,
        segment: str,
        offset: int = 0,
        *,
        limit: int | None = None,
        patience: Patience = _DEFAULT_PATIENCE,
        woken: asyncio.Event | None = None,
        read_bytes: int = LARGEST_READ_BYTES,
    ) -> None:
        self.segment = segment
        self.offset = offset
        """Where the next event begins that the caller has not taken."""
        self.at_limit = False
        """Whether the end is that of `limit`, and not that of the segment."""
        self.read_bytes = read_bytes
        """What one read asks for. With as much waiting no read is begun; so there is up to twice as much."""
        self._store = store
        self._limit = limit
        self._patience = patience
        self._woken = woken or asyncio.Event()
        self._room = asyncio.Event()
        self._read_to = offset
        self._data = b""
        self._at = 0
        self._pieces: list[bytes] = []
        self._waiting_bytes = 0
        self._then: Skipped | Exception | None = None
        self._finished = False
        self._task = asyncio.create_task(self._fill(), name=f"read {segment}")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the reading; what was read ahead can still be taken."""
        self.stop()
        await asyncio.gather(self._task, return_exceptions=True)

    def stop(self) -> None:
        """The same without waiting for the end."""
        self._task.cancel()

    @property
    def ended(self) -> bool:
        """All was taken, and nothing more will come: the segment is sealed or gone, or the limit is reached."""
        return self._finished and self._then is None and not self._has_event

    @property
    def ready(self) -> bool:
        """Whether there is something to take, or the end was reached."""
        return self._finished or self._then is not None or self._has_event

    def take(self) -> list[Event] | Skipped | None:
        """The next events, or what was skipped before them; None if there is nothing at the moment.

        Raises MalformedEvents, SegmentStoreError, Unavailable when the patience is over. After an error that was raised
        reading goes on where it stood.
        """
        if self._has_event:
            return self._cut()
        found, self._then = self._then, None
        if found is None:
            return None
        self._room.set()
        if isinstance(found, Exception):
            raise found
        # What had been read of the next event is gone with the rest of it.
        skipped = Skipped(self.segment, self.offset, found.end)
        self._data, self._at, self._pieces, self._waiting_bytes = b"", 0, [], 0
        if found.end is not None:
            self.offset = self._read_to = found.end
        return skipped

    async def next(self) -> list[Event] | Skipped | None:
        """Waits for the next events, or what was skipped before them; None at the end. For a caller of one input."""
        while not self.ready:
            self._woken.clear()
            await self._woken.wait()
        return self.take()

    # What waits: `_data` from `_at` on, which begins with an event, and the pieces behind it

    @property
    def _next_bytes(self) -> int:
        """What the next event takes; its header alone while that is not there, or is none."""
        if len(self._data) - self._at < HEADER_BYTES:
            return HEADER_BYTES
        length: int = _header(self._data, self._at)[0]
        return HEADER_BYTES + length if length <= LARGEST_EVENT_BYTES else HEADER_BYTES

    @property
    def _has_event(self) -> bool:
        next_bytes = self._next_bytes
        if self._waiting_bytes < next_bytes:
            return False
        return self._limit is None or self.offset + next_bytes <= self._limit

    def _add(self, data: bytes) -> None:
        self._pieces.append(data)
        self._waiting_bytes += len(data)
        self._read_to += len(data)
        self._join()

    def _join(self) -> None:
        """Has `_data` begin with a whole event if there is one: a large event is put together once."""
        if self._pieces and self._waiting_bytes >= self._next_bytes > len(self._data) - self._at:
            self._data, self._at = b"".join([self._data[self._at :], *self._pieces]), 0
            self._pieces = []
            self._join()

    def _cut(self) -> list[Event]:
        data, at, segment = self._data, self._at, self.segment
        begin = self.offset - at
        size = len(data) if self._limit is None else min(len(data), self._limit - begin)
        events: list[Event] = []
        for _ in range(_TAKEN_EVENTS):
            if at + HEADER_BYTES > size:
                break
            end = at + HEADER_BYTES + _header(data, at)[0]
            if end > size:
                break
            events.append(Event(data[at + HEADER_BYTES : end], segment, begin + at, begin + end))
            at = end
        if not events:
            # It raises MalformedEvents: a whole event is there, if it is one.
            split_events(data[at : at + HEADER_BYTES], begin + at)
        self._waiting_bytes -= at - self._at
        self.offset, self._at = begin + at, at
        self._join()
        self._room.set()
        return events

    # Reading

    async def _fill(self) -> None:
        while not self._finished:
            try:
                await self._read()
            except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets it
                self._then = error
            if self.ready:
                self._woken.set()
            while self._then is not None or (self._waiting_bytes >= self.read_bytes and self._has_event):
                self._room.clear()
                await self._room.wait()

    async def _read(self) -> None:
        try:
            data = await self._piece()
        except (SegmentTruncated, SegmentMissing):
            await self._skip()
            return
        self._add(data.data)
        if self._limit is not None and self._read_to >= self._limit:
            # It may be the end of the segment as well: then it is that.
            self.at_limit = self._read_to > self._limit or not data.end_of_segment
        self._finished = self.at_limit or data.end_of_segment

    async def _piece(self) -> SegmentData:
        """The next bytes. Raises Unavailable when the patience is over.

        It begins with the first failure, and anew with one after a reply, or after a read that was held for longer.
        """
        if self._limit is not None and self._read_to >= self._limit:
            return SegmentData(self._read_to, b"", False)
        length = max(self.read_bytes, self._next_bytes - self._waiting_bytes)
        wait_s = _EVENT_WAIT_S if self._waiting_bytes and not self._has_event else _TAIL_WAIT_S
        clock, end = asyncio.get_running_loop().time, 0.0
        for pause in self._patience.pauses():
            began = clock()
            try:
                data = await self._store.read_or_wait(self.segment, self._read_to, length, wait_s)
                if data.data or data.end_of_segment:
                    return data
                end = 0.0
            except TryLater as error:
                if not end or clock() - began > self._patience.deadline_s:
                    end = clock() + self._patience.deadline_s
                if clock() >= end:
                    raise Unavailable(f"{self.segment}; last answer: {error}") from error
            await asyncio.sleep(pause)
        raise AssertionError("the pauses never end")

    async def _skip(self) -> None:
        """Goes on where the segment begins now; a store that says so by mistake is read again from where it was."""
        try:
            info = await patiently(lambda: self._store.segment_info(self.segment), self._patience.deadline_s)
        except SegmentMissing:
            self._then, self._finished = Skipped(self.segment, self.offset, None), True
            return
        if info.start_offset > self._read_to:
            self._then = Skipped(self.segment, self.offset, info.start_offset)
        else:
            await asyncio.sleep(self._patience.longest_pause_s)
