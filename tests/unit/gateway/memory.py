"""A journal and a runtime in memory: requests are decided by the domain at once, without Kafka.

What a segment store would have to do is taken as done, so that workflows end as soon as they began.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from sluice.domain import events as ev
from sluice.domain import group, scope, table
from sluice.domain.aggregates import DECIDE, evolve, index
from sluice.domain.commands import (
    AbortTransaction,
    AddSubscriber,
    Command,
    CommitTransaction,
    NameKind,
    OpenTransaction,
    PingTransaction,
    ReleaseName,
    RemoveSubscriber,
)
from sluice.domain.decision import Context, Decision, Reader, Reply
from sluice.domain.emptying import next_command, things
from sluice.domain.names import key_of
from sluice.domain.stream import decide, scale
from sluice.domain.stream.state import find_stream
from sluice.domain.transaction import decide as transactions
from sluice.domain.transaction.decide import Limits
from sluice.domain.workflow import WorkflowKind, running
from sluice.journal.partition_view import PartitionView
from sluice.journal.record import Record
from sluice.messaging.partition import partition_of
from sluice.messaging.requests import Request
from sluice.messaging.topics import Topic

PARTITIONS = 16

NOW = 1000

Finish = Callable[[Reader, str, str, Any], Decision]


def _plain(finish: Callable[[Reader, str, str], Decision]) -> Finish:
    return lambda reader, scope, name, _outcome: finish(reader, scope, name)


RECORDS: dict[WorkflowKind, tuple[Finish, ...]] = {
    WorkflowKind.CREATE_STREAM: (_plain(decide.finish_create),),
    WorkflowKind.UPDATE_STREAM: (_plain(scale.add_epoch), decide.finish_update),
    WorkflowKind.SCALE_STREAM: (_plain(scale.add_epoch), scale.finish_scale),
    WorkflowKind.TRUNCATE_STREAM: (_plain(decide.finish_truncate),),
    WorkflowKind.SEAL_STREAM: (_plain(decide.finish_seal),),
    WorkflowKind.DELETE_STREAM: (_plain(decide.finish_delete),),
    WorkflowKind.CREATE_GROUP: (
        lambda reader, scope, name, missing: group.finish_create(reader, Context(NOW), scope, name, missing),
    ),
    WorkflowKind.UPDATE_GROUP: (_plain(group.finish_update),),
    WorkflowKind.DELETE_GROUP: (_plain(group.finish_delete),),
    WorkflowKind.CREATE_TABLE: (_plain(table.finish_create),),
    WorkflowKind.DELETE_TABLE: (_plain(table.finish_delete),),
    WorkflowKind.DELETE_SCOPE: (lambda reader, _none, name, _outcome: scope.finish_delete_recursive(reader, name),),
}
"""What a workflow notes in the journal."""


LIMITS = Limits(open=100, waiting_commits=100)

OF_TRANSACTIONS: dict[type, Callable[[Reader, Any, Context], Decision]] = {
    PingTransaction: transactions.decide_ping,
    CommitTransaction: lambda reader, command, context: transactions.decide_commit(reader, command, context, LIMITS),
    AbortTransaction: transactions.decide_abort,
}


class MemoryJournal:
    """`unavailable` is raised by every barrier as long as it is set."""

    def __init__(self) -> None:
        self.partitions = PARTITIONS
        self.unavailable: Exception | None = None
        self.barriers: list[set[int]] = []
        self._views = [PartitionView(evolve, index) for _ in range(PARTITIONS)]
        self._replies: dict[str, asyncio.Future[Reply]] = {}

    def partition_of(self, key: str) -> int:
        return partition_of(key, PARTITIONS)

    def reader(self, key: str) -> PartitionView:
        return self._views[self.partition_of(key)]

    def views(self) -> list[PartitionView]:
        return self._views

    async def barrier(self, partitions: Iterable[int]) -> None:
        self.barriers.append(set(partitions))
        await asyncio.sleep(0)
        if self.unavailable is not None:
            raise self.unavailable

    def expect_reply(self, request: str, _keys: Iterable[str]) -> asyncio.Future[Reply]:
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._replies[request] = reply
        reply.add_done_callback(lambda _: self._replies.pop(request, None))
        return reply

    @property
    def replies_expected(self) -> int:
        return len(self._replies)

    def append(self, key: str, *events: ev.Event, request: str | None = None, reply: Reply | None = None) -> None:
        view = self.reader(key)
        offset = view.next_offset
        view.fold(Record(id=f"{key}-{offset}", at=0, by="test", expect={}, events=events), offset, 0)
        if reply is not None and request in self._replies:
            self._replies[request].set_result(reply)


class MemoryRuntime:
    """`silent` leaves requests unanswered, `refusing` makes sending fail, `answer` is what every request is told."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self.silent = False
        self.refusing: Exception | None = None
        self.answer: Reply | None = None
        self.sent: list[tuple[str, Request]] = []

    def request(self, id: str, command: Command) -> Request:
        return Request(id=id, at=0, by="api-gateway/test", command=command)

    def send(self, topic: Topic, request: Request) -> asyncio.Future[None]:
        self.sent.append((topic.name, request))
        loop = asyncio.get_running_loop()
        sent: asyncio.Future[None] = loop.create_future()
        if self.refusing is not None:
            sent.set_exception(self.refusing)
            return sent
        sent.set_result(None)
        if not self.silent:
            loop.call_soon(self._decide, request.command, request.id)
        return sent

    def _decide(self, command: Command, request: str | None) -> None:
        key = command.key
        reader, context = self.journal.reader(key), Context(NOW, request, NOW)
        if self.answer is not None:
            self._count(key, Decision(reply=self.answer), request)
        elif isinstance(command, OpenTransaction):
            self._open(command, context)
        elif type(command) in OF_TRANSACTIONS:
            self._count(key, OF_TRANSACTIONS[type(command)](reader, command, context), request)
        else:
            self._count(key, DECIDE[type(command)](reader, command, context), request)
            self._see_through(command.aggregate)

    def _open(self, command: OpenTransaction, context: Context) -> None:
        """Open a transaction, whose segments are there at once."""
        key, scope, name = command.key, command.scope, command.stream
        reader, request = self.journal.reader(key), context.request
        opened = transactions.decide_open(reader, command, context, LIMITS)
        self._count(key, opened, request)
        stream = find_stream(reader, scope, name)
        if opened.reply is None and stream is not None and request is not None:
            id = transactions.opened_by(reader, stream, request)
            self._count(key, transactions.decide_ready(reader, scope, name, id or "", NOW), request)

    def _count(self, key: str, decision: Decision, request: str | None) -> None:
        self.journal.append(key, *decision.events, request=request, reply=decision.reply)
        for following in decision.sends:
            self._decide(following, request)

    def _see_through(self, aggregate: str) -> None:
        """Carry out the aggregate's workflow, and the one that comes of it, if any."""
        key = key_of(aggregate)
        reader = self.journal.reader(key)
        while (workflow := running(reader.get(aggregate))) is not None:
            kind, request = workflow.kind, workflow.request
            state: Any = reader.get(aggregate)
            outcome = self._carry_out(kind, state)
            for record in RECORDS[kind]:
                # A scope is in no other.
                decision = record(reader, getattr(state, "scope", ""), state.name, outcome)
                self._count(key, decision, request)

    def _carry_out(self, kind: WorkflowKind, state: Any) -> Any:
        """What the workflow asks of other keys, and its outcome."""
        match kind:
            case WorkflowKind.UPDATE_STREAM | WorkflowKind.SCALE_STREAM:
                replacement = state.workflow.replacement
                return dict.fromkeys(replacement.seals if replacement else (), 100)
            case WorkflowKind.DELETE_STREAM:
                self._decide(ReleaseName(state.scope, NameKind.STREAM, state.name, state.incarnation), None)
            case WorkflowKind.CREATE_GROUP:
                return self._subscribe(state)
            case WorkflowKind.UPDATE_GROUP:
                self._unsubscribe(state)
                self._subscribe(state)
            case WorkflowKind.DELETE_GROUP:
                self._unsubscribe(state)
                self._decide(group.release(state), None)
            case WorkflowKind.DELETE_TABLE:
                self._decide(table.release(state), None)
            case WorkflowKind.DELETE_SCOPE:
                for thing in list(things(state)):
                    while command := next_command(self.journal.reader(thing.key).get(thing.aggregate)):
                        self._decide(command, None)
        return None

    def _subscribe(self, state: group.ReaderGroup) -> list[str]:
        missing, config = [], state.config
        for name in config.starts if config.subscribes() else ():
            scope_name, _, stream = name.partition("/")
            command = AddSubscriber(scope_name, stream, state.subscriber, config.id, config.generation)
            self._decide(command, None)
            if find_stream(self.journal.reader(command.key), command.scope, command.stream) is None:
                missing.append(name)
        return missing

    def _unsubscribe(self, state: group.ReaderGroup) -> None:
        assert state.workflow is not None
        for name in state.workflow.leaves:
            scope_name, _, stream = name.partition("/")
            self._decide(
                RemoveSubscriber(scope_name, stream, state.subscriber, state.config.generation, state.config.id), None
            )
