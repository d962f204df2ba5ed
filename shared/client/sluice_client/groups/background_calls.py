"""Calls at the controller that a reader does not wait for: each goes on in a task of its own, once at a time.

An error of a call is raised when its result is taken, or when it is begun once more.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class BackgroundCalls:
    """Calls by name. `woken` is set, and `answered` true, when one has ended."""

    def __init__(self, woken: asyncio.Event) -> None:
        self.answered = False
        self._woken = woken
        self._tasks: dict[str, asyncio.Task[Any]] = {}

    def begin(self, name: str, call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Does nothing while the one before goes on."""
        before = self._tasks.get(name)
        if before is None or before.done():
            task = self._tasks[name] = asyncio.create_task(call(), name=name)
            task.add_done_callback(self._record_answer)
            if before is not None:
                before.result()

    def take(self, name: str) -> Any:
        """The result of a call that has ended; None if there is none."""
        task = self._tasks.get(name)
        if task is None or not task.done():
            return None
        del self._tasks[name]
        return task.result()

    async def cancel(self) -> None:
        """Ends all calls."""
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _record_answer(self, _: asyncio.Task[Any]) -> None:
        self.answered = True
        self._woken.set()
