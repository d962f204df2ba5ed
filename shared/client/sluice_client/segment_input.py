"""The events of one segment from an offset on, read ahead of the caller, to the end of the segment.

One read at a time is under way; what came waits in a bounded buffer. At the end of an unsealed segment the segment
store holds the read until there is more. Only whole events come out, however large: one that is larger than the buffer
is the only one in it. What was truncated away before it was read is skipped, and the caller is told of it.

Concurrency: a task of the input's own reads; taking does not wait, so that a caller which is cancelled while it waits
has lost nothing. Inputs of one reader share the event that wakes it.
"""

import asyncio
from collections import deque
from types import TracebackType
from typing import Self

import msgspec

from sluice.pravega import SegmentData, SegmentMissing, SegmentStore, SegmentTruncated, TryLater
from sluice.pravega.event_frames import EventSplitter, StoredEvent
from sluice_client.attempts import Patience, patiently
from sluice_client.errors import Unavailable

_PIECE_BYTES = 2 * 1024 * 1024
"""What one read asks for: as much as a segment store gives at most."""
_BUFFER_BYTES = 2 * 1024 * 1024
"""With more than this waiting no read is begun; so there are up to two pieces."""
_TAIL_WAIT_S = 3600.0
"""How long a read is held at the end of a segment. A connection that breaks is found out much sooner."""
_EVENT_WAIT_S = 30.0
"""How long the rest of an event may take to come: it was appended as a whole."""
_DEFAULT_PATIENCE = Patience()


class Skipped(msgspec.Struct, frozen=True):
    """What lay between two offsets was truncated before it was read; `end` None: the whole segment is gone."""

    segment: str
    start: int
    end: int | None


class SegmentInput:
    """Reads `segment` from `offset` on, up to `limit` if there is one: an event that ends behind it does not count.

    An async context manager, which ends the reading. `woken` is set whenever the input becomes ready.
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
        buffer_bytes: int = _BUFFER_BYTES,
    ) -> None:
        self.segment = segment
        self.offset = offset
        """Where the next event begins that the caller has not taken."""
        self.at_limit = False
        """Whether the end is that of `limit`, and not that of the segment."""
        self._store = store
        self._limit = limit
        self._patience = patience
        self._woken = woken or asyncio.Event()
        self._room = asyncio.Event()
        self._buffer_bytes = buffer_bytes
        self._buffered_to = offset
        self._found: deque[StoredEvent | Skipped | Exception] = deque()
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
        return self._finished and not self._found

    @property
    def ready(self) -> bool:
        """Whether there is something to take, or the end was reached."""
        return bool(self._found) or self._finished

    def take(self) -> StoredEvent | Skipped | None:
        """The next event, or what was skipped before it; None if there is nothing at the moment.

        Raises MalformedEvents, SegmentStoreError, Unavailable when the patience is over. After an error that was raised
        reading goes on where it stood.
        """
        if not self._found:
            return None
        found = self._found.popleft()
        if isinstance(found, Exception):
            self._room.set()
            raise found
        self.offset = found.end if found.end is not None else self.offset
        if self._buffered_to - self.offset < self._buffer_bytes:
            self._room.set()
        return found

    async def next(self) -> StoredEvent | Skipped | None:
        """Waits for the next event, or what was skipped before it; None at the end. For a caller of one input."""
        while not self.ready:
            self._woken.clear()
            await self._woken.wait()
        return self.take()

    async def _fill(self) -> None:
        while not self._finished:
            try:
                await self._read_from(self._buffered_to)
            except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets it
                self._put(error)
                while self._found and self._found[-1] is error:
                    await self._wait_for_room()

    async def _wait_for_room(self) -> None:
        self._room.clear()
        await self._room.wait()

    async def _read_from(self, offset: int) -> None:
        """Reads until the end, or until what comes next is not at the next offset, or is no event."""
        splitter = EventSplitter(offset)
        while not self._finished:
            if self._limit is not None and splitter.offset >= self._limit:
                self._finish(at_limit=True)
                return
            try:
                data = await self._piece(splitter)
            except (SegmentTruncated, SegmentMissing):
                await self._skip(splitter.offset)
                return
            for found in splitter.feed(data.data):
                self._extend(found.events, found.end)
            if data.end_of_segment:
                self._finish()
            elif self._buffered_to - self.offset >= self._buffer_bytes:
                await self._wait_for_room()

    async def _piece(self, splitter: EventSplitter) -> SegmentData:
        """The next bytes. Raises Unavailable when the patience is over, which begins with the first failure."""
        at, length = splitter.offset + splitter.pending_bytes, max(_PIECE_BYTES, splitter.missing_bytes)
        wait_s = _EVENT_WAIT_S if splitter.pending_bytes else _TAIL_WAIT_S
        clock, end = asyncio.get_running_loop().time, 0.0
        for pause in self._patience.pauses():
            try:
                data = await self._store.read_or_wait(self.segment, at, length, wait_s)
                if data.data or data.end_of_segment:
                    return data
            except TryLater as error:
                end = end or clock() + self._patience.deadline_s
                if clock() >= end:
                    raise Unavailable(f"{self.segment}; last answer: {error}") from error
            await asyncio.sleep(pause)
        raise AssertionError("the pauses never end")

    async def _skip(self, offset: int) -> None:
        """Goes on where the segment begins now; a store that says so by mistake is read again from where it was."""
        try:
            info = await patiently(lambda: self._store.segment_info(self.segment), self._patience.deadline_s)
        except SegmentMissing:
            self._put(Skipped(self.segment, offset, None))
            self._finish()
            return
        if info.start_offset > offset:
            self._buffered_to = info.start_offset
            self._put(Skipped(self.segment, offset, info.start_offset))
        else:
            await asyncio.sleep(self._patience.longest_pause_s)

    def _extend(self, events: list[StoredEvent], end: int) -> None:
        if self._limit is not None and end > self._limit:
            events = [event for event in events if event.end <= self._limit]
            self._finish(at_limit=True)
        if events:
            self._buffered_to = events[-1].end
            self._found += events
            self._woken.set()

    def _put(self, found: Skipped | Exception) -> None:
        self._found.append(found)
        self._woken.set()

    def _finish(self, at_limit: bool = False) -> None:
        # The limit may lie in the last piece of a sealed segment: what is said first counts.
        if not self._finished:
            self._finished, self.at_limit = True, at_limit
        self._woken.set()
