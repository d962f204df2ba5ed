"""What each event makes of a key-value table."""

from collections.abc import Callable
from typing import Any

from sluice.domain.table import events as ev
from sluice.domain.table.state import DeletedTable, Table, TableState
from sluice.domain.workflow import Workflow, WorkflowKind


def _creation_started(_state: Any, event: ev.TableCreationStarted) -> Table:
    return Table(
        id=event.table_id,
        creation_id=event.creation_id,
        state=TableState.CREATING,
        config=event.config,
        created_at=event.created_at,
        segments=event.segments,
        workflow=Workflow(WorkflowKind.CREATE_TABLE, event.request, event.at),
    )


def _created(state: Table, _event: ev.TableCreated) -> Table:
    state.state, state.workflow = TableState.ACTIVE, None
    return state


def _deletion_started(state: Table, event: ev.TableDeletionStarted) -> Table:
    state.state = TableState.DELETING
    state.workflow = Workflow(WorkflowKind.DELETE_TABLE, event.request, event.at, refusal=event.refusal)
    return state


def _deleted(_state: Table, event: ev.TableDeleted) -> DeletedTable:
    return DeletedTable(event.next_number)


EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    ev.TableCreationStarted: _creation_started,
    ev.TableCreated: _created,
    ev.TableDeletionStarted: _deletion_started,
    ev.TableDeleted: _deleted,
}
