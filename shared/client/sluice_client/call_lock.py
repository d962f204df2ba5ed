"""Calls of one object that must go one after the other: how many wait, and for how long.

Concurrency: any number of tasks of one event loop; they get the lock in the order of their calls.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sluice_client.errors import NotSent

MAX_WAITING = 1000


class CallLock:
    """A lock that is waited for no longer than a call may last, by `MAX_WAITING` calls at most."""

    def __init__(self, of: str) -> None:
        self._of = of
        self._lock = asyncio.Lock()
        self._waiting = 0

    @asynccontextmanager
    async def acquired(self, patience_s: float) -> AsyncIterator[float]:
        """Holds the lock for the block, which is given the seconds that are left. Raises NotSent."""
        if self._waiting >= MAX_WAITING:
            raise NotSent(f"{self._of}: {self._waiting} calls wait already")
        clock = asyncio.get_running_loop().time
        end = clock() + patience_s
        self._waiting += 1
        try:
            async with asyncio.timeout_at(end):
                await self._lock.acquire()
        except TimeoutError:
            raise NotSent(f"{self._of}: not free within {patience_s} s") from None
        finally:
            self._waiting -= 1
        try:
            yield end - clock()
        finally:
            self._lock.release()
