"""A search of the journal from a moment backwards, which ends once enough is found.

What counts is known to the fold alone. So a search folds towards the records it looks at, and then these; it looks at a
few records before the moment first, and at more of them while it has not found enough.
"""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from sluice.domain.model import JournalRecord
from sluice.engine.fold import Outcome, PartitionView
from sluice.kafka.topics import JOURNAL
from sluice.lookback.as_of import fold
from sluice.lookback.errors import TimeIsOverError
from sluice.lookback.jobs import JobContext, side_by_side
from sluice.lookback.source import KafkaRecord, Span

MAX_RECORDS = 50_000
"""In one search, unless it has found nothing by then."""

FIRST_RECORDS = 2_000
GROWTH = 5

Order = tuple[int, int, int, int, int]
"""Of an event: time, partition, offset, the entry in the record, the event in the entry. Later ones have higher."""

T = TypeVar("T")


class Collector(Protocol[T]):
    """Finds things in records that are folded, each with its order."""

    found: list[tuple[Order, T]]

    def look_at(self, message: KafkaRecord, record: JournalRecord, outcomes: list[Outcome]) -> None: ...


class _Watcher:
    """See `Watcher` of `as_of`; `first_ms` is when the first record was appended."""

    def __init__(self, view: PartitionView, collector: Collector[T]) -> None:
        self.view = view
        self.first_ms = 0
        self.folded = collector.look_at

    def before(self, message: KafkaRecord, _record: JournalRecord) -> None:
        """See Watcher."""
        self.first_ms = self.first_ms or message.at


class BackwardSearch(Generic[T]):
    """How far back partitions are searched in [since_ms, upper_ms), and what the collector has found there.

    Back to `searched_to` (epoch ms) everything is that can be searched; `complete` if that is the beginning. Of a
    trimmed partition that is what lies behind its oldest snapshot; `kept_from` (epoch ms) is behind the last of these,
    None if all is kept. A job that ran out of time knows nothing of what it searched last.
    """

    def __init__(
        self, context: JobContext, partitions: Sequence[int], since_ms: int, upper_ms: int, collector: Collector[T]
    ) -> None:
        self._context = context
        self._collector = collector
        self._journal = context.journal(partitions, until_ms=upper_ms)
        spans = context.journal(partitions, since_ms, upper_ms) if since_ms else self._journal
        self._ends = {partition: max(span.start, span.end) for partition, span in spans.items()}
        kept = context.kept(self._journal.values())
        self._starts = {partition: max(span.start, kept[partition][0]) for partition, span in spans.items()}
        cut = [kept[p][1] for p, span in spans.items() if self._starts[p] > span.start]
        self.kept_from = max((at for at in cut if at > since_ms), default=None)
        self._first_ms: dict[int, int] = {}
        self._since_ms = since_ms
        self._upper_ms = upper_ms
        self._records = 0
        self.searched_to = upper_ms
        self.complete = False
        self._note()

    def found(self) -> list[tuple[Order, T]]:
        """The latest first."""
        fitting = [one for one in self._collector.found if one[0][0] >= self.searched_to]
        return sorted(fitting, key=lambda one: one[0], reverse=True)

    def go_back(self, is_enough: Callable[[], bool]) -> None:
        """Search until enough is found, all is searched, or one search has looked at as much as it may.

        Raises TimeIsOverError if even what is kept takes too long to be unpacked: then fewer partitions help.
        """
        records = FIRST_RECORDS
        try:
            while not self.complete and not is_enough():
                if self._records >= MAX_RECORDS and self.searched_to < self._upper_ms:
                    return
                self._look_at(records)
                records = max(FIRST_RECORDS, min(records * GROWTH, MAX_RECORDS - self._records))
        except TimeIsOverError:
            # What was folded is kept, so the next search comes further; without anything to keep it would not.
            if self.searched_to >= self._upper_ms and not self._context.records_folded:
                raise

    def _look_at(self, records: int) -> None:
        """Look at so many records more. Raises TimeIsOverError."""
        width = max(1, records // len(self._journal))
        starts = {p: max(start, self._ends[p] - width) for p, start in self._starts.items()}
        for group in side_by_side(p for p, start in starts.items() if start < self._ends[p]):
            views = self._context.views_at([msgspec.structs.replace(self._journal[p], end=starts[p]) for p in group])
            watchers = {p: _Watcher(view, self._collector) for p, view in views.items()}
            fold(self._context.source, [Span(JOURNAL.name, p, starts[p], self._ends[p]) for p in group], watchers)
            for partition, watcher in watchers.items():
                self._first_ms[partition] = watcher.first_ms
                self._records += self._ends[partition] - starts[partition]
                self._ends[partition] = starts[partition]
        self._note()

    def _note(self) -> None:
        """How far all partitions are searched now."""
        left = [self._first_ms.get(p, self._upper_ms - 1) for p, start in self._starts.items() if self._ends[p] > start]
        self.searched_to = max(left) + 1 if left else self._since_ms
        self.complete = not left
