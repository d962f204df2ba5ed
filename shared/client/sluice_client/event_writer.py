"""Writing events to a stream: routed by key, in blocks, each block stored once however often it is sent.

Not the PyPI client's writer: while that one waits for a segment store it holds Python's lock, so that the heartbeats
of the process would stop with it. Concurrency: one task adds and flushes; the segments are written side by side.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Self
from uuid import UUID, uuid4

from sluice.pravega import SegmentMissing, SegmentSealed, SegmentStore
from sluice.pravega.event_frames import LARGEST_EVENT_BYTES
from sluice.pravega.event_routing import key_position, segment_at
from sluice_client.attempts import patiently
from sluice_client.entries import MAX_ENTRY_BYTES, stored_bytes
from sluice_client.errors import StreamSealed

Ranges = Sequence[tuple[float, str]]
"""The upper ends of the ranges of keys of a stream's current segments, in order, each with its segment."""

_BLOCK_BYTES = 1024 * 1024
_BUFFER_BYTES = 4 * 1024 * 1024
_SCALING_PAUSE_S = 0.05
_ENDED = (SegmentSealed, SegmentMissing)
"""What is said of a segment that was scaled away, and was truncated by now (segment-store-wire-protocol 2.9)."""


class _Lane:
    """The events for one segment, and under which number of which writer the next block goes."""

    def __init__(self, segment: str) -> None:
        self.segment = segment
        self.writer: UUID = uuid4()
        self.stored = 0
        self.waiting: list[tuple[float, bytes]] = []
        self._sent: list[bytes] = []

    def block(self) -> list[bytes]:
        """The events that go together next: the same ones, under the same number, until they are known to be stored."""
        self._sent = self._sent or self._cut()
        return self._sent

    def record_stored(self) -> None:
        """The block is stored."""
        self.stored += len(self._sent)
        del self.waiting[: len(self._sent)]
        self._sent = []

    def _cut(self) -> list[bytes]:
        size = 0
        block: list[bytes] = []
        for _, data in self.waiting:
            size += stored_bytes(data, LARGEST_EVENT_BYTES)
            if block and size > _BLOCK_BYTES:
                break
            block.append(data)
        return block


class EventWriter:
    """Writes to one stream; `ranges` asks for its current segments, at the beginning and after one was sealed.

    With `large_events` events may have more than 8 MiB; each of those is a block of its own.
    """

    def __init__(
        self,
        store: SegmentStore,
        ranges: Callable[[], Awaitable[Ranges]],
        patience_s: float,
        *,
        large_events: bool = False,
    ) -> None:
        self._store = store
        self._ask = ranges
        self._patience_s = patience_s
        self._max_bytes = LARGEST_EVENT_BYTES if large_events else MAX_ENTRY_BYTES
        self._ranges: Ranges = ()
        self._lanes: dict[str, _Lane] = {}
        self._new: list[tuple[float, bytes]] = []
        self._added_bytes = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.flush()

    async def write(self, key: str | None, data: bytes) -> None:
        """Takes an event as `add` does, and stores all that waits if that has become much. Raises as both do."""
        self.add(key, data)
        if self._added_bytes >= _BUFFER_BYTES:
            await self.flush()

    def add(self, key: str | None, data: bytes) -> None:
        """Takes an event; it is stored when the next `flush` returns. Events of a key keep their order.

        Those without a key are spread over the segments by chance. Raises EntryTooLarge above 8 MiB, with
        `large_events` above 2 GiB, and has taken nothing.
        """
        self._added_bytes += stored_bytes(data, self._max_bytes)
        self._new.append((random.random() if key is None else key_position(key), data))

    async def flush(self) -> None:
        """Stores all that was added. Raises SegmentStoreError or ClientError when the patience is over, StreamSealed.

        After a failure it is not known what of it is stored; another flush goes on with the rest, and stores nothing
        again that is stored already.
        """
        now, end = asyncio.get_running_loop().time, 0.0
        while await self._route():
            lanes = [lane for lane in self._lanes.values() if lane.waiting]
            outcomes = await asyncio.gather(*(self._store_lane(lane) for lane in lanes), return_exceptions=True)
            failures = [outcome for outcome in outcomes if outcome is not None]
            for failure in failures:
                if not isinstance(failure, _ENDED):
                    raise failure
            if failures:
                end = end or now() + self._patience_s
                if now() >= end:
                    raise failures[0]
                await self._leave([lane for lane in lanes if lane.waiting])
        self._added_bytes = 0

    async def _leave(self, ended: Sequence[_Lane]) -> None:
        """Has what waits for segments that have ended go to those that come after them."""
        for lane in ended:
            del self._lanes[lane.segment]
            self._new += lane.waiting
        self._ranges = ()
        # The segments that follow count as current only when all that they replace are sealed.
        await asyncio.sleep(_SCALING_PAUSE_S)

    async def _route(self) -> bool:
        """Gives each event a lane, and says whether any waits to be stored."""
        if self._new:
            if not self._ranges:
                self._ranges = await self._ask()
            if not self._ranges:
                raise StreamSealed("it has no segment to write to")
            for position, data in self._new:
                segment = segment_at(position, self._ranges)
                lane = self._lanes.get(segment)
                if lane is None:
                    lane = self._lanes[segment] = _Lane(segment)
                lane.waiting.append((position, data))
            self._new = []
        return any(lane.waiting for lane in self._lanes.values())

    async def _store_lane(self, lane: _Lane) -> None:
        """Stores what waits for a segment. Raises `_ENDED` if that has ended meanwhile."""
        while lane.waiting:
            block = lane.block()
            writer, last = lane.writer, lane.stored + len(block)
            if len(block[0]) > MAX_ENTRY_BYTES:
                append = partial(self._store.append_large_event, lane.segment, writer, block[0], last)
            else:
                append = partial(self._store.append_events, lane.segment, writer, block, last)
            await patiently(append, self._patience_s)
            lane.record_stored()
