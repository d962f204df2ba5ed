"""What happened, as far as it counted: the archived journal folded, partition by partition. Pure.

The fold is that of the services; so what is counted is what every service took for true.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from sluice.archive.layout import day_of
from sluice.archive.rows import ArchivedRecord, Row, records_of
from sluice.domain.ids import StreamId
from sluice.domain.model import DomainModel, JournalEntry, JournalRecord, decode_record
from sluice.domain.stream.events import StreamScaled
from sluice.domain.transaction.events import TransactionAborted, TransactionCommitted
from sluice.domain.workflow import running
from sluice.engine.fold import Outcome, PartitionView

SCALED = "scaled"
TRANSACTION = "transaction"
WORKFLOW = "workflow"
GAP = "gap"


class Fact(msgspec.Struct, frozen=True):
    """Something of `kind` happened to `name`; `what` says which, `took_ms` how long, 0 for what takes no time.

    A stream was scaled, a transaction was committed or aborted, a workflow ended. Or records of a partition are missing
    before an offset: then nothing is known of that partition from there on. `at` in epoch ms, by the broker's clock.
    """

    day: str
    at: int
    kind: str
    name: str
    what: str = ""
    took_ms: int = 0


class Historian:
    """Folds the records of one partition of one journal, in order."""

    def __init__(self) -> None:
        self._view = PartitionView(DomainModel())
        self._began: dict[str, tuple[str, str, int]] = {}
        self._has_gap = False

    def observe(self, record: ArchivedRecord) -> Iterator[Fact]:
        """What the record made true. Raises msgspec.MsgspecError for one that is none."""
        if self._has_gap:
            return
        if record.offset != self._view.next_offset:
            self._has_gap = True
            yield Fact(day_of(record.at), record.at, GAP, str(record.partition), str(record.offset))
            return
        decoded = decode_record(record.value or b"")
        outcomes = self._view.fold(decoded, record.offset, record.at)
        for entry in _counted(decoded, outcomes):
            yield from (fact for event in entry.events if (fact := _fact(event, record.at)) is not None)
            for aggregate in dict.fromkeys(event.aggregate for event in entry.events):
                yield from self._workflow(aggregate, record.at)

    def _workflow(self, aggregate: str, at: int) -> Iterator[Fact]:
        """The end of the workflow that was changing the aggregate, if another one is now, or none."""
        present = running(self._view.get(aggregate))
        before = self._began.get(aggregate)
        if before is not None and (present is None or present.id != before[0]):
            del self._began[aggregate]
            yield Fact(day_of(at), at, WORKFLOW, aggregate, before[1], at - before[2])
        if present is not None and aggregate not in self._began:
            self._began[aggregate] = present.id, present.kind.value, at


def facts_of(rows: Iterable[Row]) -> Iterator[Fact]:
    """What rows of one partition of one journal say, in the order of offset and entry; a row may come twice."""
    historian = Historian()
    for record in records_of(_each_once(rows)):
        yield from historian.observe(record)


def _each_once(rows: Iterable[Row]) -> Iterator[Row]:
    last = (-1, -1)
    for row in rows:
        if (position := (row["offset"], row["entry"])) > last:
            last = position
            yield row


def _counted(record: JournalRecord, outcomes: list[Outcome]) -> Iterator[JournalEntry]:
    pairs = zip(record.entries, outcomes, strict=True)
    return (entry for entry, outcome in pairs if outcome is Outcome.COUNTED)


def _fact(event: Any, at: int) -> Fact | None:
    match event:
        case StreamScaled():
            return Fact(day_of(at), at, SCALED, StreamId(event.scope, event.stream).key)
        case TransactionCommitted():
            return Fact(day_of(at), at, TRANSACTION, event.transaction, "committed")
        case TransactionAborted():
            return Fact(day_of(at), at, TRANSACTION, event.transaction, "aborted")
    return None
