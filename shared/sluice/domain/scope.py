"""The scope aggregate: that it is there, and the deletion that may be under way.

A scope holds no list: what is in it exists under its own key, and `domain.listings` shows it.
Rules: controller-grpc-api 5.1, stream-and-transaction-semantics 1.3.
"""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from sluice.domain import events as ev
from sluice.domain.commands import CreateScope, DeleteScope, DeleteScopeRecursive
from sluice.domain.decision import Context, Decision, Reader, Reply, refusal, refuse
from sluice.domain.errors import BusyError, ViewBehindError
from sluice.domain.listings import in_words
from sluice.domain.names import is_scope_name, scope_aggregate
from sluice.domain.status import Status
from sluice.domain.workflow import Workflow, WorkflowKind, running


class Scope(msgspec.Struct):
    name: str
    creation_id: str
    created_at: int
    workflow: Workflow | None = None


class Gets(Protocol):
    """Whatever shows the states of aggregates."""

    def get(self, aggregate: str) -> Any | None: ...


def find_scope(reader: Gets, name: str) -> Scope | None:
    state = reader.get(scope_aggregate(name))
    return state if isinstance(state, Scope) else None


def is_deleted_plainly(scope: Scope | None) -> bool:
    """Whether it is being found out if the scope goes."""
    return _runs(scope, WorkflowKind.DELETE_SCOPE)


def is_deleted_recursively(scope: Scope | None) -> bool:
    """Whether the scope goes for good, with all that is in it."""
    return _runs(scope, WorkflowKind.DELETE_SCOPE_RECURSIVE)


def _runs(scope: Scope | None, kind: WorkflowKind) -> bool:
    workflow = running(scope)
    return workflow is not None and workflow.kind is kind


def _idle_scope(reader: Reader, name: str) -> Scope | None:
    scope = find_scope(reader, name)
    if scope is not None and scope.workflow is not None:
        raise BusyError(f"scope {name}: {scope.workflow.kind.value} is running")
    return scope


def decide_create_scope(reader: Reader, command: CreateScope, context: Context) -> Decision:
    if not is_scope_name(command.scope):
        return refuse(Status.INVALID_SCOPE_NAME)
    if _idle_scope(reader, command.scope) is not None:
        return refuse(Status.SCOPE_EXISTS)
    created = ev.ScopeCreated(scope=command.scope, creation_id=context.request or "", at=context.now)
    return Decision((created,), Reply(Status.SUCCESS))


def decide_delete_scope(reader: Reader, command: DeleteScope, context: Context) -> Decision:
    """A scope with something in it is refused without a workflow. Raises ViewBehindError, to look at all partitions."""
    if _idle_scope(reader, command.scope) is None:
        return refuse(Status.SCOPE_NOT_FOUND)
    if not context.caught_up:
        raise ViewBehindError([view.partition_key for view in reader.everywhere()])
    if held := in_words(reader.everywhere(), command.scope):
        return refuse(Status.SCOPE_NOT_EMPTY, held)
    return _start(command.scope, context, recursive=False)


def decide_delete_recursive(reader: Reader, command: DeleteScopeRecursive, context: Context) -> Decision:
    """Nothing to delete is success (5.1)."""
    if _idle_scope(reader, command.scope) is None:
        return Decision(reply=Reply(Status.SUCCESS))
    return _start(command.scope, context, recursive=True)


def _start(scope: str, context: Context, *, recursive: bool) -> Decision:
    started = ev.ScopeDeletionStarted(scope=scope, recursive=recursive, request=context.request, at=context.now)
    return Decision((started,))


def cancel(reader: Reader, _context: Context, state: Any) -> Decision | None:
    """End the search whether the scope is empty by keeping it; None if not of a scope."""
    scope = find_scope(reader, state.name) if isinstance(state, Scope) else None
    if scope is None or not is_deleted_plainly(scope):
        return None
    is_awaited = scope.workflow is not None and scope.workflow.request is not None
    return Decision((ev.ScopeKept(scope=scope.name),), refusal(Status.FAILURE, "cancelled") if is_awaited else None)


def _created(_state: Scope | None, event: ev.ScopeCreated) -> Scope:
    return Scope(name=event.scope, creation_id=event.creation_id, created_at=event.at)


def _deletion_started(state: Scope, event: ev.ScopeDeletionStarted) -> Scope:
    kind = WorkflowKind.DELETE_SCOPE_RECURSIVE if event.recursive else WorkflowKind.DELETE_SCOPE
    state.workflow = Workflow(kind, event.request, event.at)
    return state


def _deleted(_state: Scope, _event: ev.ScopeDeleted) -> None:
    return None


def _kept(state: Scope, _event: ev.ScopeKept) -> Scope:
    state.workflow = None
    return state


DECIDE: dict[type, Callable[[Reader, Any, Context], Decision]] = {
    CreateScope: decide_create_scope,
    DeleteScope: decide_delete_scope,
    DeleteScopeRecursive: decide_delete_recursive,
}

EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    ev.ScopeCreated: _created,
    ev.ScopeDeletionStarted: _deletion_started,
    ev.ScopeDeleted: _deleted,
    ev.ScopeKept: _kept,
}
