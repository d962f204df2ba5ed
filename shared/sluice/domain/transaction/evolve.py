"""How each event changes a transaction, and the batch of commits of its stream."""

from collections.abc import Callable
from typing import Any

from sluice.domain.transaction import events as ev
from sluice.domain.transaction.batch import CommitBatch, Commits
from sluice.domain.transaction.prepared import PreparedRange
from sluice.domain.transaction.state import (
    EndedTransaction,
    PreparedTransaction,
    Transaction,
    TransactionState,
)
from sluice.domain.workflow import Workflow, WorkflowKind


def _opened(_state: Any, event: ev.TransactionOpened) -> Transaction:
    return Transaction(
        id=event.transaction_id,
        opened_at=event.at,
        lease_ms=event.lease_ms,
        last_activity_at=event.at,
        dies_at=event.dies_at,
        ready=event.prepared,
        workflow=None if event.prepared else Workflow(WorkflowKind.OPEN_TRANSACTION, event.request, event.at),
    )


def _ready(state: Transaction, event: ev.TransactionReady) -> Transaction:
    state.ready, state.workflow = True, None
    state.last_activity_at = max(state.last_activity_at, event.at)
    return state


def _pinged(state: Transaction, event: ev.TransactionPinged) -> Transaction:
    if event.at >= state.last_activity_at:
        state.last_activity_at, state.lease_ms = event.at, event.lease_ms
    return state


def _committing(state: Transaction, event: ev.TransactionCommitting) -> Transaction:
    state.state, state.workflow = TransactionState.COMMITTING, None
    state.writer, state.timestamp, state.committing_at = event.writer, event.timestamp, event.at
    return state


def _aborting(state: Transaction, event: ev.TransactionAborting) -> Transaction:
    state.state = TransactionState.ABORTING
    state.reason = event.reason
    opener = state.workflow.request if state.workflow is not None else None
    state.workflow = Workflow(WorkflowKind.ABORT_TRANSACTION, opener, event.at)
    return state


def _committed(state: Transaction, event: ev.TransactionCommitted) -> EndedTransaction:
    return EndedTransaction(state.uuid, TransactionState.COMMITTED, event.at)


def _aborted(state: Transaction, event: ev.TransactionAborted) -> EndedTransaction:
    return EndedTransaction(state.uuid, TransactionState.ABORTED, event.at, state.reason)


def _prepared(_state: Any, _event: ev.TransactionPrepared) -> PreparedTransaction:
    return PreparedTransaction()


def _range_reserved(_state: Any, event: ev.TransactionRangeReserved) -> PreparedRange:
    return PreparedRange(event.first_id, event.count)


def _range_prepared(state: PreparedRange, _event: ev.TransactionRangePrepared) -> PreparedRange:
    state.ready = True
    return state


def _range_discarded(state: PreparedRange, event: ev.TransactionRangeDiscarded) -> PreparedRange:
    state.discarded = event.transactions
    state.workflow = Workflow(WorkflowKind.DISCARD_TRANSACTIONS, None, event.at)
    return state


def _gone(_state: Any, _event: ev.TransactionDiscarded | ev.TransactionRangeDeleted) -> None:
    return None


def _batch_started(state: Commits | None, event: ev.CommitBatchStarted) -> Commits:
    commits = state or Commits(event.stream_id)
    kind = WorkflowKind.ROLL_TRANSACTIONS if event.rolls else WorkflowKind.COMMIT_TRANSACTIONS
    commits.workflow = CommitBatch(kind, None, event.at, transactions=event.transactions)
    commits.batches += 1
    return commits


def _batch_ended(state: Commits, _event: ev.CommitBatchEnded) -> Commits:
    state.workflow = None
    return state


def _segments_skipped(state: Commits, event: ev.EmptySegmentsSkipped) -> Commits:
    state.skipped = {**state.skipped, state.batches: event.segments}
    return state


def _segments_deleted(state: Commits, event: ev.EmptySegmentsDeleted) -> Commits:
    state.skipped = {batch: skipped for batch, skipped in state.skipped.items() if batch > event.batch}
    return state


EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    ev.TransactionOpened: _opened,
    ev.TransactionReady: _ready,
    ev.TransactionPinged: _pinged,
    ev.TransactionCommitting: _committing,
    ev.TransactionAborting: _aborting,
    ev.TransactionCommitted: _committed,
    ev.TransactionAborted: _aborted,
    ev.TransactionPrepared: _prepared,
    ev.TransactionDiscarded: _gone,
    ev.TransactionRangeReserved: _range_reserved,
    ev.TransactionRangePrepared: _range_prepared,
    ev.TransactionRangeDiscarded: _range_discarded,
    ev.TransactionRangeDeleted: _gone,
    ev.CommitBatchStarted: _batch_started,
    ev.CommitBatchEnded: _batch_ended,
    ev.EmptySegmentsSkipped: _segments_skipped,
    ev.EmptySegmentsDeleted: _segments_deleted,
}
