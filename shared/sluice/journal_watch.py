"""Metrics of the journal as this process follows it: how far behind it is, which workflows have not ended, and which
segment containers do not answer.

The end of the journal is read from Kafka every few seconds, for that alone; everything else is counted when Prometheus
scrapes, and bounded. Every instance follows the whole journal, so all report the same about these: take the
maximum over instances, not the sum. Belongs to the event loop.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from sluice.domain.cluster.state import CLUSTER, cluster_of
from sluice.domain.workflow import WorkflowKind, running
from sluice.engine.journal import Journal
from sluice.engine.ports import Ends, EndsUnknownError
from sluice.insight.waits import queued_kind
from sluice.outages import Outage, outages, problem
from sluice.telemetry import metrics
from sluice.telemetry.scrape import on_scrape

POLL_S = 5.0
MAX_COUNTED = 20_000
"""Workflows looked at in one scrape: some ten milliseconds. More than that are not counted one by one."""

STATES = ("running", "waiting", "failing")


class JournalWatch:
    def __init__(self, journal: Journal, container_count: int) -> None:
        self._journal = journal
        self._container_count = container_count
        self._ends: Ends = {}
        self._goals: dict[int, tuple[int, float]] = {}
        metrics.PARTITIONS.set(journal.partitions)
        on_scrape("journal", self.publish_lag)
        on_scrape("workflows", self.publish_workflows)
        on_scrape("containers", self.publish_containers)

    async def watch(self) -> None:
        """Read for ever where the journal ends; the last ends hold of what does not answer."""
        _running.add(self)
        try:
            while True:
                with suppress(EndsUnknownError):
                    self.observe(await self._journal.ends(), time.monotonic())
                await asyncio.sleep(POLL_S)
        finally:
            _running.discard(self)

    def observe(self, ends: Ends, now_s: float) -> None:
        """The partitions ended there at `now_s`, on a monotonic clock."""
        self._ends = {**self._ends, **ends}
        for partition, end in ends.items():
            goal, since_s = self._goals.get(partition, (0, now_s))
            if self._folded(partition) >= goal:
                goal, since_s = end, now_s
            self._goals[partition] = (goal, since_s)

    def lag(self, partition: int) -> int:
        """Records that are known to be there and are not folded."""
        return max(0, self._ends.get(partition, 0) - self._folded(partition))

    def behind_s(self, partition: int, now_s: float) -> float:
        """For how long a record that is known to be there has not been folded; 0 if there is none such."""
        goal, since_s = self._goals.get(partition, (0, now_s))
        return 0.0 if self._folded(partition) >= goal else now_s - since_s

    def publish_lag(self) -> None:
        """Of all services that share the process, the one that is furthest behind."""
        now_s, watches = time.monotonic(), {self, *_running}
        for partition in range(self._journal.partitions):
            metrics.JOURNAL_LAG.labels(partition).set(max(one.lag(partition) for one in watches))
            metrics.JOURNAL_BEHIND.labels(partition).set(max(one.behind_s(partition, now_s) for one in watches))
        metrics.JOURNAL_STOPPED.set(max(one.stopped for one in watches))

    @property
    def stopped(self) -> int:
        """Partitions with a record that cannot be applied."""
        return len(self._journal.failed)

    def publish_workflows(self) -> None:
        now = self._journal.clock.now_ms()
        counts = {(kind.value, state): 0 for kind in WorkflowKind for state in STATES}
        oldest = dict.fromkeys(counts, now)
        for kind, state, since in islice(self._under_way(now), MAX_COUNTED):
            counts[kind, state] = counts.get((kind, state), 0) + 1
            oldest[kind, state] = min(oldest.get((kind, state), now), since)
        for (kind, state), count in counts.items():
            metrics.WORKFLOWS.labels(kind, state).set(count)
            metrics.WORKFLOW_OLDEST.labels(kind, state).set((now - oldest[kind, state]) / 1000)

    def unresponsive_containers(self) -> str | None:
        """Which segment containers do not answer, in words; None if all do."""
        return problem(self._outages())

    def publish_containers(self) -> None:
        metrics.SILENT_CONTAINERS.clear()
        stores = Counter(str(outage.store or "none") for outage in self._outages().values())
        for store in {*stores, *map(str, cluster_of(self._journal.reader(CLUSTER)).hosts)}:
            metrics.SILENT_CONTAINERS.labels(store).set(stores[store])

    def _outages(self) -> dict[int, Outage]:
        return outages(cluster_of(self._journal.reader(CLUSTER)), self._container_count)

    def _under_way(self, now: int) -> Iterator[tuple[str, str, int]]:
        """The kind, the state and the beginning, in epoch ms, of each workflow that has not ended."""
        for view in self._journal.views():
            for aggregate, since in view.under_way().items():
                state: Any = view.get(aggregate)
                workflow = running(state)
                if workflow is not None:
                    yield workflow.kind.value, "failing" if workflow.attempts else "running", workflow.since
                elif (queued := state.waiting) is not None and queued.is_current(now):
                    yield queued_kind(queued.kind), "waiting", since

    def _folded(self, partition: int) -> int:
        return self._journal.views()[partition].next_offset


_running: set[JournalWatch] = set()
"""Those of this process: each service that shares it has one."""
