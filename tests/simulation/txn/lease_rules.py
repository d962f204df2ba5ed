"""Invariants of leases: none ends a transaction too early, and none that is not pinged lives on.

Too early: before its lease, the grace and all the time in which no ping could be received have passed since its last
sign of life, or over a ping that was in its topic before that. Too late: see `latest_end_ms`.
"""

from simulation.txn.model import Txn
from simulation.txn.plant import Plant
from simulation.violation import Violation

from sluice.domain.model import JournalEntry
from sluice.domain.transaction import commands as c
from sluice.domain.transaction import events as ev
from sluice.domain.transaction.commands import AbortReason
from sluice.kafka.topics import COMMIT

GRACE_SHARE = 20
SHORT_MS = 3_000
"""Deafness that no lease is extended for, and by how much less than a longer one leases may be extended."""
SLACK_MS = 1_600
"""What a process that comes back may believe to have received: a heartbeat, a tick."""
RETURN_MS = 5_000


class LeaseRules:
    """`grace_ms`, `tick_ms`, `claim_ms` as the processes have them."""

    def __init__(self, plant: Plant, grace_ms: int, tick_ms: int, claim_ms: int) -> None:
        self._plant = plant
        self._grace_ms = grace_ms
        self._tick_ms = tick_ms
        self._claim_ms = claim_ms
        plant.auditor.before.append(self._judge)

    def deadline_ms(self, txn: Txn) -> int:
        return txn.last_activity_at + txn.lease_ms + self._grace_ms + max(0, txn.lease_ms) // GRACE_SHARE

    def latest_end_ms(self, txn: Txn, calm_since_ms: int) -> int:
        """When it has been aborted if no client pings it and no fault has happened since `calm_since_ms`.

        After a fault a lease may run anew, and a timer that was claimed by a process that is gone stays claimed.
        """
        lease_ms = txn.lease_ms + self._grace_ms + max(0, txn.lease_ms) // GRACE_SHARE
        two_ticks_ms = 2 * self._tick_ms + 500
        calm = calm_since_ms + max(0, lease_ms) + RETURN_MS + self._claim_ms
        return max(self.deadline_ms(txn), calm if calm_since_ms else 0) + two_ticks_ms

    def _judge(self, _partition: int, entry: JournalEntry, at: int) -> None:
        for event in entry.events:
            if isinstance(event, ev.TransactionAborting) and event.reason is AbortReason.LEASE:
                self._judge_abort(entry, event, at)

    def _judge_abort(self, entry: JournalEntry, event: ev.TransactionAborting, at: int) -> None:
        auditor = self._plant.auditor
        txn = auditor.model.txns[(event.scope, event.stream, event.transaction)]
        request = entry.request or ""
        command, requested_at = auditor.commands.get(request), auditor.landed.get((COMMIT.name, request))
        is_meant = isinstance(command, c.AbortTransaction) and command.transaction == txn.id
        if requested_at is None or not is_meant or not txn.ready:
            raise Violation(f"{event}: without a request, or its client got no reply")
        deadline = self.deadline_ms(txn)
        if requested_at < deadline:
            raise Violation(f"{event} at {at}, {deadline - requested_at} ms before its lease and grace were over")
        deaf = self._deaf_ms(event, txn.last_activity_at, requested_at)
        if requested_at < deadline + deaf:
            raise Violation(
                f"{event} at {at}: pinged at {txn.last_activity_at}, no ping could be received for {deaf} ms of it"
            )
        for ping in auditor.pings.get(txn.id, ()):
            if ping.request not in auditor.replies and ping.at <= deadline and ping.lease_ms <= 600_000:
                raise Violation(f"{event} at {at} over a ping of {ping.at}, the lease ended at {deadline}")

    def _deaf_ms(self, event: ev.TransactionAborting, since: int, until: int) -> int:
        """How long no ping could be received, as far as that counts: since the owner of the partition is its owner."""
        plant = self._plant
        partition = plant.partition_of(f"{event.scope}/{event.stream}")
        since = max(since, int(plant.known_since[partition] * 1000))
        spans = sorted(
            (max(since, int(a * 1000)), min(until, int(b * 1000)))
            for a, b in [*plant.broker.outages, *plant.deaf[partition]]
        )
        total, reached = 0, since
        for begin, end in spans:
            if end - max(begin, reached) > SHORT_MS + SLACK_MS:
                total += end - max(begin, reached) - SHORT_MS - SLACK_MS
            reached = max(reached, end)
        return total
