"""What must hold of scopes and of what is in them, by a small model of its own, in the order in which records land.

That order is one moment of the whole journal after the other, as no process sees it. It shares nothing with the product
but the events.

- Nothing is created in a scope that is not there, nothing is in a scope that goes.
- Nothing is requested into being in a partition whose fence is raised, before the deletion of its scope has ended.
- No name has two lives at once, no two lives have the same creation id.
- A reply was true at some moment between its request and itself; no request is replied twice.
"""

from dataclasses import dataclass, field
from typing import Any

from simulation.violation import Violation

from sluice.domain.commands import Create
from sluice.domain.model import JournalEntry
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup
from sluice.domain.reader_group.events import ReaderGroupCreationStarted, ReaderGroupDeleted
from sluice.domain.scope.commands import CreateScope, DeleteScope, DeleteScopeRecursive
from sluice.domain.scope.events import FenceRaised, ScopeCreated, ScopeDeleted, ScopeDeletionStarted, ScopeKept
from sluice.domain.stream.commands import CreateStream, DeleteStream, SealStream
from sluice.domain.stream.events import StreamCreationStarted, StreamDeleted
from sluice.domain.table.commands import CreateTable, DeleteTable
from sluice.domain.table.events import TableCreationStarted, TableDeleted
from sluice.domain.workflow import CancelWorkflow, RetryWorkflow
from sluice.kafka.requests import decode_request
from sluice.kafka.topics import REQUESTS_STREAMS
from sluice.memory.broker import MemoryMessage

Thing = tuple[str, str, str]
"""Kind, scope, name."""
_CREATED = StreamCreationStarted | ReaderGroupCreationStarted | TableCreationStarted
_DELETED = StreamDeleted | ReaderGroupDeleted | TableDeleted


@dataclass
class _Scope:
    """`fence` is the position behind the begin of the deletion that runs; `fenced` are the partitions that heed it."""

    creation_id: str
    partition: int
    recursive: bool = False
    fence: int | None = None
    fenced: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class _Moment:
    """Of one scope: whether things may be created in it, whether it is there, and what is in it, by creation id."""

    is_open: bool
    exists: bool
    things: dict[Thing, str]


_NOTHING = _Moment(is_open=False, exists=False, things={})


