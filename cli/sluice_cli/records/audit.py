"""Who changed what, when, and on whose request: the events that counted, of one name or of a whole scope.

What counted is known only to the fold, so the partitions are folded from their start, or from a snapshot before the
time that is asked about; times are the broker's. An event belongs to the request that its entry replies to, or that it
names itself; what a workflow records on its way, to the request for which the workflow was begun.
"""

from collections.abc import Iterable

import msgspec

from sluice.domain.events import Event
from sluice.domain.model import DomainModel, JournalEntry, JournalRecord
from sluice.domain.names import group_stream, stream_key
from sluice.domain.transaction import events as of_transactions
from sluice.domain.workflow import running
from sluice.engine.fold import Outcome, PartitionView
from sluice.engine.partition import partition_of
from sluice.kafka.topics import JOURNAL
from sluice.lookback.as_of import fold
from sluice.lookback.decoding import ids_of, names_of
from sluice.lookback.progress import Progress
from sluice.lookback.snapshots import begin
from sluice.lookback.source import KafkaRecord, Source
from sluice.lookback.wording import facts

PREPARING = frozenset(
    event.__name__
    for event in (
        of_transactions.TransactionPrepared,
        of_transactions.TransactionDiscarded,
        of_transactions.TransactionRangeReserved,
        of_transactions.TransactionRangePrepared,
        of_transactions.TransactionRangeDiscarded,
        of_transactions.TransactionRangeDeleted,
    )
)
"""The types of events by which transactions are prepared before a client wants one, or given up unused."""


class Change(msgspec.Struct, frozen=True):
    """An event that counted. `by` is the instance that proposed it, `request` the one it was done for, empty for none.

    `principal` is who called for that request, empty if the gateway did not know. `at` is when the broker appended it,
    epoch ms; `entry` the position of its entry in the record.
    """

    at: int
    name: str
    type: str
    facts: str
    by: str
    principal: str
    request: str
    partition: int
    offset: int
    entry: int


class Subject(msgspec.Struct, frozen=True):
    """What is asked about: a scope with all that is in it, or with a `name` whatever has that name in the scope.

    Of the streams of a scope those that Sluice keeps for itself, whose names begin with "_", only if `internal`.
    """

    scope: str
    name: str = ""
    internal: bool = False

    def is_in(self, names: Iterable[str]) -> bool:
        """Whether an event with these names is about it."""
        if self.name:
            return f"{self.scope}/{self.name}" in names
        return any(scope == self.scope and (self.internal or inner[:1] != "_") for scope, inner in map(_parts, names))

    def partitions(self, count: int) -> list[int]:
        """The partitions of the journal in which it can be."""
        if not self.name:
            return list(range(count))
        keys = (stream_key(self.scope, self.name), stream_key(self.scope, group_stream(self.name)))
        return sorted({partition_of(key, count) for key in keys})


def _parts(name: str) -> tuple[str, str]:
    scope, _, inner = name.partition("/")
    return scope, inner


class _Cause(msgspec.Struct, frozen=True):
    """What something was done for: a request, and who called."""

    request: str = ""
    principal: str = ""


class _Auditor:
    """Looks over the fold of one partition. `_workflows` has the id of each one that runs, and what it runs for."""

    def __init__(self, subject: Subject, since_ms: int) -> None:
        self.view = PartitionView(DomainModel())
        self.found: list[Change] = []
        self._subject = subject
        self._since_ms = since_ms
        self._workflows: dict[str, tuple[str, _Cause]] = {}

    def before(self, _message: KafkaRecord, _record: JournalRecord) -> None:
        """Nothing is to be remembered."""

    def folded(self, message: KafkaRecord, record: JournalRecord, outcomes: list[Outcome]) -> None:
        for index, (entry, outcome) in enumerate(zip(record.entries, outcomes, strict=True)):
            events = [event for event in entry.events if self._subject.is_in(names_of(event))]
            if outcome is not Outcome.COUNTED or not events:
                continue
            requests = {event.aggregate: "" for event in events}
            for event in events:
                requests[event.aggregate] = requests[event.aggregate] or _named(entry, event)
            causes = {name: self._followed(name, _Cause(id, entry.principal)) for name, id in requests.items()}
            if message.at >= self._since_ms:
                self.found += [_change(message, record, index, event, causes[event.aggregate]) for event in events]

    def _followed(self, aggregate: str, named: _Cause) -> _Cause:
        """What an entry on the aggregate was made for: the request it names, or that of the workflow."""
        present, (id, begun) = running(self.view.get(aggregate)), self._workflows.get(aggregate, ("", _Cause()))
        request = named.request or begun.request or (present and present.request) or ""
        cause = _Cause(request, named.principal or (begun.principal if request == begun.request else ""))
        if present is None:
            self._workflows.pop(aggregate, None)
        elif id != present.id:
            self._workflows[aggregate] = present.id, cause
        return cause


def _named(entry: JournalEntry, event: Event) -> str:
    """The request that the entry replies to, or that the event names; empty for none."""
    return next((id for id in (entry.request, *ids_of(event)) if id), "")


def _change(message: KafkaRecord, record: JournalRecord, index: int, event: Event, cause: _Cause) -> Change:
    return Change(
        at=message.at,
        name=max(names_of(event), key=len),
        type=type(event).__name__,
        facts=facts(event),
        by=record.by,
        principal=cause.principal,
        request=cause.request,
        partition=message.partition,
        offset=message.offset,
        entry=index,
    )


def audit(source: Source, subject: Subject, since_ms: int, until_ms: int, progress: Progress) -> list[Change]:
    """What changed in [since_ms, until_ms), by time. Raises UnreachableError, and LookbackError as `fold` does."""
    partitions = subject.partitions(source.partitions(JOURNAL.name))
    spans = source.spans([JOURNAL.name], until_ms=until_ms, partitions=partitions)
    auditors = {partition: _Auditor(subject, since_ms) for partition in partitions}
    left, _ = begin(source, spans, {partition: one.view for partition, one in auditors.items()}, since_ms)
    with progress("folding", sum(span.length for span in left)) as advance:
        fold(source, left, auditors, advance)
    found = [change for auditor in auditors.values() for change in auditor.found]
    return sorted(found, key=lambda one: (one.at, one.partition, one.offset, one.entry))
