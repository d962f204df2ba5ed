"""An event loop in a thread of its own, for callers that block."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self, TypeVar

from support.wait import SOON_S

T = TypeVar("T")


class LoopInThread:
    """Runs coroutines from `start` to `stop`, or while it is a context; cancels what runs then, and waits for it.

    A task that outlives its loop speaks up when it is collected: in the log of whichever test runs then.
    """

    def __init__(self, name: str) -> None:
        self._started, self._ending = Event(), asyncio.Event()
        self._thread = Thread(target=lambda: asyncio.run(self._serve()), name=name, daemon=True)

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Its outcome to be; cancelled, the work is."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T], limit_s: float | None = 60.0) -> T:
        """What it comes to. Raise what it raises, and TimeoutError."""
        return self.begin(work).result(limit_s)

    def start(self) -> Self:
        self._thread.start()
        assert self._started.wait(SOON_S)
        return self

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._started.set()
        await self._ending.wait()
