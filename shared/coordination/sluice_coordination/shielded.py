"""Work that is carried through to its end although the caller that waits for it is cancelled, also more than once.

What a cancellation cut short here would leave a lock that no process uses and that others wait for. So only work that
ends by itself, within the time that a lock lasts, is carried through. And whose a cancellation is: the running task's
own, or that of something it awaited.

Concurrency: belongs to one event loop.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def was_cancelled() -> bool:
    """Whether a CancelledError is meant for the running task; if not, something that the task awaited was cancelled."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def shielded(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do the work in a task of its own and return its result; raise CancelledError after its end, not before."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work())
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        # Its own error, if it has one, is less than that; retrieved so that it does not count as forgotten.
        if not task.cancelled():
            task.exception()
        raise cancelled
    return task.result()
