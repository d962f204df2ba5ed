"""A lock in the hands of its holder: renewed before it runs out, released before another process may take it.

Every write is conditional on the version of the one before it, so a holder that comes too late changes nothing in the
document. A write without an answer may have been done: the next one then meets another version, finds that it is its
own, and goes on from there; the lease is still counted from the last write that was answered.

Concurrency: belongs to one event loop; writes wait for each other.
"""

import asyncio
import logging
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from sluice_coordination.clock import SYSTEM_CLOCK, Clock, sleep_until
from sluice_coordination.document import Body, Document, Version
from sluice_coordination.errors import ConflictError, CoordinationError, LockLostError, StoreUnavailableError
from sluice_coordination.lease import RELEASED, LeaseSettings, Sightings, lease_of
from sluice_coordination.shielded import shielded
from sluice_coordination.store import DocumentStore

log = logging.getLogger(__name__)

_STATUS = "status"
_OF_THE_LOCK = {"holder", "expire", "lease_ms", "owner", _STATUS}


class Leases:
    """What one process needs to take locks in one store. `sightings` is shared by all who look at documents.

    `owner` stands in the documents of locks that this process holds, for operators.
    """

    def __init__(
        self,
        store: DocumentStore,
        settings: LeaseSettings | None = None,
        clock: Clock = SYSTEM_CLOCK,
        owner: str = "",
    ) -> None:
        self.store = store
        self.owner = owner
        self.settings = settings or LeaseSettings()
        self.clock = clock
        if self.settings.margin_s < store.timeout_s:
            raise ValueError(
                f"margin_s is {self.settings.margin_s:g}, less than the store's time-out {store.timeout_s:g}"
            )
        self.sightings = Sightings(self.settings, clock)

    async def take(self, id: str, found: Document | None) -> "HeldLock | None":
        """Take a lock that `sightings` holds for free, by a write on the version found; None: another was faster.

        What else the document holds stays. When cancelled it has taken nothing, or given it back. Raises
        StoreUnavailableError, StoreFailedError.
        """
        taking = asyncio.get_running_loop().create_task(self._take(id, found))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            # What the store may give us now is not to lie there until its lease has run out.
            await shielded(lambda: _give_back(taking))
            raise

    async def _take(self, id: str, found: Document | None) -> "HeldLock | None":
        holder = uuid.uuid4().hex
        sent = self.clock.now()
        body = {} if found is None else found.body
        body = {**body, "owner": self.owner, **self.settings.fields(holder, self.clock.wall_ms())}
        try:
            version = await self.store.put(id, body, None if found is None else found.version)
        except ConflictError:
            # Should the client have sent it twice, and met itself, the lock is ours to take anew.
            self.sightings.abandon(id, holder)
            return None
        except (StoreUnavailableError, asyncio.CancelledError):
            self.sightings.abandon(id, holder)
            raise
        return HeldLock(self, id, holder, Document(body, version), sent)


