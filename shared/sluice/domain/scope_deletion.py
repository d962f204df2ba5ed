"""The deletions of a scope: how they begin, what has to go, the next command for each resource, and the outcome.

The outcome is decided when the views show the fences of all partitions raised (`scope.fences`): from then on the set
of resources in the scope only shrinks. A resource with a running workflow gets its next command when that has ended.
So no command waits in the key queue of a resource that is stuck.
Rules: controller-grpc-api 5.1, background-and-other-workflows 7.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from sluice.domain.decision import (
    Context,
    Decide,
    Decision,
    Reader,
    Reply,
    View,
    nothing_to_delete,
    refusal,
    refuse,
)
from sluice.domain.errors import ViewBehindError
from sluice.domain.ids import ResourceId, ResourceKind
from sluice.domain.listings import in_words, is_empty, members_of
from sluice.domain.reader_group.commands import DeleteReaderGroup
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.scope.commands import DeleteScope, DeleteScopeRecursive
from sluice.domain.scope.events import ScopeDeleted, ScopeDeletionStarted, ScopeKept
from sluice.domain.scope.fences import all_raised
from sluice.domain.scope.state import Scope, find_scope, idle_scope
from sluice.domain.status import Status
from sluice.domain.stream.commands import DeleteStream, SealStream
from sluice.domain.stream.state import Stream, StreamState
from sluice.domain.table.commands import DeleteTable
from sluice.domain.table.state import Table
from sluice.domain.workflow import last_reply, running

Command = SealStream | DeleteStream | DeleteReaderGroup | DeleteTable
"""What a recursive deletion requests of the resources."""

_ORDER = (ResourceKind.READER_GROUP, ResourceKind.TABLE, ResourceKind.STREAM)


def decide_delete_scope(reader: Reader, command: DeleteScope, context: Context) -> Decision:
    """A scope with something in it is refused without a workflow. Raises ViewBehindError, to look at all partitions."""
    if idle_scope(reader, command.scope, command.creation_id) is None:
        return nothing_to_delete(command.creation_id, refuse(Status.SCOPE_NOT_FOUND))
    if not context.caught_up:
        raise ViewBehindError([view.partition_key for view in reader.everywhere()])
    if held := in_words(reader.everywhere(), command.scope):
        return refuse(Status.SCOPE_NOT_EMPTY, held)
    return _start(command.scope, context, recursive=False)


def decide_delete_recursive(reader: Reader, command: DeleteScopeRecursive, context: Context) -> Decision:
    """Nothing to delete is success (5.1)."""
    if idle_scope(reader, command.scope, command.creation_id) is None:
        return Decision(reply=Reply(Status.SUCCESS))
    return _start(command.scope, context, recursive=True)


def _start(scope: str, context: Context, *, recursive: bool) -> Decision:
    started = ScopeDeletionStarted(scope=scope, recursive=recursive, request=context.request, at=context.now)
    return Decision((started,))


def cancel(_reader: Reader, _context: Context, state: Any) -> Decision | None:
    """End the search whether the scope is empty by keeping it; None if not of a scope."""
    if not isinstance(state, Scope):
        return None
    reply = refusal(Status.FAILURE, "cancelled") if last_reply(state) else None
    return Decision((ScopeKept(scope=state.name),), reply)


def resources(views: Sequence[View], scope: str) -> Iterator[Iterator[ResourceId]]:
    """What is in the scope, for each kind by partition; groups come before what they read.

    Streams that go along with something else are left out.
    """
    members = [members_of(view, scope) for view in views]
    return (map(partial(kind.id, scope), one.resources(kind)) for kind in _ORDER for one in members)


def next_command(state: Any) -> Command | None:
    """The command that brings a resource closer to its end; None while a workflow runs, or if it is not there."""
    if running(state) is not None:
        return None
    match state:
        case Stream():
            is_sealed = state.state is StreamState.SEALED
            return (DeleteStream if is_sealed else SealStream)(*state.id, state.creation_id)
        case ReaderGroup():
            return DeleteReaderGroup(*state.id, creation_id=state.creation_id)
        case Table():
            return DeleteTable(*state.id, state.creation_id)
        case _:
            return None


def finish_delete(reader: Reader, name: str) -> Decision:
    """The outcome of a plain deletion: nothing is in the scope and it is gone, or it is kept."""
    scope = find_scope(reader, name)
    if scope is None or not all_raised(reader.elsewhere(name), name):
        return Decision()
    if held := in_words(reader.everywhere(), name):
        reply = refusal(Status.SCOPE_NOT_EMPTY, held) if last_reply(scope) else None
        return Decision((ScopeKept(scope=name),), reply)
    return Decision((ScopeDeleted(scope=name),), last_reply(scope))


def finish_delete_recursive(reader: Reader, name: str) -> Decision:
    """The end of a recursive deletion, when nothing is left in the scope."""
    scope = find_scope(reader, name)
    if scope is None or not all_raised(reader.elsewhere(name), name):
        return Decision()
    if not is_empty(reader.everywhere(), name):
        return Decision()
    return Decision((ScopeDeleted(scope=name),), last_reply(scope))


DECIDE: dict[type, Decide] = {
    DeleteScope: decide_delete_scope,
    DeleteScopeRecursive: decide_delete_recursive,
}
