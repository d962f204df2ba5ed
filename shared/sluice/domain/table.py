"""The key-value table aggregate: partitions with fixed key lengths, each a table segment.

Rules: controller-grpc-api 5.9, background-and-other-workflows 5.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec

from sluice.domain import events as ev
from sluice.domain.commands import CreateTable, DeleteTable
from sluice.domain.config import MAX_SEGMENTS, TableConfig
from sluice.domain.decision import Context, Decision, Reader, refuse
from sluice.domain.errors import BusyError, IllegalStateError
from sluice.domain.fences import missing_scope
from sluice.domain.names import is_user_name, table_aggregate
from sluice.domain.segment_id import number_of
from sluice.domain.status import Status
from sluice.domain.stream.decide import initial_segments
from sluice.domain.workflow import Workflow, WorkflowKind, can_cancel, last_reply


class TableState(Enum):
    CREATING = "CREATING"
    ACTIVE = "ACTIVE"
    DELETING = "DELETING"


class Table(msgspec.Struct):
    scope: str
    name: str
    creation_id: str
    state: TableState
    config: TableConfig
    created_at: int
    segments: tuple[ev.Segment, ...]
    workflow: Workflow | None = None

    @property
    def next_number(self) -> int:
        return max(number_of(s.id) for s in self.segments) + 1


class DeletedTable(msgspec.Struct, frozen=True):
    """What is left of a deleted table: where the numbers of its successor begin."""

    next_number: int


def find_table(reader: Reader, scope: str, name: str) -> Table | None:
    state = reader.get(table_aggregate(scope, name))
    return state if isinstance(state, Table) else None


def _idle_table(reader: Reader, scope: str, name: str, creation_id: str = "") -> Table | None:
    """The table to begin a workflow on; with a creation id only that life of it. Raises BusyError."""
    table = find_table(reader, scope, name)
    if table is None or creation_id not in ("", table.creation_id):
        return None
    if table.workflow is not None:
        raise BusyError(f"{scope}/{name}: {table.workflow.kind.value} is running")
    return table


def _running(reader: Reader, scope: str, name: str, kind: WorkflowKind) -> Table | None:
    table = find_table(reader, scope, name)
    return table if table and table.workflow and table.workflow.kind is kind else None


def current_segments(table: Table) -> tuple[ev.Segment, ...]:
    """The partitions by key range. Raises IllegalStateError while the table is being created."""
    if table.state is TableState.CREATING:
        raise IllegalStateError(f"{table.scope}/{table.name} is being created")
    return table.segments


def decide_create(reader: Reader, command: CreateTable, context: Context) -> Decision:
    """Begin the creation of the table. Raises ViewBehindError, BusyError."""
    if not is_user_name(command.table):
        return refuse(Status.INVALID_TABLE_NAME)
    table = _idle_table(reader, command.scope, command.table)
    if refused := missing_scope(reader, command.scope, context):
        return refused
    if table is not None:
        return refuse(Status.TABLE_EXISTS)
    count = command.config.partitions
    if count > MAX_SEGMENTS:
        return refuse(Status.FAILURE, f"a table has at most {MAX_SEGMENTS} partitions, not {count}")
    gone = reader.get(command.aggregate)
    first = gone.next_number if isinstance(gone, DeletedTable) else 0
    started = ev.TableCreationStarted(
        scope=command.scope,
        table=command.table,
        creation_id=context.request or "",
        config=command.config,
        created_at=context.now,
        segments=initial_segments(count, first),
        request=context.request,
        at=context.now,
    )
    return Decision((started,))


def finish_create(reader: Reader, scope: str, name: str) -> Decision:
    table = _running(reader, scope, name, WorkflowKind.CREATE_TABLE)
    if table is None or (table.workflow and table.workflow.cancelled):
        return Decision()
    return Decision((ev.TableCreated(scope=scope, table=name),), last_reply(table.workflow))


def decide_delete(reader: Reader, command: DeleteTable, context: Context) -> Decision:
    table = _idle_table(reader, command.scope, command.table, command.creation_id)
    if table is None:
        return refuse(Status.TABLE_NOT_FOUND)
    started = ev.TableDeletionStarted(scope=command.scope, table=command.table, request=context.request, at=context.now)
    return Decision((started,))


def cancel(reader: Reader, context: Context, state: Any) -> Decision | None:
    """End a cancelled creation by deleting what there is; None if not of a table."""
    table = find_table(reader, state.scope, state.name) if isinstance(state, Table) else None
    if table is None or table.workflow is None or not can_cancel(table):
        return None
    request = table.workflow.request
    undone = ev.TableDeletionStarted(
        scope=table.scope, table=table.name, request=request, at=context.now, refusal="cancelled"
    )
    return Decision((undone,))


def finish_delete(reader: Reader, scope: str, name: str) -> Decision:
    table = _running(reader, scope, name, WorkflowKind.DELETE_TABLE)
    if table is None:
        return Decision()
    deleted = ev.TableDeleted(scope=scope, table=name, next_number=table.next_number)
    return Decision((deleted,), last_reply(table.workflow))


def _creation_started(_state: Any, event: ev.TableCreationStarted) -> Table:
    return Table(
        scope=event.scope,
        name=event.table,
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


DECIDE: dict[type, Callable[[Reader, Any, Context], Decision]] = {
    CreateTable: decide_create,
    DeleteTable: decide_delete,
}

EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    ev.TableCreationStarted: _creation_started,
    ev.TableCreated: _created,
    ev.TableDeletionStarted: _deletion_started,
    ev.TableDeleted: _deleted,
}