class HeldLock:
    """One process's hold on one lock, from its taking to its end.

    `fence`: the version of the write that took it. Each holder's is higher than those of all before it, so a resource
    that remembers the highest it has seen, and refuses lower ones, is safe from holders that come late.
    """

    def __init__(self, leases: Leases, id: str, holder: str, document: Document, sent: float) -> None:
        self.id = id
        self.holder = holder
        self.fence: Version = document.version
        self.began_at = leases.clock.now()
        self._leases = leases
        self._document = document
        self._sent = sent
        self._ended = False
        self._report: Body = {}
        self._writing = asyncio.Lock()
        self._timeout: asyncio.Timeout | None = None

    @property
    def left_s(self) -> float:
        """For how long the lock may still be used, in seconds; 0 when not any more."""
        return 0.0 if self._ended else max(0.0, self._stops_at - self._leases.clock.now())

    @property
    def held_s(self) -> float:
        """For how long it has been held, in seconds."""
        return self._leases.clock.now() - self.began_at

    @property
    def _stops_at(self) -> float:
        return self._sent + self._leases.settings.usable_s

    def check(self) -> None:
        """Raise LockLostError if the lock may not be used any more; to be called before each effect that counts."""
        if self.left_s <= 0:
            raise LockLostError(self.id)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Renew the lock while the block runs; if it is lost cancel the block, which then ends with LockLostError.

        What the block waits for is cancelled with it, so it has the lock's deadline. The lock is not released after.
        """
        clock = self._leases.clock
        self._require()
        self._timeout = asyncio.timeout_at(clock.loop_time(self._stops_at))
        try:
            async with self._timeout:
                keeper = asyncio.get_running_loop().create_task(self._keep(), name=f"keeper of {self.id}")
                try:
                    yield
                finally:
                    keeper.cancel()
                    await asyncio.wait((keeper,))
                if not keeper.cancelled():
                    keeper.result()
        except TimeoutError as error:
            if not self._timeout.expired():
                raise
            self._give_up()
            raise LockLostError(self.id) from error
        finally:
            self._timeout = None
        self._require()

    def report(self, status: Any) -> None:
        """Say what the holder does, as JSON; it stands in the document after the next renewal, see `status.py`."""
        self._report = {_STATUS: status}

    async def update(self, changes: Body) -> None:
        """Renew the lock and change fields of its document in the same write.

        Raises LockLostError; StoreUnavailableError, and it may have been done.
        """
        settings, clock = self._leases.settings, self._leases.clock
        async with self._writing:
            self.check()
            sent = clock.now()
            await self._write({**settings.fields(self.holder, clock.wall_ms()), **self._report, **changes})
            self._sent = sent
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(clock.loop_time(self._stops_at))

    async def release(self, changes: Body | None = None) -> None:
        """Let others have the lock at once; change fields of its document in the same write.

        Without changes, a document that holds nothing but the lock is deleted. The caller has stopped using the lock.
        Nothing is done if the lock is lost, or could not be reached before that. Raises TypeError and ValueError for
        changes that no document holds, and has done nothing.
        """
        clock, settings = self._leases.clock, self._leases.settings
        ended, self._ended = self._ended, True
        async with self._writing:
            while not ended and clock.now() < self._stops_at:
                try:
                    await self._let_go(changes or {})
                    self._leases.sightings.drop(self.id)
                    return
                except LockLostError:
                    # Or an attempt without an answer was carried out.
                    break
                except (TypeError, ValueError):
                    self._ended = False
                    raise
                except CoordinationError as error:
                    log.warning("lock not released", extra={"lock": self.id, "error": str(error)})
                    await sleep_until(clock, clock.now() + settings.retry_s * random.uniform(0.5, 1.5))
        self._give_up()

    async def _keep(self) -> None:
        clock, settings = self._leases.clock, self._leases.settings
        due = self._sent + settings.renew_s
        while True:
            await sleep_until(clock, due)
            try:
                await self.update({})
                due = self._sent + settings.renew_s
            except LockLostError:
                self._ended = True
                if self._timeout is not None and not self._timeout.expired():
                    self._timeout.reschedule(asyncio.get_running_loop().time())
                return
            except CoordinationError as error:
                log.warning("lock not renewed", extra={"lock": self.id, "left_s": self.left_s, "error": str(error)})
                due = clock.now() + settings.retry_s * random.uniform(0.5, 1.5)

    async def _let_go(self, changes: Body) -> None:
        if changes or self._document.body.keys() - _OF_THE_LOCK:
            await self._write({"expire": RELEASED, **changes})
        else:
            await self._on_own_version(self._delete)

    async def _write(self, changes: Body) -> None:
        async def write(document: Document) -> None:
            body = {**document.body, **changes}
            self._document = Document(body, await self._leases.store.put(self.id, body, document.version))

        await self._on_own_version(write)

    async def _delete(self, document: Document) -> None:
        await self._leases.store.delete(self.id, document.version)

    async def _on_own_version(self, act: Callable[[Document], Awaitable[None]]) -> None:
        """Act on the own last version, whichever of the own writes that was."""
        while True:
            try:
                await act(self._document)
                return
            except ConflictError as conflict:
                found = await self._leases.store.get(self.id)
                if found is None or not self._is_mine(found):
                    self._ended = True
                    raise LockLostError(self.id) from conflict
                # A write without an answer has been done after all, with changes of its own.
                self._document = found

    def _is_mine(self, found: Document) -> bool:
        lease = lease_of(self.id, found)
        return lease.holder == self.holder and lease.expire != RELEASED

    def _require(self) -> None:
        if self.left_s <= 0:
            self._give_up()
            raise LockLostError(self.id)

    def _give_up(self) -> None:
        """To be called only while nothing runs under the lock: from here on this process may take it anew."""
        self._ended = True
        self._leases.sightings.abandon(self.id, self.holder)


async def _give_back(taking: "asyncio.Task[HeldLock | None]") -> None:
    await asyncio.wait((taking,))
    if not taking.cancelled() and taking.exception() is None and (held_lock := taking.result()) is not None:
        await held_lock.release()
