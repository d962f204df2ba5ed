"""So many processes at a time, and not more: a semaphore is as many locks, and who has one of them is in.

So it is as safe as a lock, a permit of a process that dies is free after the lease, and each permit has a fence of its
own. All must name the same number; with others the largest counts.

Concurrency: belongs to one event loop; any number of tasks may hold permits, or wait, at a time.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager

from sluice_coordination.clock import sleep_until
from sluice_coordination.errors import StoreUnavailableError
from sluice_coordination.held_lock import HeldLock, Leases
from sluice_coordination.lock import Lock
from sluice_coordination.shielded import shielded

log = logging.getLogger(__name__)


class Semaphore:
    """`permits` locks, in the documents `id/0`, `id/1`, ..."""

    def __init__(self, leases: Leases, id: str, permits: int) -> None:
        """Raises ValueError without a permit."""
        if permits < 1:
            raise ValueError(f"no semaphore: {permits} permits")
        self._leases = leases
        self._locks = [Lock(leases, f"{id}/{number}") for number in range(permits)]

    @asynccontextmanager
    async def held(self) -> AsyncIterator[HeldLock]:
        """Wait for a permit, however long that takes, and hold it for the block; see HeldLock.kept.

        The block is cancelled and LockLostError raised when the permit is lost. Raises StoreFailedError.
        """
        permit = await self.acquire()
        try:
            async with permit.kept():
                yield permit
        finally:
            await shielded(permit.release)

    async def acquire(self) -> HeldLock:
        """Wait for a permit and take it. It is not renewed before `HeldLock.kept`."""
        while True:
            try:
                if (permit := await self.try_acquire()) is not None:
                    return permit
            except StoreUnavailableError as error:
                log.warning("semaphore not reached", extra={"error": str(error)})
                clock = self._leases.clock
                await sleep_until(clock, clock.now() + self._leases.settings.retry_s * random.uniform(0.5, 1.5))
                continue
            await _first([self._leases.sightings.until_free(lock.id) for lock in self._locks])

    async def try_acquire(self) -> HeldLock | None:
        """Take a permit if one can be taken now, see Lock.try_acquire; None if not.

        Raises StoreUnavailableError, StoreFailedError.
        """
        for lock in random.sample(self._locks, len(self._locks)):
            if (permit := await lock.try_acquire()) is not None:
                return permit
        return None


async def _first(waits: Sequence[Coroutine[object, object, None]]) -> None:
    """Return when one of these has come."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
