"""Waiting for a future, but not for ever.

For what every request waits for: `asyncio.timeout` costs several times as much, because it can bound any code.
"""

import asyncio
from typing import TypeVar

T = TypeVar("T")


async def at_most(seconds: float, future: "asyncio.Future[T]") -> T:
    """The result of a future that belongs to this call alone. Raises TimeoutError after so long."""
    timer = asyncio.get_running_loop().call_later(seconds, _expire, future)
    try:
        return await future
    finally:
        timer.cancel()


def _expire(future: "asyncio.Future[T]") -> None:
    if not future.done():
        future.set_exception(TimeoutError())
