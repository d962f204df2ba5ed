"""Leases that run out: which instance watches them, and what must be certain before one ends a transaction.

A timer that fires sends CheckLease. It goes through the topic of pings and then through that of commits, under the
key of the stream; so when it has come out of both, every ping that was appended before it has been decided. Only if
the lease had run out all the same when the check was appended, it becomes an abort, which names the version of the
transaction that this was decided on.

A take-over and the end of an outage begin each lease of the partition anew, but for no more than MAX_ANEW_MS: a
client that is there needs no longer to ping or to commit, and what a dead one left has to end some day.
`outage_tracker` says why. So whether Kafka is there matters only to a lease that ends within that time.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from sluice.domain.model import JournalEntry
from sluice.domain.transaction import events as ev
from sluice.domain.transaction.commands import AbortReason, AbortTransaction, CheckLease
from sluice.domain.transaction.index import StreamTransactions
from sluice.domain.transaction.state import Transaction, TransactionState, open_transaction
from sluice.engine.journal import Journal
from sluice.kafka.topics import COMMIT
from sluice.runtime import Runtime
from txn_manager import metrics
from txn_manager.outage_tracker import SILENCE_MS, OutageTracker
from txn_manager.timers import Timers
from txn_manager.wheel.timer_redis import TimerRedis

GRACE_SHARE = 20
"""Beside the grace that is set, a lease gets this part of itself: some clients ping but once in a lease.

