"""What a scope or a stream looked like at a moment: the journal's partition folded up to it, and no further.

It is the fold that every service makes, over the broker's times; so what comes out is what every service saw.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from sluice.domain.model import DomainModel, JournalRecord, decode_record
from sluice.engine.fold import Outcome, PartitionView
from sluice.engine.partition import partition_of
from sluice.engine.snapshots import SnapshotManifest
from sluice.exceptions import in_words
from sluice.kafka.topics import JOURNAL
from sluice.lookback.decoding import ids_of
from sluice.lookback.errors import LookbackError
from sluice.lookback.progress import Advance, Progress
from sluice.lookback.snapshots import begin
from sluice.lookback.source import KafkaRecord, Source, Span


class Cause(msgspec.Struct, frozen=True):
    """The entry of the journal that made something as it is, or the snapshot that has it so.

    `at` is when the broker appended its record, epoch ms.
    """

    partition: int
    offset: int
    at: int
    types: tuple[str, ...]
    by: str
    request: str | None


class Past(msgspec.Struct, frozen=True):
    """The view of one partition at a moment; `causes` has the last entry that touched each requested aggregate."""

    view: PartitionView
    partition: int
    records: int
    causes: dict[str, Cause]


class Watcher(Protocol):
    """Looks over the fold of one partition into `view`."""

    view: PartitionView

    def before(self, message: KafkaRecord, record: JournalRecord) -> None:
        """The record is about to be folded."""
        ...

    def folded(self, message: KafkaRecord, record: JournalRecord, outcomes: list[Outcome]) -> None: ...


def fold(
    source: Source,
    spans: Sequence[Span],
    watchers: Mapping[int, Watcher],
    advance: Advance = lambda _steps: None,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Fold whole partitions side by side, a watcher for each, or only as long as it is not over.

    Raises LookbackError where a partition itself stops, and where records are missing: what comes behind them cannot be
    judged.
    """
    for item in source.read(spans):
        if isinstance(item, Span):
            continue
        watcher = watchers[item.partition]
        if item.offset != watcher.view.next_offset:
            raise LookbackError(
                f"partition {item.partition} of the journal lacks its records from offset {watcher.view.next_offset} "
                f"to {item.offset}: they were trimmed",
                "what was trimmed is in the archive, if there is one: SLUICE_ARCHIVE says where",
            )
        try:
            record = decode_record(item.value or b"")
            watcher.before(item, record)
            outcomes = watcher.view.fold(record, item.offset, item.at)
        except Exception as error:
            raise LookbackError(
                f"partition {item.partition} of the journal stops at offset {item.offset}: {in_words(error)}",
                f"every service stops there, too; what was before {item.at} (epoch ms) can be shown with --at",
            ) from error
        watcher.folded(item, record, outcomes)
        advance(1)
        if is_over():
            return


class _Moment:
    """Folds up to and with `until_ms` and remembers what touched the requested aggregates last."""

    def __init__(self, aggregates: frozenset[str]) -> None:
        self.view = PartitionView(DomainModel())
        self.causes: dict[str, Cause] = {}
        self.records = 0
        self._aggregates = aggregates

    def began(self, manifest: SnapshotManifest) -> None:
        """What the view has is from this snapshot: no record before it is left to name."""
        for aggregate in self._aggregates:
            if self.view.get(aggregate) is not None:
                cause = Cause(manifest.partition, manifest.offset, manifest.at, ("Snapshot",), manifest.by, None)
                self.causes[aggregate] = cause

    def before(self, _message: KafkaRecord, _record: JournalRecord) -> None:
        self.records += 1

    def folded(self, message: KafkaRecord, record: JournalRecord, outcomes: list[Outcome]) -> None:
        for entry, outcome in zip(record.entries, outcomes, strict=True):
            if outcome is not Outcome.COUNTED:
                continue
            named = (entry.request, *(id for event in entry.events for id in ids_of(event)))
            request = next((id for id in named if id is not None), None)
            for aggregate in {event.aggregate for event in entry.events} & self._aggregates:
                types = tuple(type(event).__name__ for event in entry.events if event.aggregate == aggregate)
                cause = Cause(message.partition, message.offset, message.at, types, record.by, request)
                self.causes[aggregate] = cause


def past_of(source: Source, key: str, aggregates: frozenset[str], until_ms: int, progress: Progress) -> Past:
    """What the key's partition of the journal made true up to and with `until_ms`."""
    partition = partition_of(key, source.partitions(JOURNAL.name))
    moment = _moments(source, [partition], aggregates, until_ms, progress)[partition]
    return Past(moment.view, partition, moment.records, moment.causes)


def all_past_of(
    source: Source, aggregates: frozenset[str], until_ms: int | None, progress: Progress, partitions: int | None = None
) -> list[Past]:
    """The same of all partitions, or of the first so many, in their order; without `until_ms` of all there is."""
    count = source.partitions(JOURNAL.name) if partitions is None else partitions
    moments = _moments(source, range(count), aggregates, until_ms, progress)
    return [Past(m.view, partition, m.records, m.causes) for partition, m in moments.items()]


def _moments(
    source: Source, partitions: Iterable[int], aggregates: frozenset[str], until_ms: int | None, progress: Progress
) -> dict[int, _Moment]:
    moments = {partition: _Moment(aggregates) for partition in partitions}
    before_ms = None if until_ms is None else until_ms + 1
    spans = source.spans([JOURNAL.name], until_ms=before_ms, partitions=moments)
    left, taken = begin(source, spans, {partition: m.view for partition, m in moments.items()}, until_ms)
    for partition, manifest in taken.items():
        moments[partition].began(manifest)
    with progress("folding", sum(span.length for span in left)) as advance:
        fold(source, left, moments, advance)
    return moments