class ScopeRules:
    """`keys` are the keys that name the partitions."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.scopes: dict[str, _Scope] = {}
        self.things: dict[Thing, str] = {}
        self.deletions = 0
        self.kept = 0
        self._partitions = {key: partition for partition, key in enumerate(keys)}
        self._ends = [0] * len(keys)
        self._used: set[tuple[str, ...]] = set()
        self._moments: dict[str, list[tuple[int, _Moment]]] = {}
        self._now = 0
        self._requested: dict[str, tuple[int, Any]] = {}
        self._replied: set[str] = set()

    def landed(self, message: MemoryMessage) -> None:
        """A request is in its topic."""
        if message.topic() == REQUESTS_STREAMS.name:
            request = decode_request(message.value())
            self._requested.setdefault(request.id, (self._now, request.command))

    def record(self, message: Any, *_: Any) -> None:
        """A record is in the journal; its entries come next."""
        self._ends[message.partition()] = message.offset() + 1

    def entry(self, partition: int, entry: JournalEntry, _at: int) -> None:
        """An entry counts. Raises Violation."""
        self._now += 1
        for event in entry.events:
            self._apply(partition, event)
        for scope in {getattr(event, "scope", "") for event in entry.events}:
            self._remember(scope)
        if entry.reply is not None and entry.request is not None:
            self._judge_reply(entry.request, entry.reply.status, entry)

    # What comes and goes.

    def _apply(self, partition: int, event: Any) -> None:
        match event:
            case ScopeCreated():
                if event.scope in self.scopes:
                    raise Violation(f"{event}: it is there")
                self._use(("scope", event.scope, event.creation_id))
                self.scopes[event.scope] = _Scope(event.creation_id, partition)
            case ScopeDeletionStarted() | FenceRaised() | ScopeKept() | ScopeDeleted():
                self._apply_deletion(partition, event)
            case StreamCreationStarted() | ReaderGroupCreationStarted() | TableCreationStarted():
                self._create(partition, event)
            case StreamDeleted() | ReaderGroupDeleted() | TableDeleted():
                if self.things.pop(_thing(event), None) is None:
                    raise Violation(f"{event}: it is not there")

    def _apply_deletion(self, partition: int, event: Any) -> None:
        match event:
            case ScopeDeletionStarted():
                scope = self._scope(event)
                if scope.fence is not None:
                    raise Violation(f"{event}: it is being deleted already")
                scope.fence, scope.recursive, scope.fenced = self._ends[partition], event.recursive, set()
            case FenceRaised():
                self._raise(event)
            case ScopeKept():
                scope = self._scope(event)
                if scope.fence is None or scope.recursive:
                    raise Violation(f"{event}: no plain deletion runs")
                scope.fence = None
                self.kept += 1
            case ScopeDeleted():
                if self._scope(event).fence is None:
                    raise Violation(f"{event}: no deletion runs")
                if left := [thing for thing in self.things if thing[1] == event.scope]:
                    raise Violation(f"{event}: in it there is {left}")
                del self.scopes[event.scope]
                self.deletions += 1

    def _scope(self, event: Any) -> _Scope:
        scope = self.scopes.get(event.scope)
        if scope is None:
            raise Violation(f"{event}: there is no such scope")
        return scope

    def _raise(self, event: FenceRaised) -> None:
        for scope in self.scopes.values():
            is_behind = scope.partition == self._partitions[event.behind]
            if is_behind and scope.fence is not None and event.position >= scope.fence:
                scope.fenced.add(self._partitions[event.partition_key])

    def _create(self, partition: int, event: _CREATED) -> None:
        thing = _thing(event)
        scope = self._scope(event)
        if thing in self.things:
            raise Violation(f"{event}: it is there")
        # The streams of a reader group come with it, however late.
        if scope.fence is not None and partition in scope.fenced and not thing[2].startswith("_"):
            raise Violation(f"{event}: behind the fence of its scope's deletion")
        self._use((*thing, event.creation_id))
        self.things[thing] = event.creation_id

    def _use(self, life: tuple[str, ...]) -> None:
        if life in self._used:
            raise Violation(f"{life} has lived before")
        self._used.add(life)

    # Replies.

    def _remember(self, name: str) -> None:
        scope = self.scopes.get(name)
        things = {thing: life for thing, life in self.things.items() if thing[1] == name}
        is_open = scope is not None and (scope.fence is None or not scope.recursive)
        self._moments.setdefault(name, []).append((self._now, _Moment(is_open, scope is not None, things)))

    def _since(self, name: str, since: int) -> list[_Moment]:
        """How the scope was then, and at all moments from then on."""
        moments = self._moments.get(name, [])
        before = [moment for at, moment in moments if at <= since]
        return [before[-1] if before else _NOTHING, *(moment for at, moment in moments if at > since)]

    def _judge_reply(self, request: str, status: str, entry: JournalEntry) -> None:
        found = self._requested.get(request)
        if found is None:
            return
        since, command = found
        if isinstance(command, RetryWorkflow | CancelWorkflow):
            return
        if request in self._replied:
            raise Violation(f"{request} {command} was replied twice, at last {entry.reply}")
        self._replied.add(request)
        moments = self._since(command.scope, since)
        if not _may_be(command, status, moments, entry):
            raise Violation(f"{request} {command} was replied {entry.reply}, which was never so: {moments}")


def _may_be(command: Any, status: str, moments: list[_Moment], entry: JournalEntry) -> bool:
    match status:
        case "SCOPE_NOT_FOUND" if isinstance(command, Create):
            return any(not moment.is_open for moment in moments)
        case "SCOPE_NOT_FOUND":
            return any(not moment.exists for moment in moments)
        case "SCOPE_EXISTS":
            return any(moment.exists for moment in moments)
        case "SCOPE_NOT_EMPTY":
            return any(moment.things for moment in moments)
        case "STREAM_EXISTS" | "TABLE_EXISTS":
            return any(_is_there(command, moment) for moment in moments)
        case "STREAM_NOT_FOUND" | "TABLE_NOT_FOUND" | "RG_NOT_FOUND":
            return any(not _is_there(command, moment) for moment in moments)
        case "SUCCESS" if isinstance(command, CreateScope):
            return any(isinstance(event, ScopeCreated) for event in entry.events)
        case "SUCCESS" if isinstance(command, DeleteScope):
            return any(isinstance(event, ScopeDeleted) for event in entry.events)
        case "SUCCESS" if isinstance(command, DeleteScopeRecursive):
            return any(not moment.exists for moment in moments)
        case "SUCCESS" if isinstance(command, CreateStream | CreateTable | CreateReaderGroup | SealStream):
            return any(_is_there(command, moment) for moment in moments)
        case "SUCCESS" if isinstance(command, DeleteStream | DeleteTable | DeleteReaderGroup):
            return any(not _is_there(command, moment) for moment in moments)
    return True


def _is_there(command: Any, moment: _Moment) -> bool:
    """Whether what the command means is there: one life of a name, or whichever."""
    kind, _, _ = command.aggregate.partition(":")
    life = moment.things.get((kind, command.scope, command.aggregate.rpartition("/")[2]))
    return life is not None and getattr(command, "creation_id", "") in ("", life)


def _thing(event: _CREATED | _DELETED) -> Thing:
    kind, _, _ = event.aggregate.partition(":")
    return kind, event.scope, event.aggregate.rpartition("/")[2]
