"""How many transactions there are, for Prometheus: counted in the view when it scrapes, some partitions at a time.

One scrape looks at partitions for no longer than BUDGET_S, the next one goes on behind them; so on a large deployment
a number is as old as a few scrapes. Belongs to the event loop.
"""

import time
from collections.abc import Callable, Collection
from itertools import islice

import msgspec

from sluice.domain.transaction.index import StreamTransactions
from sluice.domain.transaction.state import Transaction, TransactionState
from sluice.engine.journal import Journal
from sluice.telemetry.scrape import on_scrape
from txn_manager import metrics

BUDGET_S = 0.005
MAX_LEASES = 2_000
"""Of a partition's open transactions so many are looked at for their lease, of each stream those opened first."""

Owned = Callable[[], Collection[int]]


class Count(msgspec.Struct):
    """Of one partition; `overdue_ms` is by how much the lease that should have ended first is late."""

    open: int = 0
    prepared: int = 0
    waiting: int = 0
    overdue: int = 0
    overdue_ms: int = 0


class TransactionMetrics:
    """`requests` and `commits` name the partitions whose leases and whose commits this instance looks after.

    `ends_at` is when a transaction may be aborted, in epoch ms, grace included.
    """

    def __init__(
        self, journal: Journal, requests: Owned, commits: Owned, ends_at: Callable[[Transaction], int]
    ) -> None:
        self._journal = journal
        self._requests = requests
        self._commits = commits
        self._ends_at = ends_at
        self._counts: dict[int, Count] = {}
        self._turn = 0
        on_scrape("transactions", self.publish)

    def publish(self) -> None:
        """Count on, and set the gauges."""
        requests, commits = set(self._requests()), set(self._commits())
        partitions = sorted(requests | commits)
        self._counts = {p: count for p, count in self._counts.items() if p in partitions}
        end = time.perf_counter() + BUDGET_S
        for _ in partitions:
            partition = partitions[self._turn % len(partitions)]
            self._turn += 1
            self._counts[partition] = self._count(partition)
            if time.perf_counter() > end:
                break
        leased = [count for p, count in self._counts.items() if p in requests]
        metrics.OPEN.set(sum(count.open for count in leased))
        metrics.PREPARED.set(sum(count.prepared for count in leased))
        metrics.OVERDUE.set(sum(count.overdue for count in leased))
        metrics.OVERDUE_SECONDS.set(max((count.overdue_ms for count in leased), default=0) / 1000)
        metrics.WAITING.set(sum(count.waiting for p, count in self._counts.items() if p in commits))

    def _count(self, partition: int) -> Count:
        view, now, count, left = self._journal.views()[partition], self._journal.clock.now_ms(), Count(), MAX_LEASES
        for name, index in view.projections():
            if not isinstance(index, StreamTransactions):
                continue
            count.open += len(index.open)
            count.prepared += len(index.prepared)
            count.waiting += len(index.committing)
            for id in islice(index.open, left):
                left -= 1
                state = view.peek(f"txn:{name}/{id}")
                if isinstance(state, Transaction) and state.state is TransactionState.OPEN:
                    late_ms = now - self._ends_at(state)
                    count.overdue += late_ms > 0
                    count.overdue_ms = max(count.overdue_ms, late_ms)
        return count
