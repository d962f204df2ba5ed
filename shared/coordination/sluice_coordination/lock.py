"""A lock that one process of many holds, and the election of a leader, which is one such lock.

A waiting process reads the store when the lock can have run out, and not before; a released lock is therefore found up
to one lease later, or at once by processes that look at its document anyway (`Leases.sightings`).

Concurrency: belongs to one event loop. A Lock object may be held once at a time; others wait like any other process.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from sluice_coordination.clock import sleep_until
from sluice_coordination.errors import CoordinationError, LockLostError, StoreUnavailableError
from sluice_coordination.held_lock import HeldLock, Leases
from sluice_coordination.shielded import shielded, was_cancelled

log = logging.getLogger(__name__)


class Lock:
    """The lock in the document `id`."""

    def __init__(self, leases: Leases, id: str) -> None:
        self.id = id
        self._leases = leases

    @asynccontextmanager
    async def held(self) -> AsyncIterator[HeldLock]:
        """Wait for the lock, however long that takes, and hold it for the block; see HeldLock.kept.

        The block is cancelled and LockLostError raised when the lock is lost. Raises StoreFailedError.
        """
        held_lock = await self.acquire()
        try:
            async with held_lock.kept():
                yield held_lock
        finally:
            await shielded(held_lock.release)

    async def acquire(self) -> HeldLock:
        """Wait for the lock and take it. It is not renewed before `HeldLock.kept`."""
        while True:
            try:
                if (held_lock := await self.try_acquire()) is not None:
                    return held_lock
            except StoreUnavailableError as error:
                log.warning("lock not reached", extra={"lock": self.id, "error": str(error)})
                await self._pause()
                continue
            await self._leases.sightings.until_free(self.id)

    async def try_acquire(self) -> HeldLock | None:
        """Take the lock if it can be taken now; None if not.

        This process can only know that a lock has run out if it has looked at it before, a lease ago. Raises
        StoreUnavailableError, StoreFailedError.
        """
        leases = self._leases
        found = await leases.store.get(self.id)
        leases.sightings.note(self.id, found)
        if not leases.sightings.is_free(self.id, found):
            return None
        return await leases.take(self.id, found)

    async def _pause(self) -> None:
        clock = self._leases.clock
        await sleep_until(clock, clock.now() + self._leases.settings.retry_s * random.uniform(0.5, 1.5))


Duty = Callable[[HeldLock], Awaitable[None]]
"""What a leader does; cancelled when it is the leader no more."""


class Leader:
    """An election among all who campaign for the same document."""

    def __init__(self, leases: Leases, id: str) -> None:
        self._lock = Lock(leases, id)
        self._leases = leases

    async def campaign(self, duty: Duty) -> None:
        """Become leader whenever possible and do the duty then; until it returns, or this is cancelled.

        A duty that fails is logged, leadership released, and campaigned for again after a pause.
        """
        clock = self._leases.clock
        while True:
            try:
                async with self._lock.held() as held_lock:
                    log.info("leading", extra={"lock": held_lock.id, "fence": str(held_lock.fence)})
                    await duty(held_lock)
                    return
            except LockLostError as error:
                log.warning("leading no more", extra={"error": str(error)})
            except CoordinationError as error:
                log.warning("leading failed", extra={"error": str(error)})
            except asyncio.CancelledError:
                if was_cancelled():
                    raise
                log.exception("the leader's duty failed")
            except Exception:
                log.exception("the leader's duty failed")
            await sleep_until(clock, clock.now() + self._leases.settings.retry_s * random.uniform(0.5, 1.5))
