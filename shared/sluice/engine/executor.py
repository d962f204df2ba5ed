"""Runs jobs by key: those of one key one after the other, those of different keys side by side.

Each key that has work has a queue and one task, gone when idle. Nothing bounds here how many keys have work: how many
requests may be open is bounded before (`flow_control`), and how many steps are carried out behind (`runner`). So a key
that waits holds up no other.
Everything here belongs to the event loop.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection

log = logging.getLogger(__name__)


Job = Callable[[], Awaitable[None]]


class KeyedExecutor:
    def __init__(self) -> None:
        self._queues: dict[str, deque[Job]] = {}
        self._tasks: dict[str, tuple[int, asyncio.Task[None]]] = {}

    @property
    def keys_at_work(self) -> int:
        return len(self._tasks)

    def has_work(self, queue: str) -> bool:
        """Whether a job of the queue runs or waits."""
        return queue in self._queues

    def run(self, partition: int, queue: str, job: Job) -> None:
        """Queue a job behind what waits there.

        A job sees to its own errors: one that fails all the same is logged, and those behind it run.
        """
        waiting = self._queues.get(queue)
        if waiting is not None:
            waiting.append(job)
            return
        self._queues[queue] = deque([job])
        task = asyncio.get_running_loop().create_task(self._work(queue))
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

    async def _work(self, queue: str) -> None:
        waiting = self._queues[queue]
        try:
            while waiting:
                try:
                    await waiting.popleft()()
                except Exception:
                    log.critical("job failed", extra={"queue": queue}, exc_info=True)
        finally:
            if self._queues.get(queue) is waiting:
                del self._queues[queue]
                del self._tasks[queue]
