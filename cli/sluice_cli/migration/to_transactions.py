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
from sluice_cli.migration.to_stream import UnfitError, is_rolling

GRACE_MS = 1_200_000
"""How long an open transaction may be silent from the import on: twice the longest lease that the original allows."""

_COUNTER_BITS = 96


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
    counter: int,
    now: int,
) -> Transactions:
    """All that is known of the stream's transactions. Raises UnfitError."""
    index = StreamTransactions()
    _remember(index, completed, stream.created_at)
    ended = {one.id for one in completed}
    living = {
        id: record
        for epoch, table in found.transactions.items()
        for id, record in table.items()
        if id not in ended and _check(stream, epoch, id, record, counter)
    }
    for id in _rolled(found, stream, living):
        index.newest.append(1, EndedTransaction(str(id), TransactionState.COMMITTED, now))
        del living[id]
    batch = _batch(found, stream, living)
    others = sorted(
        (id for id, record in living.items() if record.status is Status.COMMITTING and id not in batch),
        key=lambda one: (epoch_of(str(one)), living[one].commit_order),
    )
    _check_order(stream.id, [living[id] for id in others])
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


def _check(stream: Stream, epoch: int, id: UUID, record: records.ActiveTransaction, counter: int) -> bool:
    """Whether it lives. Raises UnfitError if it cannot be one of the stream."""
    own, key = epoch_of(str(id)), f"transactionsInEpoch-{epoch}/{id}"
    if own != epoch or not stream.history.has(own) or stream.history.reference(own) != own:
        raise UnfitError(stream.id, key, f"epoch {own} of its id is not that of the table, or no epoch of its own")
    if id.int & (1 << _COUNTER_BITS) - 1 > counter:
        raise UnfitError(stream.id, key, f"the counter is {counter}, so its id was never given out")
    if record.status is Status.UNKNOWN:
        raise UnfitError(stream.id, key, "its status is UNKNOWN")
    return record.status not in (Status.COMMITTED, Status.ABORTED)


def _check_order(stream: StreamId, waiting: list[records.ActiveTransaction]) -> None:
    orders = [record.commit_order for record in waiting if record.commit_order != records.NO_TIME]
    if len(set(orders)) < len(orders):
        raise UnfitError(stream, "transactionsInEpoch", "two transactions have the same place in the order of commits")


def _begun(found: model.Stream, living: Mapping[UUID, object]) -> tuple[records.CommittingTransactions, list[UUID]]:
    """The batch that was begun, and those of it that have not ended, in order."""
    begun = found.metadata.committing if found.metadata is not None else None
    begun = begun or records.NO_COMMITS
    return begun, [id for id in begun.transactions if id in living]


def _rolled(found: model.Stream, stream: Stream, living: Mapping[UUID, object]) -> list[UUID]:
    """Those of a batch that has rolled, but for its end: the duplicates that hold it are behind the active epoch."""
    begun, left = _begun(found, living)
    return left if begun.active_epoch not in (records.NO_EPOCH, stream.active) else []


def _batch(found: model.Stream, stream: Stream, living: Mapping[UUID, records.ActiveTransaction]) -> list[UUID]:
    _, left = _begun(found, living)
    if any(living[id].status is not Status.COMMITTING for id in left):
        raise UnfitError(stream.id, "committingTxns", "it names a transaction that is not to be committed")
    return left


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
