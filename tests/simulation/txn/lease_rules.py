"""Invariants of leases: none ends a transaction too early, and none that is not pinged lives on.

Too early: checked before its lease and the grace have passed since its last sign of life, or since pings could be
received, or over a ping that was in its topic before that. Too late: see `latest_end_ms`.
"""

from simulation.txn.model import Txn
from simulation.txn.plant import Plant
from simulation.violation import Violation

from sluice.domain.model import JournalEntry
from sluice.domain.transaction import commands as c
from sluice.domain.transaction import events as ev
from sluice.domain.transaction.commands import AbortReason
from sluice.kafka.topics import REQUESTS_TRANSACTIONS

GRACE_SHARE = 20
SHORT_MS = 3_000
"""An outage of Kafka that is not noticed."""


CHECK_AGAIN_MS = 10_000
CLOCK_STEP_MS = 5_000
"""By which Redis's clock may be set back unnoticed."""
TIMEOUT_MS = 2_000
"""Within which Redis answers, else another wheel is filled: so much later timers are due."""
SLOT_MS = 1_000
CHECK_MS = 500
"""How long a check takes to become an abort."""


class LeaseRules:
    """`grace_ms`, `tick_ms` as the processes have them."""

    def __init__(self, plant: Plant, grace_ms: int, tick_ms: int) -> None:
        self._plant = plant
        self._grace_ms = grace_ms
        self._tick_ms = tick_ms
        plant.auditor.before.append(self._judge)

    def deadline_ms(self, txn: Txn) -> int:
        return txn.last_activity_at + txn.lease_ms + self._grace_ms + max(0, txn.lease_ms) // GRACE_SHARE

    def latest_end_ms(self, txn: Txn, calm_since_ms: int) -> int:
        """When it has been aborted if no client pings it and no fault has happened since `calm_since_ms`.

        It is seen with the first tick behind its slot. After a fault a lease may run anew, a check may have to be sent
        a second time, Redis's clock may have been set back by less than is noticed, and Redis may have been slow.
        """
        lease_ms = txn.lease_ms + self._grace_ms + max(0, txn.lease_ms) // GRACE_SHARE
        calm = calm_since_ms + max(0, lease_ms) + CHECK_AGAIN_MS + CLOCK_STEP_MS + TIMEOUT_MS
        return max(self.deadline_ms(txn), calm if calm_since_ms else 0) + SLOT_MS + self._tick_ms + CHECK_MS

    def _judge(self, _partition: int, entry: JournalEntry, at: int) -> None:
        for event in entry.events:
            if isinstance(event, ev.TransactionAborting) and event.reason is AbortReason.LEASE:
                self._judge_abort(entry, event, at)

    def _judge_abort(self, entry: JournalEntry, event: ev.TransactionAborting, at: int) -> None:
        auditor = self._plant.auditor
        txn = auditor.model.txns[(event.scope, event.stream, event.transaction)]
        request = entry.request or ""
        command, checked_at = auditor.commands.get(request), auditor.landed.get((REQUESTS_TRANSACTIONS.name, request))
        is_meant = isinstance(command, c.AbortTransaction) and command.transaction == txn.id
        if checked_at is None or not is_meant or not txn.ready:
            raise Violation(f"{event}: without a request, or its client got no reply")
        deadline = self.deadline_ms(txn)
        if checked_at < deadline:
            raise Violation(f"{event} at {at}, {deadline - checked_at} ms before its lease and grace were over")
        open_since = self._open_since_ms(event, checked_at)
        if checked_at < deadline + max(0, open_since - txn.last_activity_at):
            raise Violation(f"{event} at {at}: checked at {checked_at}, pings could be received from {open_since} on")
        for ping in auditor.pings.get(txn.id, ()):
            if ping.request not in auditor.replies and ping.at <= deadline and ping.lease_ms <= 600_000:
                raise Violation(f"{event} at {at} over a ping of {ping.at}, the lease ended at {deadline}")

    def _open_since_ms(self, event: ev.TransactionAborting, until: int) -> int:
        """The last time before `until` from which on pings could be received, as far as their owner knows of it."""
        plant = self._plant
        partition = plant.partition_of(f"{event.scope}/{event.stream}")
        owned_ms = int(plant.owned_s[partition] * 1000)
        ends = [owned_ms if plant.owned_alone[partition] else 0]
        for begin, end in plant.broker.outages:
            begin_ms, end_ms = max(int(begin * 1000), owned_ms), int(end * 1000)
            if end_ms - begin_ms > SHORT_MS:
                ends.append(end_ms)
        return max((end for end in ends if end <= until), default=0)
