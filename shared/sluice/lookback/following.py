"""Which entries of the journal belong to a request, what became of them, and what its workflows did.

An entry belongs to the request whose offset is its source, or that its reply goes to, or that its events name. Whether
it counts depends on all before it, so partitions are folded from their start, with the fold of the services. A
workflow belongs to the request whose entry began it, until it is over; what it records on the way names no request.
"""

from collections.abc import Callable, Mapping

import msgspec

from sluice.domain.events import Event
from sluice.domain.model import DomainModel, JournalEntry, JournalRecord
from sluice.domain.stream import events as ev
from sluice.domain.transaction.events import CommitBatchStarted, CommitsEvent, EmptySegmentsDeleted
from sluice.domain.transaction.state import Transaction, TransactionState
from sluice.domain.workflow import Workflow, running
from sluice.engine.fold import Outcome, PartitionView
from sluice.lookback.decoding import ids_of
from sluice.lookback.source import KafkaRecord

BESIDE = (
    ev.WriterTimeNoted
    | ev.WriterRemoved
    | ev.WritersForgotten
    | ev.WatermarkEmitted
    | ev.SubscriberAdded
    | ev.SubscriberRemoved
    | ev.SubscriberCutUpdated
    | ev.ReportsForwarded
    | ev.RetentionPolicyAnnounced
    | ev.DecisionRecorded
    | ev.WorkflowQueued
    | ev.WorkflowAdmitted
    | EmptySegmentsDeleted
)
"""Events that may happen to a stream while a workflow is changing it, and have nothing to do with it."""


class Running(msgspec.Struct, frozen=True, rename="camel"):
    """A workflow that is not over at the end of the journal; `since` in epoch ms."""

    aggregate: str
    kind: str
    since: int
    step: str
    attempts: int
    last_error: str


class FoundEntry(msgspec.Struct, frozen=True):
    """An entry that belongs to a request; `index` is its position in the record.

    `events` are those that concern the request. `is_own` says that the request was decided or replied to by it; if
    not, a workflow recorded it on the way.
    """

    message: KafkaRecord
    by: str
    index: int
    entry: JournalEntry
    outcome: Outcome
    request: str
    events: tuple[Event, ...]
    is_own: bool


class Wanted(msgspec.Struct, frozen=True):
    """What to look for: `requests` has the ids by topic, partition and offset; `is_wanted` knows the others by id."""

    requests: Mapping[tuple[str, int, int], str]
    is_wanted: Callable[[str], bool]

    def request_of(self, partition: int, entry: JournalEntry) -> str | None:
        """The request that the entry decides or replies to, if it is looked for."""
        if entry.source is not None:
            topic = entry.source.topic.partition("@")[0]
            found = self.requests.get((topic, partition, entry.source.offset))
            if found is not None:
                return found
        named = (entry.request, *(id for event in entry.events for id in ids_of(event)))
        return next((id for id in named if id is not None and self.is_wanted(id)), None)


class Follower:
    """Looks over the fold of one partition; `found` are the entries of the requests, in order.

    `undecided` are those requests, by topic, partition and offset, of which no entry has been found yet.
    """

    def __init__(self, wanted: Wanted, view: PartitionView | None = None) -> None:
        self.view = PartitionView(DomainModel()) if view is None else view
        self.undecided = set(wanted.requests)
        self.found: list[FoundEntry] = []
        self._wanted = wanted
        self._before: dict[str, Workflow | None] = {}
        self._followed: dict[str, tuple[str, Workflow | None]] = {}

    def before(self, message: KafkaRecord, record: JournalRecord) -> None:
        """Remember which workflows run before an entry of a request is folded."""
        self._before = {
            event.aggregate: running(self.view.get(event.aggregate))
            for entry in record.entries
            if self._wanted.request_of(message.partition, entry) is not None
            for event in entry.events
        }

    def folded(self, message: KafkaRecord, record: JournalRecord, outcomes: list[Outcome]) -> None:
        """Find the entries that decide the requests, and those of the workflows that these began."""
        for index, (entry, outcome) in enumerate(zip(record.entries, outcomes, strict=True)):
            own = self._wanted.request_of(message.partition, entry)
            if entry.source is not None:
                self.undecided.discard((entry.source.topic.partition("@")[0], message.partition, entry.source.offset))
            if own is not None:
                self.found.append(FoundEntry(message, record.by, index, entry, outcome, own, entry.events, True))
            if outcome is not Outcome.COUNTED:
                continue
            if own is not None:
                self._begin(own, entry)
            self._follow_batches(entry)
            followed = self._followed_by(entry)
            if followed is not None and own is None:
                events = self._concerning(followed, entry)
                self.found.append(FoundEntry(message, record.by, index, entry, outcome, followed, events, False))
            self._end(entry)

    @property
    def is_following(self) -> bool:
        """Whether a workflow of one of the requests is under way."""
        return bool(self._followed)

    def running(self) -> list[Running]:
        """The workflows that are not over."""
        found = []
        for aggregate in self._followed:
            workflow = running(self.view.get(aggregate))
            if workflow is not None:
                found.append(
                    Running(
                        aggregate,
                        workflow.kind.value,
                        workflow.since,
                        workflow.step,
                        workflow.attempts,
                        workflow.last_error,
                    )
                )
        return found

    def _begin(self, id: str, entry: JournalEntry) -> None:
        for event in entry.events:
            aggregate = event.aggregate
            state = self.view.get(aggregate)
            workflow = running(state)
            is_ending = isinstance(state, Transaction) and state.state is not TransactionState.OPEN
            if is_ending or (workflow is not None and workflow is not self._before.get(aggregate)):
                self._followed[aggregate] = (id, workflow)

    def _follow_batches(self, entry: JournalEntry) -> None:
        """A batch belongs to the requests whose transactions it commits: to the first of them that is followed."""
        for event in entry.events:
            if isinstance(event, CommitBatchStarted):
                followed = next((self._followed[a] for a in _about(event) if a in self._followed), None)
                if followed is not None:
                    self._followed[event.aggregate] = (followed[0], running(self.view.get(event.aggregate)))

    def _followed_by(self, entry: JournalEntry) -> str | None:
        """The request whose workflow the entry belongs to."""
        for event in entry.events:
            aggregate = event.aggregate
            if isinstance(event, ev.StreamEpochsRolled | ev.StreamRolled):
                aggregate = event.stream_id.commits
            if aggregate in self._followed and not isinstance(event, BESIDE):
                return self._followed[aggregate][0]
        return None

    def _concerning(self, id: str, entry: JournalEntry) -> tuple[Event, ...]:
        """A batch ends the transactions of many requests: the events about this one's, or all if none is."""
        followed = {aggregate for aggregate, (request, _) in self._followed.items() if request == id}
        return tuple(event for event in entry.events if not followed.isdisjoint(_about(event))) or entry.events

    def _end(self, entry: JournalEntry) -> None:
        touched = {event.aggregate for event in entry.events}
        touched |= {e.stream_id.aggregate for e in entry.events if isinstance(e, CommitsEvent)}
        for aggregate in touched & self._followed.keys():
            state, (_, workflow) = self.view.get(aggregate), self._followed[aggregate]
            if isinstance(state, Transaction):
                continue
            now = running(state)
            if workflow is None or now is None or now.id != workflow.id:
                del self._followed[aggregate]


def _about(event: Event) -> tuple[str, ...]:
    """The aggregates that an event is about: a batch that begins is about its transactions."""
    if isinstance(event, CommitBatchStarted):
        return tuple(event.stream_id.transaction(t).aggregate for t in event.transactions)
    return (event.aggregate,)