Of a lease of more than MAX_ANEW_MS, this part of that.
"""

CHECK_AGAIN_MS = 10_000
"""After which a check that has led to nothing is sent a second time: its process may have ended."""

MAX_ANEW_MS = 600_000
"""Of a lease that begins anew; the grace comes on top."""


class Leases:
    """Keeps the timers of the open transactions of the partitions owned here, and judges their checks. A timer has the
    name of its transaction's aggregate.

    `grace_ms` is added to every lease; `name` is the cluster's.
    """

    def __init__(
        self, runtime: Runtime, redis: TimerRedis, outages: OutageTracker, name: str, tick_s: float, grace_ms: int
    ) -> None:
        self._sender = runtime.sender
        self._journal: Journal = runtime.journal
        self._outages = outages
        self._grace_ms = grace_ms
        self._max_anew_ms = MAX_ANEW_MS + self._grace_of(MAX_ANEW_MS)
        self._owned: set[int] = set()
        self._last_end = 0
        self.timers = Timers(redis, name, self._journal.clock, self.submit_checks, self.open_leases, tick_s)
        self._journal.on_entry.append(self._observe)

    async def stop(self) -> None:
        await self.timers.stop()

    def own(self, partition: int) -> None:
        """Look after the leases of a partition, whose view is at the end of the journal."""
        self.listen(partition)
        self._owned.add(partition)
        self.timers.own(partition)

    def listen(self, partition: int) -> None:
        """Judge checks of leases of a partition that is taken over."""
        self._outages.owned(partition, self._journal.clock.now_ms())

    def disown(self, partition: int) -> None:
        self._owned.discard(partition)
        self._outages.disowned(partition)
        self.timers.disown(partition)

    def ends_at(self, transaction: Transaction) -> int:
        """When the transaction may be aborted unless its client pings, grace included."""
        open_since = self._outages.open_since(self._journal.partition_of(transaction.id.key))
        by_pings = self._ends_by_pings(transaction)
        return max(by_pings, open_since + min(by_pings - transaction.last_activity_at, self._max_anew_ms))

    def _ends_by_pings(self, transaction: Transaction) -> int:
        return transaction.lease_ends_at + self._grace_of(transaction.lease_ms)

    def _grace_of(self, lease_ms: int) -> int:
        return self._grace_ms + min(max(0, lease_ms), MAX_ANEW_MS) // GRACE_SHARE

    def awaits_pings(self) -> bool:
        """Whether a lease may run out because pings cannot be appended; one that was ended before counts on."""
        return self._journal.clock.now_ms() <= self._last_end

    def open_leases(self, partition: int) -> Mapping[str, int]:
        """All timers of a partition with the time at which each is due."""
        return {t.id.aggregate: self._look_at(self.ends_at(t)) for t in self._open_transactions(partition)}

    def _look_at(self, ends_at: int) -> int:
        """When a lease is looked at: at its end, but before an outage begins to matter to it."""
        if ends_at - self._journal.clock.now_ms() > self._max_anew_ms:
            return ends_at - self._max_anew_ms
        self._last_end = max(self._last_end, ends_at)
        return ends_at

    async def submit_checks(self, partition: int, timers: list[str]) -> dict[str, int | None]:
        """Send a CheckLease for each of these leases that seems to have run out. Raises SendError.

        Returns when to look at each the next time, None if it has ended. Where the journal's partition has stopped,
        whether a lease has run out is not known here.
        """
        if partition in self._journal.failed:
            return dict.fromkeys(timers, self._journal.clock.now_ms() + CHECK_AGAIN_MS)
        sending = {}
        for timer in timers:
            transaction, now = self._journal.views()[partition].get(timer), self._journal.clock.now_ms()
            if _is_open(transaction) and (ends_at := self.ends_at(transaction)) <= now:
                metrics.LATENESS.observe((now - ends_at) / 1000)
                self._outages.sending(partition, now)
                request = f"lease-{transaction.uuid}-{now}"
                sending[timer] = self._sender.send(request, CheckLease(*transaction.id))
        await asyncio.gather(*sending.values())
        now = self._journal.clock.now_ms()
        self._outages.sent(partition, now)
        return {
            timer: now + CHECK_AGAIN_MS if timer in sending else self._next_look(partition, timer) for timer in timers
        }

    def _next_look(self, partition: int, timer: str) -> int | None:
        """By what is known now: the lease may have changed while the checks of others were sent."""
        transaction = self._journal.views()[partition].get(timer)
        return self._look_at(self.ends_at(transaction)) if _is_open(transaction) else None

    async def passed_pings(self, request: str, command: CheckLease, checked_at: int) -> None:
        """The question has passed all pings that were appended before it. Raises SendError."""
        if self._has_run_out(command, checked_at) is not None:
            await self._sender.send(request, command, topic=COMMIT)

    async def passed_commits(self, request: str, command: CheckLease, checked_at: int) -> None:
        """The question has passed all commits, too. Raises SendError."""
        version = self._has_run_out(command, checked_at)
        if version is None:
            return
        abort = AbortTransaction(*command.transaction_id, reason=AbortReason.LEASE, version=version)
        metrics.LEASES.labels("abort").inc()
        await self._sender.send(request, abort)

    def _has_run_out(self, command: CheckLease, checked_at: int) -> int | None:
        """The version of the transaction whose lease has run out before the question was appended, else None."""
        reader, partition = self._journal.reader(command.key), self._journal.partition_of(command.key)
        transaction = open_transaction(reader, command.transaction_id)
        if transaction is None:
            metrics.LEASES.labels("ended").inc()
            return None
        now, ends_at = self._journal.clock.now_ms(), self.ends_at(transaction)
        # By both clocks: since when the partition is open is known by ours, which may be behind the broker's.
        left = ends_at - min(checked_at, now)
        if not self._outages.is_open(partition, now):
            left = max(left, SILENCE_MS)
        if left > 0:
            metrics.LEASES.labels("renewed" if self._ends_by_pings(transaction) > checked_at else "extended").inc()
            self.timers.lease(partition, command.aggregate, self._look_at(now + left))
            return None
        return reader.version(command.aggregate)

    def _open_transactions(self, partition: int) -> Iterator[Transaction]:
        view = self._journal.views()[partition]
        for name, index in view.projections():
            if isinstance(index, StreamTransactions):
                for id in index.open:
                    state = view.peek(f"txn:{name}/{id}")
                    if _is_open(state):
                        yield state

    def _observe(self, partition: int, entry: JournalEntry) -> None:
        if partition not in self._owned:
            return
        for event in entry.events:
            match event:
                case ev.TransactionPinged() | ev.TransactionOpened() | ev.TransactionReady():
                    timer = event.aggregate
                    state = self._journal.views()[partition].get(timer)
                    if isinstance(state, Transaction):
                        self.timers.lease(partition, timer, self._look_at(self.ends_at(state)))
                case ev.TransactionCommitting() | ev.TransactionAborting():
                    self.timers.end(partition, event.aggregate)
            if isinstance(event, ev.TransactionReady) or (isinstance(event, ev.TransactionOpened) and event.prepared):
                metrics.OPENED.inc()


def _is_open(state: object) -> TypeGuard[Transaction]:
    """Whether it is a transaction about whose end nothing was decided yet."""
    return isinstance(state, Transaction) and state.state is TransactionState.OPEN
