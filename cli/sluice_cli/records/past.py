"""What a scope or a stream looked like at a moment: the journal's partition folded up to it, and no further.

It is the fold that every service makes, over the broker's times; so what comes out is what every service saw.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from sluice.domain.aggregates import evolve, index
from sluice.journal.partition_view import Outcome, PartitionView
from sluice.journal.record import Record, decode_record
from sluice.messaging.partition import partition_of
from sluice.messaging.topics import JOURNAL
from sluice_cli.errors import CommandError
from sluice_cli.output import Advance, Progress
from sluice_cli.records.source import KafkaRecord, Source, Span


class Cause(msgspec.Struct, frozen=True):
    """The record of the journal that made something as it is; `at` is when the broker appended it, epoch ms."""

    partition: int
    offset: int
    at: int
    types: tuple[str, ...]
    by: str
    request: str | None


class Past(msgspec.Struct, frozen=True):
    """The view of one partition at a moment; `causes` has the last record that touched each aggregate asked for."""

    view: PartitionView
    partition: int
    records: int
    causes: dict[str, Cause]


class Watcher(Protocol):
    """Looks over the fold of one partition into `view`."""

    view: PartitionView

    def before(self, message: KafkaRecord, record: Record) -> None:
        """The record is about to be folded."""
        ...

    def folded(self, message: KafkaRecord, record: Record, outcome: Outcome) -> None: ...


def fold(source: Source, spans: Sequence[Span], watchers: Mapping[int, Watcher], advance: Advance) -> None:
    """Fold whole partitions side by side, a watcher for each. Raises CommandError where a partition itself stops."""
    for item in source.read(spans):
        if isinstance(item, Span):
            continue
        watcher = watchers[item.partition]
        try:
            record = decode_record(item.value or b"")
            watcher.before(item, record)
            outcome = watcher.view.fold(record, item.offset, item.at)
        except Exception as error:
            raise CommandError(
                f"partition {item.partition} of the journal stops at offset {item.offset}: {error!r}",
                f"every service stops there, too; what was before {item.at} (epoch ms) can be shown with --at",
            ) from error
        watcher.folded(item, record, outcome)
        advance(1)


class _Moment:
    """Folds up to and with `until_ms` and remembers what touched the aggregates asked for last."""

    def __init__(self, aggregates: frozenset[str]) -> None:
        self.view = PartitionView(evolve, index)
        self.causes: dict[str, Cause] = {}
        self.records = 0
        self._aggregates = aggregates

    def before(self, _message: KafkaRecord, _record: Record) -> None:
        self.records += 1

    def folded(self, message: KafkaRecord, record: Record, outcome: Outcome) -> None:
        if outcome is not Outcome.COUNTED:
            return
        for aggregate in {event.aggregate for event in record.events} & self._aggregates:
            types = tuple(type(event).__name__ for event in record.events if event.aggregate == aggregate)
            self.causes[aggregate] = Cause(
                message.partition, message.offset, message.at, types, record.by, record.request
            )


def past_of(source: Source, key: str, aggregates: frozenset[str], until_ms: int, progress: Progress) -> Past:
    """What the key's partition of the journal made true up to and with `until_ms`."""
    partition = partition_of(key, source.partitions(JOURNAL.name))
    spans = source.spans([JOURNAL.name], until_ms=until_ms + 1, partitions=[partition])
    moment = _Moment(aggregates)
    with progress("folding", sum(span.length for span in spans)) as advance:
        fold(source, spans, {partition: moment}, advance)
    return Past(moment.view, partition, moment.records, moment.causes)
