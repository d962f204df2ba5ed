"""Effects that are carried through although their caller is cancelled; and groups that fail plainly.

A task that is stopped between writing a batch and noting it would make the next one write it again. So both are one
piece, and the end of the task waits for it; not longer than its lock lasts, and not for ever.

Concurrency: belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

log = logging.getLogger(__name__)
T = TypeVar("T")

LONGEST_S = 5.0


async def settled(work: Coroutine[Any, Any, T], left_s: Callable[[], float]) -> T:
    """Do the work and return its result; when cancelled let it come to its end first.

    `left_s`: for how long, in seconds, it may still take then.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        until = loop.time() + min(left_s(), LONGEST_S)
        while not task.done() and (rest := until - loop.time()) > 0:
            try:
                await asyncio.wait((task,), timeout=rest)
            except asyncio.CancelledError:
                # Cancelled once more; the time is limited already.
                continue
        if not task.done():
            task.cancel()
        elif not task.cancelled() and (error := task.exception()) is not None:
            log.warning("stopped in the middle of a batch: %s", error)
        raise


@asynccontextmanager
async def together() -> AsyncIterator[asyncio.TaskGroup]:
    """A group of tasks that ends, when one of them fails, with that error itself, for callers that know it."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
