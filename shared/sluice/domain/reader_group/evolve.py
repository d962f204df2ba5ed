"""What each event makes of a reader group."""

from collections.abc import Callable
from typing import Any

from sluice.domain.reader_group import events as ev
from sluice.domain.reader_group.state import GroupState, GroupWorkflow, ReaderGroup
from sluice.domain.workflow import WorkflowKind


def _creation_started(_state: Any, event: ev.ReaderGroupCreationStarted) -> ReaderGroup:
    return ReaderGroup(
        id=event.group_id,
        creation_id=event.creation_id,
        state=GroupState.CREATING,
        config=event.config,
        created_at=event.created_at,
        workflow=GroupWorkflow(WorkflowKind.CREATE_GROUP, event.request, event.at),
    )


def _created(state: ReaderGroup, _event: ev.ReaderGroupCreated) -> ReaderGroup:
    state.state, state.workflow = GroupState.ACTIVE, None
    return state


def _update_started(state: ReaderGroup, event: ev.ReaderGroupUpdateStarted) -> ReaderGroup:
    state.config = event.config
    state.workflow = GroupWorkflow(WorkflowKind.UPDATE_GROUP, event.request, event.at, leaves=event.leaves)
    return state


def _updated(state: ReaderGroup, event: ev.ReaderGroupUpdated) -> ReaderGroup:
    state.config = event.config or state.config
    state.workflow = None
    return state


def _deletion_started(state: ReaderGroup, event: ev.ReaderGroupDeletionStarted) -> ReaderGroup:
    leaves = tuple(sorted(state.config.starts)) if state.config.subscribes() else ()
    state.state = GroupState.DELETING
    state.workflow = GroupWorkflow(
        WorkflowKind.DELETE_GROUP, event.request, event.at, refusal=event.refusal, leaves=leaves
    )
    return state


def _deleted(_state: ReaderGroup, _event: ev.ReaderGroupDeleted) -> None:
    return None


EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    ev.ReaderGroupCreationStarted: _creation_started,
    ev.ReaderGroupCreated: _created,
    ev.ReaderGroupUpdateStarted: _update_started,
    ev.ReaderGroupUpdated: _updated,
    ev.ReaderGroupDeletionStarted: _deletion_started,
    ev.ReaderGroupDeleted: _deleted,
}
