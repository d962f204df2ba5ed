"""Runs jobs by key: those of one key one after the other, those of different keys side by side.

Each key that has work has a queue and one task, gone when idle. A *permit* bounds how many jobs run; a job that only
waits gives it back meanwhile, so a key that waits holds up no other. Everything here belongs to the event loop.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any, Protocol

log = logging.getLogger(__name__)


class Limit(Protocol):
    """What bounds how many jobs run; an `asyncio.Semaphore` is one."""

    async def acquire(self) -> Any: ...

    def release(self) -> None: ...


class Permit:
    """The right of a job to run, acquired from `limit`."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._is_held = True

    def release(self) -> None:
        """Nothing, if a job was cancelled before it had it back."""
        if self._is_held:
            self._is_held = False
            self._limit.release()

    @asynccontextmanager
    async def released(self) -> AsyncIterator[None]:
        """Leave it to another job meanwhile."""
        self.release()
        try:
            yield
        finally:
            await self._limit.acquire()
            self._is_held = True


Job = Callable[[Permit], Awaitable[None]]


class KeyedExecutor:
    """`max_running` bounds the jobs that run at once, but for those that bring a limit of their own."""

    def __init__(self, max_running: int) -> None:
        self.limit: Limit = asyncio.Semaphore(max_running)
        self._queues: dict[str, deque[Job]] = {}
        self._tasks: dict[str, tuple[int, asyncio.Task[None]]] = {}

    @property
    def keys_at_work(self) -> int:
        return len(self._tasks)

    def has_work(self, queue: str) -> bool:
        """Whether a job of the queue runs or waits."""
        return queue in self._queues

    def run(self, partition: int, queue: str, job: Job, limit: Limit | None = None) -> None:
        """Queue a job behind what waits there. All jobs of a queue have the same limit.

        A job sees to its own errors: one that fails all the same is logged, and those behind it run.
        """
        waiting = self._queues.get(queue)
        if waiting is not None:
            waiting.append(job)
            return
        self._queues[queue] = deque([job])
        task = asyncio.get_running_loop().create_task(self._work(queue, limit or self.limit))
        self._tasks[queue] = (partition, task)

    def drop(self, partitions: Collection[int]) -> None:
        """Cancel what runs for these partitions and forget what waits."""
        for queue, (partition, task) in list(self._tasks.items()):
            if partition in partitions:
                task.cancel()
                self._queues.pop(queue, None)
                del self._tasks[queue]

    def cancel(self) -> None:
        """Cancel everything."""
        self.drop({partition for partition, _ in self._tasks.values()})

    async def _work(self, queue: str, limit: Limit) -> None:
        waiting = self._queues[queue]
        await limit.acquire()
        permit = Permit(limit)
        try:
            while waiting:
                try:
                    await waiting.popleft()(permit)
                except Exception:
                    log.critical("job failed", extra={"queue": queue}, exc_info=True)
        finally:
            permit.release()
            if self._queues.get(queue) is waiting:
                del self._queues[queue]
                del self._tasks[queue]
