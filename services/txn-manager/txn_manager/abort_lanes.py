"""One lane per partition: its records one after the other, the partitions side by side.

Faust hands records out one at a time and marks an offset as done when its event is acknowledged; acknowledged out of
order within a partition it may commit past a record that is still open. So a lane acknowledges strictly in order, and
what it forgets it never acknowledges. A partition's lane is one task, gone when idle.

Concurrency: everything belongs to the event loop. `put` waits while `max_open` records are open.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec

log = logging.getLogger(__name__)


class Aborting(msgspec.Struct, frozen=True):
    """A record of the topic as it is there; `timestamp_ms` is the broker's append time, a missing key is empty.

    `headers` are there only while traces are on.
    """

    key: str
    value: bytes
    partition: int
    offset: int
    timestamp_ms: int
    headers: tuple[tuple[str, bytes], ...] = ()


Handle = Callable[[Aborting], Awaitable[None]]
OnFailure = Callable[[Aborting, Exception], Awaitable[None]]
Acknowledge = Callable[[], object]


class Lanes:
    """Runs `handle` for each record; one it cannot handle goes to `on_failure` and counts as handled.

    If `on_failure` fails too, nobody holds the record: all lanes stop and `broken` tells why.
    """

    def __init__(self, handle: Handle, on_failure: OnFailure, max_open: int) -> None:
        self.broken: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._handle = handle
        self._on_failure = on_failure
        self._room = asyncio.Semaphore(max_open)
        self._epoch = 0
        self._lanes: dict[int, deque[tuple[Aborting, Acknowledge]]] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._handling: dict[int, int] = {}

    @property
    def open_records(self) -> int:
        """Records put here that are neither handled nor forgotten."""
        return len(self._handling) + sum(map(len, self._lanes.values()))

    @property
    def oldest_ms(self) -> int | None:
        """When the broker appended the oldest of them, in epoch ms."""
        queued = (lane[0][0].timestamp_ms for lane in self._lanes.values() if lane)
        return min((*self._handling.values(), *queued), default=None)

    async def put(self, record: Aborting, acknowledge: Acknowledge) -> None:
        """Queue a record; `acknowledge` is called once it and all before it in its partition are handled."""
        epoch = self._epoch
        await self._room.acquire()
        if epoch != self._epoch or self.broken.done():
            self._room.release()
            return
        lane = self._lanes.get(record.partition)
        if lane is not None:
            lane.append((record, acknowledge))
            return
        lane = self._lanes[record.partition] = deque([(record, acknowledge)])
        task = asyncio.get_running_loop().create_task(self._work(record.partition, lane))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def clear(self, timeout_s: float) -> None:
        """Forget what waits; give the handlers that run this long to end, then cancel them."""
        self._epoch += 1
        for lane in self._lanes.values():
            for _ in lane:
                self._room.release()
            lane.clear()
        self._lanes.clear()
        running = list(self._running)
        if running:
            _, late = await asyncio.wait(running, timeout=timeout_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _work(self, partition: int, lane: deque[tuple[Aborting, Acknowledge]]) -> None:
        while lane and not self.broken.done():
            record, acknowledge = lane.popleft()
            self._handling[partition] = record.timestamp_ms
            try:
                if await self._handled(record):
                    acknowledge()
            finally:
                self._handling.pop(partition, None)
                self._room.release()
        if self._lanes.get(partition) is lane:
            del self._lanes[partition]

    async def _handled(self, record: Aborting) -> bool:
        try:
            await self._handle(record)
        except Exception as error:  # noqa: BLE001 - the partition must go on; the record is kept
            return await self._failed(record, error)
        return True

    async def _failed(self, record: Aborting, error: Exception) -> bool:
        try:
            await self._on_failure(record, error)
        except Exception as worse:
            log.exception("failure not kept", extra={"partition": record.partition, "offset": record.offset})
            if not self.broken.done():
                self.broken.set_result(worse)
            return False
        return True
