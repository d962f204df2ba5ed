"""Time and processes for the simulation: one loop runs all processes; each can be frozen or killed at any await.

Every callback carries the life it belongs to in its context: what code of a process schedules is the process's. The
loop runs callbacks of those who live, keeps those of the frozen until they thaw, and drops those of the dead, so that a
killed process does nothing any more, not even what stands in its `finally`. Time stands still while there is work.
"""

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from enum import Enum
from heapq import heappop
from typing import Any, TypeVar

EPOCH_S = 1_000_000.0
"""Where time begins, so that an hour before the beginning is not a negative time."""


MAX_AWAITS_OF_THE_DYING = 100
T = TypeVar("T")


class Killed(BaseException):
    """What a process is ended by in the middle of a call; no code of it catches this."""


class StuckError(Exception):
    """Nothing is left to happen, and what is waited for has not."""


class Living(Enum):
    RUNNING = 0
    FROZEN = 1
    DEAD = 2


class Life:
    """Of one process. Whatever is begun in `context` belongs to it; `touch` is called when it reaches the outside."""

    def __init__(self, name: str, touch: Callable[[str], None]) -> None:
        self.name = name
        self.touch = touch
        self.living = Living.RUNNING
        self.parked: deque[Any] = deque()
        self.tasks: list[asyncio.Task[Any]] = []
        self.context = contextvars.copy_context()
        self.context.run(LIFE.set, self)


LIFE: contextvars.ContextVar[Life | None] = contextvars.ContextVar("life", default=None)


class SimulationLoop(asyncio.BaseEventLoop):
    """An event loop without files and threads, whose clock only its timers move."""

    _ready: deque[Any]
    _scheduled: list[Any]

    def __init__(self, begin_s: float = EPOCH_S) -> None:
        super().__init__()
        self.now = begin_s
        self.outside = contextvars.Context()
        """For what happens in any case; callbacks get it by name, for they take the caller's otherwise."""
        self.failures: list[str] = []
        self._tasks: list[asyncio.Task[Any]] = []

    def time(self) -> float:
        return self.now

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        life = LIFE.get()
        self._tasks.append(task)
        if life is not None:
            life.tasks.append(task)
        return task

    def freeze(self, life: Life) -> None:
        """Let nothing of it go on from the next await."""
        if life.living is Living.RUNNING:
            life.living = Living.FROZEN

    def thaw(self, life: Life) -> None:
        if life.living is Living.FROZEN:
            life.living = Living.RUNNING
            self._ready.extend(life.parked)
            life.parked.clear()

    def kill(self, life: Life) -> None:
        """Nothing of it goes on; who kills from within it raises Killed."""
        life.living = Living.DEAD
        life.parked.clear()
        self.call_soon(_bury, life.tasks, context=self.outside)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note what a callback did not catch; what tasks end with is seen by those who wait for them, or not."""
        if context.get("handle") is not None and not isinstance(context.get("exception"), Killed):
            self.failures.append(f"{context['message']}: {context.get('exception')!r}")

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        if not ready:
            self._leap(ready, scheduled)
        running = Living.RUNNING
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            life = handle._context.get(LIFE)
            if life is None or life.living is running:
                handle._run()
            elif life.living is Living.FROZEN:
                life.parked.append(handle)

    def _leap(self, ready: deque[Any], scheduled: list[Any]) -> None:
        while scheduled and scheduled[0]._cancelled:
            heappop(scheduled)._scheduled = False
        if not scheduled:
            raise StuckError
        self.now = max(self.now, scheduled[0]._when)
        while scheduled and scheduled[0]._when <= self.now:
            handle = heappop(scheduled)
            handle._scheduled = False
            ready.append(handle)

    def _timer_handle_cancelled(self, handle: Any) -> None:
        """Cancelled timers leave with time."""

    def _write_to_self(self) -> None:
        """Nothing to wake: there is one thread."""

    def end(self) -> None:
        """Drop whatever is left. On the loop: what is ended may begin another task, which is dropped with the rest."""

        async def drop() -> None:
            _bury(self._tasks)

        self._ready.clear()
        self.run_until_complete(drop())
        self.close()


def _close(coroutine: Any) -> None:
    """Each `finally` that awaits something is one more place to end it at."""
    for _ in range(MAX_AWAITS_OF_THE_DYING):
        try:
            coroutine.throw(Killed())
        except BaseException:  # noqa: BLE001 - however it ends, its process is gone
            return


def _bury(tasks: list[asyncio.Task[Any]]) -> None:
    """End the coroutines of tasks that will not go on. What they raise is dropped."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        for task in tasks:
            coroutine = task.get_coro()
            if not task.done() and coroutine is not None:
                _close(coroutine)
    finally:
        logging.disable(before)
    tasks.clear()


def run(work: Coroutine[Any, Any, T], begin_s: float = EPOCH_S) -> T:
    """Run it to its end on a loop of its own, from that time on, and drop what it leaves running."""
    loop = SimulationLoop(begin_s)
    try:
        return loop.run_until_complete(work)
    finally:
        loop.end()
