"""The scope aggregate: which names it holds.

A name is reserved here before its stream, reader group or table is created under its own key, and released here before
the thing is gone; so a scope is empty exactly if nothing lives or is coming to live in it.
Rules: controller-grpc-api 5.1, stream-and-transaction-semantics 1.3.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from sluice.domain import events as ev
from sluice.domain.commands import (
    Create,
    CreateReaderGroup,
    CreateReserved,
    CreateScope,
    CreateStream,
    CreateTable,
    DeleteScope,
    DeleteScopeRecursive,
    JoinCreation,
    NameKind,
    ReleaseName,
    ResumeCreation,
)
from sluice.domain.config import MAX_SEGMENTS
from sluice.domain.decision import Context, Decision, Reader, Reply, refuse
from sluice.domain.names import group_stream, is_scope_name, is_stream_name, is_user_name, mark_stream, scope_aggregate
from sluice.domain.workflow import Workflow, WorkflowKind, last_reply


class Entry(msgspec.Struct):
    """A name held by the scope; `create` is what to pass on to its own key, None if that of another name covers it."""

    incarnation: str
    reserved_at: int
    create: Create | None = None


class Scope(msgspec.Struct):
    name: str
    created_at: int
    names: dict[NameKind, dict[str, Entry]] = msgspec.field(default_factory=lambda: {kind: {} for kind in NameKind})
    workflow: Workflow | None = None

    @property
    def streams(self) -> dict[str, Entry]:
        return self.names[NameKind.STREAM]

    def is_empty(self) -> bool:
        return not any(self.names.values())

    def reserved(self) -> Iterator[CreateReserved]:
        """How each thing of this scope comes to be: who takes over the scope sends it again for those not there yet."""
        for held in self.names.values():
            for entry in held.values():
                if entry.create is not None:
                    yield _reserved_by(entry, entry.create)


def find_scope(reader: Reader, name: str) -> Scope | None:
    state = reader.get(scope_aggregate(name))
    return state if isinstance(state, Scope) else None


def decide_create_scope(reader: Reader, command: CreateScope, context: Context) -> Decision:
    if not is_scope_name(command.scope):
        return refuse("INVALID_SCOPE_NAME")
    if find_scope(reader, command.scope) is not None:
        return refuse("SCOPE_EXISTS")
    return Decision((ev.ScopeCreated(scope=command.scope, at=context.now),), Reply("SUCCESS"))


def decide_delete_scope(reader: Reader, command: DeleteScope, _context: Context) -> Decision:
    scope = find_scope(reader, command.scope)
    if scope is None:
        return refuse("SCOPE_NOT_FOUND")
    if scope.workflow is not None:
        return refuse("SCOPE_NOT_EMPTY", "it is being deleted with all that is in it")
    if not scope.is_empty():
        held = ", ".join(f"{len(names)} x {kind.value}" for kind, names in scope.names.items() if names)
        return refuse("SCOPE_NOT_EMPTY", held)
    return Decision((ev.ScopeDeleted(scope=command.scope),), Reply("SUCCESS"))


def decide_delete_recursive(reader: Reader, command: DeleteScopeRecursive, context: Context) -> Decision:
    """Nothing to delete, or on its way already, is success (5.1).

    The request that has begun it, if it comes again, is answered at the end.
    """
    scope = find_scope(reader, command.scope)
    if scope is None:
        return Decision(reply=Reply("SUCCESS"))
    if scope.workflow is not None:
        return Decision() if scope.workflow.request == context.request else Decision(reply=Reply("SUCCESS"))
    return Decision((ev.ScopeDeletionStarted(scope=command.scope, request=context.request, at=context.now),))


def finish_delete_recursive(reader: Reader, name: str) -> Decision:
    scope = find_scope(reader, name)
    if scope is None or scope.workflow is None or not scope.is_empty():
        return Decision()
    return Decision((ev.ScopeDeleted(scope=name),), last_reply(scope.workflow))


def decide_create_stream(reader: Reader, command: CreateStream, context: Context) -> Decision:
    if not is_stream_name(command.stream):
        return refuse("INVALID_STREAM_NAME")
    return _create(reader, command, context)


def decide_create_group(reader: Reader, command: CreateReaderGroup, context: Context) -> Decision:
    if not is_user_name(command.group):
        return refuse("INVALID_RG_NAME")
    return _create(reader, command, context)


def decide_create_table(reader: Reader, command: CreateTable, context: Context) -> Decision:
    if not is_user_name(command.table):
        return refuse("INVALID_TABLE_NAME")
    return _create(reader, command, context)


def decide_resume(reader: Reader, command: ResumeCreation, context: Context) -> Decision:
    """The thing that the creation has waited for may have gone, or its own creation was lost on its way.

    So what holds the name is passed on once more; if still nothing comes of it, people are told.
    """
    again, held = command.again or context.again or context.is_late(command.asked_at), command.held

    def is_held(entry: Entry) -> Decision:
        if entry.incarnation == held:
            return refuse("FAILURE", f"the name is held by request {held}, of which nothing came; see the dead letters")
        passed_on = (_reserved_by(entry, entry.create),) if entry.create is not None else ()
        return Decision(sends=(*passed_on, JoinCreation(command.create, again, entry.incarnation, command.asked_at)))

    return _reserve(reader, command.create, context, again, is_held)


def _create(reader: Reader, command: Create, context: Context) -> Decision:
    joins = Decision(sends=(JoinCreation(command, context.again, asked_at=context.asked_at),))
    return _reserve(reader, command, context, context.again, lambda _entry: joins)


def _reserve(
    reader: Reader, create: Create, context: Context, again: bool, is_held: Callable[[Entry], Decision]
) -> Decision:
    """Reserve the name. The thing's own key answers the request, unless it is refused here.

    One that has come `again` reserves nothing: it did so before, or was refused. What is wrong with the thing counts
    only if nothing has its name; `is_held` says what to do if another one has.
    """
    scope = find_scope(reader, create.scope)
    if scope is None:
        return refuse("SCOPE_NOT_FOUND")
    entry = scope.names[create.kind].get(create.name)
    request = context.request or ""
    if entry is not None and entry.incarnation == request:
        return Decision(sends=(_reserved_by(entry, create),))
    if scope.workflow is not None:
        return refuse("SCOPE_NOT_FOUND", "the scope is being deleted")
    if entry is not None:
        return is_held(entry)
    if again:
        return refuse("FAILURE", "the request has come again, and nothing is there that it has created")
    if wrong := _wrong_with(create):
        return refuse("FAILURE", wrong)
    reserved = ev.NameReserved(scope=create.scope, create=create, incarnation=request, at=context.now)
    return Decision((reserved,), sends=(CreateReserved(create, request, context.now),))


def _reserved_by(entry: Entry, create: Create) -> CreateReserved:
    return CreateReserved(create, entry.incarnation, entry.reserved_at)


def _wrong_with(create: Create) -> str:
    match create:
        case CreateStream():
            segments = create.config.scaling.min_segments
            right = 1 <= segments <= MAX_SEGMENTS
            return "" if right else f"a stream has 1 to {MAX_SEGMENTS} segments, not {segments}"
        case CreateTable():
            count = create.config.partitions
            return "" if count <= MAX_SEGMENTS else f"a table has at most {MAX_SEGMENTS} partitions, not {count}"
        case CreateReaderGroup():
            return ""


def _streams_along(kind: NameKind, name: str) -> tuple[str, ...]:
    """The streams that are created and deleted together with a thing."""
    match kind:
        case NameKind.STREAM:
            return (mark_stream(name),)
        case NameKind.READER_GROUP:
            return (group_stream(name), mark_stream(group_stream(name)))
        case NameKind.TABLE:
            return ()


def decide_release(reader: Reader, command: ReleaseName, _context: Context) -> Decision:
    scope = find_scope(reader, command.scope)
    if scope is None:
        return Decision()
    wanted = [(command.kind, command.name)]
    wanted += [(NameKind.STREAM, stream) for stream in _streams_along(command.kind, command.name)]
    held: dict[NameKind, tuple[str, ...]] = {}
    for kind, name in wanted:
        entry = scope.names[kind].get(name)
        if entry is not None and entry.incarnation == command.incarnation:
            held[kind] = (*held.get(kind, ()), name)
    return Decision((ev.NamesReleased(scope=command.scope, names=held),)) if held else Decision()


def _created(_state: Scope | None, event: ev.ScopeCreated) -> Scope:
    return Scope(name=event.scope, created_at=event.at)


def _deletion_started(state: Scope, event: ev.ScopeDeletionStarted) -> Scope:
    state.workflow = Workflow(WorkflowKind.DELETE_SCOPE, event.request, event.at)
    return state


def _deleted(_state: Scope, _event: ev.ScopeDeleted) -> None:
    return None


def _reserved(state: Scope, event: ev.NameReserved) -> Scope:
    create = event.create
    state.names[create.kind][create.name] = Entry(event.incarnation, event.at, create)
    for stream in _streams_along(create.kind, create.name):
        state.streams.setdefault(stream, Entry(event.incarnation, event.at))
    return state


def _released(state: Scope, event: ev.NamesReleased) -> Scope:
    for kind, names in event.names.items():
        for name in names:
            del state.names[kind][name]
    return state


DECIDE: dict[type, Callable[[Reader, Any, Context], Decision]] = {
    CreateScope: decide_create_scope,
    DeleteScope: decide_delete_scope,
    DeleteScopeRecursive: decide_delete_recursive,
    CreateStream: decide_create_stream,
    CreateReaderGroup: decide_create_group,
    CreateTable: decide_create_table,
    ResumeCreation: decide_resume,
    ReleaseName: decide_release,
}

EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    ev.ScopeCreated: _created,
    ev.ScopeDeletionStarted: _deletion_started,
    ev.ScopeDeleted: _deleted,
    ev.NameReserved: _reserved,
    ev.NamesReleased: _released,
}
