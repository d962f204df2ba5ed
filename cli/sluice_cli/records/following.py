"""What became of records of the journal, and what the workflows did that they began.

Whether a record counts depends on all before it, so partitions are folded from their start, with the fold of the
services. A workflow belongs to the request whose record began it, until it is over; its records on the way name no
request.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from sluice.domain import events as ev
from sluice.domain.aggregates import evolve, index
from sluice.domain.commands import OpenTransaction
from sluice.domain.names import commits_aggregate, stream_aggregate, transaction_aggregate
from sluice.domain.transaction.ids import transaction_id
from sluice.domain.transaction.state import Transaction, TransactionState
from sluice.domain.workflow import Workflow, running
from sluice.journal.partition_view import Outcome, PartitionView
from sluice.journal.record import Record
from sluice_cli.records.decoding import Decoded
from sluice_cli.records.source import KafkaRecord

Place = tuple[int, int]
"""Partition and offset in the journal."""

BESIDE = (
    ev.WriterTimeNoted
    | ev.WriterRemoved
    | ev.WritersForgotten
    | ev.WatermarkEmitted
    | ev.SubscriberAdded
    | ev.SubscriberRemoved
    | ev.SubscriberCutUpdated
    | ev.ReportsCarried
    | ev.RetentionPolicyAnnounced
    | ev.DecisionNoted
    | ev.WorkflowWaiting
    | ev.WorkflowTurnTaken
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


class Wanted(msgspec.Struct, frozen=True):
    """What to look for: the places of records known already with the ids they belong to, and the commands asked for."""

    places: Mapping[Place, frozenset[str]]
    commands: Mapping[str, tuple[Any, ...]]


class Follower:
    """Looks over the fold of one partition. `outcomes` has the known records, `steps` those of workflows, by place."""

    def __init__(self, wanted: Wanted) -> None:
        self.view = PartitionView(evolve, index)
        self.outcomes: dict[Place, Outcome] = {}
        self.steps: dict[Place, tuple[KafkaRecord, str]] = {}
        self._wanted = wanted
        self._before: dict[str, Workflow | None] = {}
        self._followed: dict[str, tuple[str, Workflow | None]] = {}

    def before(self, message: KafkaRecord, record: Record) -> None:
        """Remember which workflows run before one of the known records is folded."""
        if (message.partition, message.offset) in self._wanted.places:
            aggregates = {event.aggregate for event in record.events}
            self._before = {aggregate: running(self.view.get(aggregate)) for aggregate in aggregates}

    def folded(self, message: KafkaRecord, record: Record, outcome: Outcome) -> None:
        """Note what became of a known record, and what belongs to a workflow that one of them began."""
        place = (message.partition, message.offset)
        known = self._wanted.places.get(place)
        if known is not None:
            self.outcomes[place] = outcome
        if outcome is not Outcome.COUNTED:
            return
        for id in known or ():
            self._begin(id, record)
        self._follow_batches(record)
        followed = self._request_of(record)
        if followed is not None and known is None:
            self.steps[place] = (message, followed)
        self._end(record)

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

    def _begin(self, id: str, record: Record) -> None:
        for event in own_events(record, id, self._wanted.commands.get(id, ())):
            aggregate = event.aggregate
            state = self.view.get(aggregate)
            workflow = running(state)
            is_ending = isinstance(state, Transaction) and state.state is not TransactionState.OPEN
            if is_ending or (workflow is not None and workflow is not self._before.get(aggregate)):
                self._followed[aggregate] = (id, workflow)

    def _follow_batches(self, record: Record) -> None:
        """A batch belongs to the requests whose transactions it commits: to the first of them that is followed."""
        for event in record.events:
            if isinstance(event, ev.CommitBatchStarted):
                aggregates = (transaction_aggregate(event.scope, event.stream, t) for t in event.transactions)
                followed = next((self._followed[a] for a in aggregates if a in self._followed), None)
                if followed is not None:
                    self._followed[event.aggregate] = (followed[0], running(self.view.get(event.aggregate)))

    def _request_of(self, record: Record) -> str | None:
        """The request whose workflow the record belongs to."""
        for event in record.events:
            aggregate = event.aggregate
            if isinstance(event, ev.StreamEpochsRolled | ev.StreamRolled):
                aggregate = commits_aggregate(event.scope, event.stream)
            if aggregate in self._followed and not isinstance(event, BESIDE):
                return self._followed[aggregate][0]
        return None

    def _end(self, record: Record) -> None:
        touched = {event.aggregate for event in record.events}
        touched |= {stream_aggregate(e.scope, e.stream) for e in record.events if isinstance(e, ev.CommitsEvent)}
        for aggregate in touched & self._followed.keys():
            state, (_, workflow) = self.view.get(aggregate), self._followed[aggregate]
            if isinstance(state, Transaction):
                continue
            if workflow is None or running(state) is not workflow:
                del self._followed[aggregate]


def own_events(record: Record, id: str, commands: tuple[Any, ...]) -> list[ev.Event]:
    """The events of a record that belong to a request: all, unless the record holds what others asked for, too."""
    if record.request == id:
        return list(record.events)
    about = {command.aggregate for command in commands if not isinstance(command, OpenTransaction)}
    opened = transaction_id(0, id)[8:]
    return [event for event in record.events if not about.isdisjoint(_touched(event)) or _names(event, id, opened)]


def _touched(event: ev.Event) -> set[str]:
    """The aggregates that an event is about: a batch is about its transactions, too."""
    if isinstance(event, ev.CommitBatchStarted):
        return {transaction_aggregate(event.scope, event.stream, transaction) for transaction in event.transactions}
    return {event.aggregate}


def _names(event: ev.Event, id: str, opened: str) -> bool:
    """Whether the event says that it began for the request; the id of a transaction follows from it."""
    if isinstance(event, ev.TransactionOpened | ev.TransactionReady):
        return event.transaction.endswith(opened)
    return id in (getattr(event, "request", None), getattr(event, "incarnation", None))


def is_reply(found: Decoded, id: str) -> bool:
    """Whether a record of the journal holds the answer to the request."""
    record = found.content
    return isinstance(record, Record) and (id in record.answers or (record.request == id and record.reply is not None))
