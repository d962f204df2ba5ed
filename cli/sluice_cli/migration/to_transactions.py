"""The transactions of a stream of the original, as ours: the living in the order of their commits, and the ended.

A batch of commits that has begun to roll goes on as the same batch, for only that knows the duplicates. Any other one
is forgotten: its transactions come first, and what of them is in the stream counts as merged. Pure functions.
Rules: controller-metadata-store 6.2 and 6.3.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

import msgspec

from sluice.domain.ids import StreamId
from sluice.domain.stream.state import Stream
from sluice.domain.transaction.batch import CommitBatch, Commits
from sluice.domain.transaction.commands import AbortReason
from sluice.domain.transaction.index import StreamTransactions
from sluice.domain.transaction.state import EndedTransaction, Transaction, TransactionState
from sluice.domain.transaction_ids import epoch_of
from sluice.domain.workflow import Workflow, WorkflowKind
from sluice_cli.migration import model, records
from sluice_cli.migration.records import TransactionStatus as Status
from sluice_cli.migration.to_stream import is_rolling

GRACE_MS = 1_200_000
"""How long an open transaction may be silent from the import on: twice the longest lease that the original allows."""


class Transactions(msgspec.Struct):
    """`live` in the order of the index, which has the ended ones, too; `commits` if a batch goes on."""

    index: StreamTransactions
    live: list[Transaction]
    commits: Commits | None = None


def ended_only(found: Iterable[model.CompletedTransaction]) -> StreamTransactions:
    """What is remembered of those of a stream that was deleted."""
    index = StreamTransactions()
    _remember(index, found, None)
    return index


def transactions_of(
    found: model.Stream,
    stream: Stream,
    completed: Iterable[model.CompletedTransaction],
    now: int,
) -> Transactions:
    """All that is known of the stream's transactions."""
    index = StreamTransactions()
    _remember(index, completed, stream.created_at)
    ended = {one.id for one in completed}
    living = {
        id: record
        for table in found.transactions.values()
        for id, record in table.items()
        if id not in ended and record.status not in (Status.COMMITTED, Status.ABORTED)
    }
    for id in _rolled(found, stream, living):
        index.newest.append(1, EndedTransaction(str(id), TransactionState.COMMITTED, now))
        del living[id]
    _, batch = _begun(found, living)
    others = sorted(
        (id for id, record in living.items() if record.status is Status.COMMITTING and id not in batch),
        key=lambda one: (epoch_of(str(one)), living[one].commit_order),
    )
    made = Transactions(index, [_transaction(stream.id, id, living[id], now) for id in (*batch, *others)])
    for id, record in sorted(living.items()):
        if record.status is not Status.COMMITTING:
            made.live.append(_transaction(stream.id, id, record, now))
    for transaction in made.live:
        _listed(index, transaction.state)[transaction.uuid] = None
    if batch and found.metadata is not None and is_rolling(found.metadata):
        uuids = tuple(map(str, batch))
        made.commits = Commits(stream.id, 1, CommitBatch(WorkflowKind.ROLL_TRANSACTIONS, None, now, transactions=uuids))
    return made


def _listed(index: StreamTransactions, state: TransactionState) -> dict[str, None]:
    return {
        TransactionState.OPEN: index.open,
        TransactionState.COMMITTING: index.committing,
        TransactionState.ABORTING: index.aborting,
    }[state]


def _remember(
    index: StreamTransactions, completed: Iterable[model.CompletedTransaction], created_at: int | None
) -> None:
    """In the order of their ends; those that ended before `created_at` are of a deleted stream of the name."""
    for one in sorted(completed, key=lambda one: (one.ended.time_ms, one.id)):
        state = TransactionState.COMMITTED if one.ended.status is Status.COMMITTED else TransactionState.ABORTED
        index.newest.append(1, EndedTransaction(str(one.id), state, one.ended.time_ms))
        index.of_deleted += created_at is None or one.ended.time_ms < created_at


def _begun(found: model.Stream, living: Mapping[UUID, object]) -> tuple[records.CommittingTransactions, list[UUID]]:
    """The batch that was begun, and those of it that have not ended, in order."""
    begun = found.metadata.committing if found.metadata is not None else None
    begun = begun or records.NO_COMMITS
    return begun, [id for id in begun.transactions if id in living]


def _rolled(found: model.Stream, stream: Stream, living: Mapping[UUID, object]) -> list[UUID]:
    """Those of a batch that has rolled, but for its end: the duplicates that hold it are behind the active epoch."""
    begun, left = _begun(found, living)
    return left if begun.active_epoch not in (records.NO_EPOCH, stream.active) else []


def _transaction(stream: StreamId, id: UUID, record: records.ActiveTransaction, now: int) -> Transaction:
    until = min(max(record.lease_expiry_ms, now + GRACE_MS), record.max_expiry_ms)
    made = Transaction(
        id=stream.transaction(str(id)),
        opened_at=record.created_ms,
        lease_ms=max(until - now, 0),
        last_activity_at=now,
        dies_at=record.max_expiry_ms,
        ready=True,
    )
    if record.status is Status.COMMITTING:
        made.state, made.committing_at = TransactionState.COMMITTING, now
        made.writer, made.timestamp = record.writer_id, record.commit_time_ms
    elif record.status is Status.ABORTING or until <= now:
        made.state, made.reason = TransactionState.ABORTING, None if until > now else AbortReason.LEASE
        made.workflow = Workflow(WorkflowKind.ABORT_TRANSACTION, None, now)
    return made
