"""Reports what is counted of the journal: per stream and minute, every few seconds, by the owner of the partition.

At least once and approximate: a report that Kafka did not acknowledge is sent with the next one. What is counted and
not reported yet goes with the process. Everything here belongs to the event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Collection

import msgspec

from sluice.domain.model import JournalEntry
from sluice.domain.stream.events import StreamEvent
from sluice.domain.transaction.events import TransactionEvent
from sluice.engine.partition import partition_keys
from sluice.engine.ports import SendError
from sluice.insight.statistics import (
    Counted,
    Counter,
    Figures,
    PendingFigures,
    StatisticsProgress,
    StreamStatistics,
    WindowKind,
)
from sluice.kafka.headers import cloud_event_headers
from sluice.kafka.topics import STATISTICS
from sluice.runtime import Runtime

log = logging.getLogger(__name__)

PROGRESS_S = 300.0
"""How often a partition gets a progress record in which nothing happens."""

_encoder = msgspec.json.Encoder()


class StatisticsReporter:
    """Counts with `counter` what happens in the partitions that are `owned` here.

    With `progress` it sends, beside the reports, how far each partition is counted; one service does that for all.
    Reports of the others may come an interval later, so a partition in which something happened gets two of these.
    """

    def __init__(
        self, runtime: Runtime, counter: Counter, owned: Callable[[], Collection[int]], *, progress: bool = False
    ) -> None:
        self._runtime = runtime
        self._counter = counter
        self._owned = owned
        self._reports_progress = progress
        self._before: set[int] = set()
        self._active: set[int] = set()
        self._active_before: set[int] = set()
        self._progress_at: dict[int, int] = {}
        self._pending = PendingFigures()
        runtime.journal.on_entry.append(self._observe)

    async def run(self, interval_s: float) -> None:
        """Report for ever."""
        while True:
            await asyncio.sleep(interval_s)
            try:
                await self.report()
            except Exception:
                log.exception("statistics not reported")

    async def report(self) -> None:
        """Send what was counted; return when Kafka has acknowledged it, or what it did not is counted once more."""
        owned, at = set(self._owned()), self._runtime.clock.now_ms()
        if self._before - owned:
            self._counter.forget()
        self._before = owned
        taken = self._pending.take()
        sending = [self._report(counted, figures, at, n) for n, (counted, figures) in enumerate(taken.items())]
        if self._reports_progress:
            sending += [self._send_progress(partition, at) for partition in self._progress_due(owned, at)]
        await asyncio.gather(*sending)
        if self._pending.dropped:
            log.warning("statistics dropped: too many streams", extra={"events": self._pending.dropped})
            self._pending.dropped = 0

    def _progress_due(self, owned: set[int], at: int) -> list[int]:
        active = self._active | self._active_before
        self._active, self._active_before = set(), self._active
        self._progress_at = {partition: sent for partition, sent in self._progress_at.items() if partition in owned}
        current = {partition for partition, sent in self._progress_at.items() if at - sent < 1000 * PROGRESS_S}
        return sorted(owned & active | owned - current)

    def _observe(self, partition: int, entry: JournalEntry) -> None:
        if partition not in self._owned():
            return
        view = self._runtime.journal.views()[partition]
        for event in entry.events:
            if not isinstance(event, StreamEvent | TransactionEvent):
                continue
            self._active.add(partition)
            figures = self._counter.figures(event, view)
            if figures is not None:
                self._pending.add((event.stream_id, WindowKind.MINUTE.begin(view.last_ms)), figures)

    async def _report(self, counted: Counted, figures: Figures, at: int, number: int) -> None:
        stream, minute = counted
        by = self._runtime.source
        report = StreamStatistics(f"{by}-{at}-{number}", by, at, *stream, minute=minute, figures=figures)
        try:
            await self._send(stream.key, report)
        except SendError as error:
            log.warning("statistics wait", extra={"stream": str(stream), "error": str(error)})
            self._pending.add(counted, figures)

    async def _send_progress(self, partition: int, at: int) -> None:
        by = self._runtime.source
        progress = StatisticsProgress(id=f"{by}-{at}-progress-{partition}", by=by, at=at, partition=partition)
        try:
            await self._send(partition_keys(self._runtime.journal.partitions)[partition], progress)
            self._progress_at[partition] = at
        except SendError as error:
            log.warning("progress of statistics not sent", extra={"partition": partition, "error": str(error)})

    def _send(self, key: str, fact: StreamStatistics | StatisticsProgress) -> asyncio.Future[None]:
        headers = cloud_event_headers(type(fact).__name__, fact.id, fact.by, fact.at, key)
        return self._runtime.producer.send(STATISTICS.name, key, _encoder.encode(fact), headers)
