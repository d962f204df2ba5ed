"""The decisions on a key-value table."""

from typing import Any

from sluice.domain.config import MAX_KEY_LENGTH, MAX_SEGMENTS
from sluice.domain.decision import Context, Decide, Decision, Reader, nothing_to_delete, refuse
from sluice.domain.ids import TableId
from sluice.domain.names import is_user_name
from sluice.domain.scope.fences import base_of, missing_scope
from sluice.domain.status import Status
from sluice.domain.stream.decide import initial_segments
from sluice.domain.table import events as ev
from sluice.domain.table.commands import CreateTable, DeleteTable
from sluice.domain.table.state import DeletedTable, Table, find_table
from sluice.domain.workflow import idle, last_reply


def _idle_table(reader: Reader, id: TableId, creation_id: str = "") -> Table | None:
    """The table to begin a workflow on; with a creation id only that creation of it. Raises BusyError."""
    return idle(id, find_table(reader, id), creation_id)


def decide_create(reader: Reader, command: CreateTable, context: Context) -> Decision:
    """Begin the creation of the table. Raises ViewBehindError, BusyError."""
    if not is_user_name(command.table):
        return refuse(Status.INVALID_TABLE_NAME)
    table = _idle_table(reader, command.table_id)
    if refused := missing_scope(reader, command.scope, context):
        return refused
    if table is not None:
        return refuse(Status.TABLE_EXISTS)
    count = command.config.partitions
    if count > MAX_SEGMENTS:
        return refuse(Status.FAILURE, f"a table has at most {MAX_SEGMENTS} partitions, not {count}")
    length = command.config.primary_key_length + command.config.secondary_key_length
    if length > MAX_KEY_LENGTH:
        return refuse(Status.FAILURE, f"keys have at most {MAX_KEY_LENGTH} bytes, both parts together, not {length}")
    gone = reader.get(command.aggregate)
    first = gone.next_number if isinstance(gone, DeletedTable) else 0
    started = ev.TableCreationStarted(
        *command.table_id,
        creation_id=context.request or "",
        config=command.config,
        created_at=context.now,
        segments=initial_segments(count, base_of(reader), first),
        request=context.request,
        at=context.now,
    )
    return Decision((started,))


def finish_create(reader: Reader, id: TableId) -> Decision:
    return Decision((ev.TableCreated(*id),), last_reply(reader.get(id.aggregate)))


def decide_delete(reader: Reader, command: DeleteTable, context: Context) -> Decision:
    table = _idle_table(reader, command.table_id, command.creation_id)
    if table is None:
        return nothing_to_delete(command.creation_id, refuse(Status.TABLE_NOT_FOUND))
    started = ev.TableDeletionStarted(*command.table_id, request=context.request, at=context.now)
    return Decision((started,))


def cancel(_reader: Reader, context: Context, state: Any) -> Decision | None:
    """End a cancelled creation by deleting what there is; None if not of a table."""
    if not isinstance(state, Table) or state.workflow is None:
        return None
    request = state.workflow.request
    undone = ev.TableDeletionStarted(*state.id, request=request, at=context.now, refusal="cancelled")
    return Decision((undone,))


def finish_delete(reader: Reader, id: TableId) -> Decision:
    table = find_table(reader, id)
    if table is None:
        return Decision()
    deleted = ev.TableDeleted(*id, next_number=table.next_number)
    return Decision((deleted,), last_reply(table))


DECIDE: dict[type, Decide] = {
    CreateTable: decide_create,
    DeleteTable: decide_delete,
}
