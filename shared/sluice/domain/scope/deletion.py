"""How the deletion of a scope goes on and ends: what has to go, the next command for each resource, and the outcome.

The outcome is decided when the views show the fences of all partitions raised (`scope.fences`): from then on the set
of resources in the scope only shrinks. A resource with a running workflow gets its next command when that has ended.
So no command waits in the key queue of a resource that is stuck.
Rules: controller-grpc-api 5.1, background-and-other-workflows 7.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from sluice.domain.commands import Command
from sluice.domain.decision import Decision, Reader, View, refusal
from sluice.domain.ids import ResourceId, ResourceKind
from sluice.domain.listings import in_words, is_empty, members_of
from sluice.domain.reader_group.commands import DeleteReaderGroup
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.scope import events as ev
from sluice.domain.scope.fences import all_raised
from sluice.domain.scope.state import find_scope
from sluice.domain.status import Status
from sluice.domain.stream.commands import DeleteStream, SealStream
from sluice.domain.stream.state import Stream, StreamState
from sluice.domain.table.commands import DeleteTable
from sluice.domain.table.state import Table
from sluice.domain.workflow import last_reply, running

_ORDER = (ResourceKind.READER_GROUP, ResourceKind.TABLE, ResourceKind.STREAM)


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
        return Decision((ev.ScopeKept(scope=name),), reply)
    return Decision((ev.ScopeDeleted(scope=name),), last_reply(scope))


def finish_delete_recursive(reader: Reader, name: str) -> Decision:
    """The end of a recursive deletion, when nothing is left in the scope."""
    scope = find_scope(reader, name)
    if scope is None or not all_raised(reader.elsewhere(name), name):
        return Decision()
    if not is_empty(reader.everywhere(), name):
        return Decision()
    return Decision((ev.ScopeDeleted(scope=name),), last_reply(scope))
