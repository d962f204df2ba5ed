"""Repeating what may be repeated, for as long as the patience lasts.

What is repeated here is harmless to do twice: reads, appends under the same number, and keyed writes. The calls of
`sluice_client` repeat by themselves.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import redis.exceptions

import sluice_client

T = TypeVar("T")

PASSING = (*sluice_client.PASSING, redis.exceptions.RedisError)
"""What may go away by itself. Of Redis all errors: one that is full, or no master for now, refuses writes as well."""


async def patiently(call: Callable[[], Awaitable[T]], patience_s: float) -> T:
    """The result of a call, which is made again after a passing failure until `patience_s` are over; then it raises."""
    return await sluice_client.patiently(call, patience_s, PASSING)
