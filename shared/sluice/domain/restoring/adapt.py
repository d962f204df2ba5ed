"""How the states of a back-up go on in another life of the system, where nobody waits for what was under way.

What was open is aborted, what was to be committed is committed, and what is deleted goes on to be deleted. A batch of
commits ends undone: its transactions still wait for their commit, in their order, and what of them is in their targets
already counts as merged. Every other workflow of a stream gives way to `restore-stream`, which finds out how far that,
and whatever came behind it, has got. Tables have their segments created once more.
"""

from collections.abc import Container
from typing import Any

from sluice.domain.cluster.state import Cluster
from sluice.domain.scope.fences import ScopeFences
from sluice.domain.stream.state import Stream, StreamState, StreamWorkflow
from sluice.domain.table.state import Table, TableState
from sluice.domain.transaction.batch import Commits
from sluice.domain.transaction.commands import AbortReason
from sluice.domain.transaction.prepared import PreparedRange
from sluice.domain.transaction.state import PreparedTransaction, Transaction, TransactionState
from sluice.domain.workflow import Workflow, WorkflowKind


def adapted(state: Any, bases: tuple[int, ...], now: int, prepared: Container[str]) -> Any:
    """The state to go on with, None if there is none; the given one may be changed in place.

    `bases` are those of the restores that were made behind the back-up, and of this one. `now` in epoch ms; `prepared`
    are the transactions of the stream that no client has.
    """
    match state:
        case Stream():
            return _stream(state, bases, now)
        case Transaction():
            return _transaction(state, now)
        case PreparedRange():
            return _range(state, now, prepared)
        case Commits():
            state.workflow = None
            return state
        case Table():
            return _table(state, now)
        case PreparedTransaction() | ScopeFences() | Cluster():
            # Of the cluster: who is alive says so itself, and containers are where ZooKeeper says, for stores serve.
            return None
        case _:
            return state


def _stream(state: Stream, bases: tuple[int, ...], now: int) -> Stream:
    workflow, state.waiting = state.workflow, None
    if state.state is StreamState.SEALED or (workflow and workflow.kind is WorkflowKind.DELETE_STREAM):
        return state
    if workflow is not None and workflow.replacement is not None and state.history.count == state.active + 1:
        unnamed = (s.id for s in workflow.replacement.creates)
        state.spare = tuple(sorted({*state.spare, *unnamed}))
    state.state = StreamState.RESTORING
    deletes = workflow.deletes if workflow is not None else ()
    # What came behind a restore that had not ended was not found out yet.
    before = workflow.bases if workflow is not None else ()
    state.workflow = StreamWorkflow(WorkflowKind.RESTORE_STREAM, None, now, deletes=deletes, bases=(*before, *bases))
    return state


def _table(state: Table, now: int) -> Table:
    """Its segments are created as far as they are not there: it may have been deleted since. It serves meanwhile."""
    if state.state is TableState.ACTIVE:
        state.workflow = Workflow(WorkflowKind.CREATE_TABLE, None, now)
    return state


def _transaction(state: Transaction, now: int) -> Transaction:
    if state.state is TransactionState.OPEN:
        state.state, state.reason = TransactionState.ABORTING, AbortReason.RESTORE
        state.workflow = Workflow(WorkflowKind.ABORT_TRANSACTION, None, now)
    return state


def _range(state: PreparedRange, now: int, prepared: Container[str]) -> PreparedRange:
    if state.workflow is None:
        state.discarded = tuple(id for id in state.transactions if not state.ready or id in prepared)
        state.workflow = Workflow(WorkflowKind.DISCARD_TRANSACTIONS, None, now)
    return state
