"""What each event makes of a scope."""

from collections.abc import Callable
from typing import Any

from sluice.domain.scope import events as ev
from sluice.domain.scope.state import Scope
from sluice.domain.workflow import Workflow, WorkflowKind


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


EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    ev.ScopeCreated: _created,
    ev.ScopeDeletionStarted: _deletion_started,
    ev.ScopeDeleted: _deleted,
    ev.ScopeKept: _kept,
}
