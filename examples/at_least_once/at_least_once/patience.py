"""Repeating what may be repeated, for as long as the patience lasts: the one place where this package retries.

What is repeated here is harmless to do twice: reads, appends under the same number, and keyed writes. The calls of
`sluice_client` repeat by themselves.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import redis.exceptions

from sluice_client import Contended, RouteStale, TryLater, Unavailable

T = TypeVar("T")

PASSING = (
    RouteStale,
    TryLater,
    Unavailable,
    Contended,
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
)
"""What goes away by itself."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 1.0
_log = logging.getLogger(__name__)


async def patiently(call: Callable[[], Awaitable[T]], patience_s: float) -> T:
    """The result of a call, which is made again after a passing failure until `patience_s` are over; then it raises."""
    loop = asyncio.get_running_loop()
    end, pause_s = loop.time() + patience_s, _FIRST_PAUSE_S
    while True:
        try:
            return await call()
        except PASSING as error:
            if loop.time() >= end:
                raise
            _log.info("once more after %s", error)
        await asyncio.sleep(random.uniform(pause_s / 2, pause_s))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
