"""The decisions on one transaction: how it opens, what keeps it, how it ends.

A ping counts from when it is decided, which is never before the broker appended it: our own delay does not shorten
the client's lease. Rules: controller-grpc-api 5.6, stream-and-transaction-semantics 6.
"""

from collections.abc import Set as AbstractSet
from functools import partial

import msgspec

from sluice.domain.decision import Context, Decide, Decision, Reader, Reply, refusal, refuse
from sluice.domain.ids import TransactionId
from sluice.domain.status import Status
from sluice.domain.stream.state import Stream, StreamState, find_stream
from sluice.domain.transaction import events as ev
from sluice.domain.transaction.batch import batch_of_one
from sluice.domain.transaction.commands import (
    AbortReason,
    AbortTransaction,
    CommitTransaction,
    OpenTransaction,
    PingTransaction,
)
from sluice.domain.transaction.index import transactions_of
from sluice.domain.transaction.prepared import next_prepared
from sluice.domain.transaction.state import (
    EndedTransaction,
    Transaction,
    TransactionState,
    find_transaction,
    open_transaction,
    segments_to_write,
)
from sluice.domain.transaction_ids import transaction_id

_SUCCESS = Decision(reply=Reply(Status.SUCCESS))


class Limits(msgspec.Struct, frozen=True):
    """How many transactions of one stream may be open, and how many may wait for their commit; how long leases last.

    They are those of the instance that decides: what follows from them stands in the event.
    """

    open: int = 10_000
    waiting_commits: int = 5_000
    min_lease_ms: int = 10_000
    max_lease_ms: int = 600_000
    max_life_ms: int = 24 * 3600 * 1000

    def dies_at(self, lease_ms: int, opened_at: int) -> int:
        """Up to when pings may extend the first lease (stream-and-transaction-semantics 6.2)."""
        return opened_at + max(lease_ms, min(1000 * lease_ms, self.max_life_ms))


def decide_open(
    reader: Reader,
    command: OpenTransaction,
    context: Context,
    limits: Limits,
    in_hand: AbstractSet[str] = frozenset(),
) -> Decision:
    """Give the transaction its id: one that is prepared, with the reply, or else a new one.

    The reply to a new one comes when its segments exist, with `decide_ready`. `in_hand` are prepared ones that other
    opens are about to take. It is a hint: an id that is taken is guarded.
    """
    assert context.request is not None
    stream = find_stream(reader, command.stream_id)
    if stream is None or stream.state is StreamState.CREATING:
        return refuse(Status.STREAM_NOT_FOUND, "no such stream")
    if not limits.min_lease_ms <= command.lease_ms <= limits.max_lease_ms:
        bounds = f"{limits.min_lease_ms} to {limits.max_lease_ms} ms (SLUICE_MIN_LEASE_S, SLUICE_MAX_LEASE_S)"
        return refuse(Status.LEASE_OUT_OF_BOUNDS, f"a lease lasts {bounds}, not {command.lease_ms}")
    if stream.state in (StreamState.SEALING, StreamState.SEALED):
        return refuse(Status.STREAM_SEALED, f"the stream is {stream.state.value}")
    if stream.state is StreamState.RESTORING:
        # Should it have been sealed behind the back-up, it would never be committed.
        return refuse(Status.TOO_MANY_OPEN, "the stream is being restored: no transaction may be open")
    present = transactions_of(reader, command.stream_id)
    if len(present.open) + len(present.aborting) >= limits.open:
        reason = f"{limits.open} transactions of this stream are open or being aborted, no more may be"
        return refuse(Status.TOO_MANY_OPEN, reason)
    prepared = next_prepared(reader, stream, in_hand)
    dies_at = limits.dies_at(command.lease_ms, context.now)
    if prepared is not None:
        return _open_prepared(reader, stream, command, context, prepared, dies_at)
    id = stream.id.transaction(transaction_id(stream.active_epoch.reference, context.request))
    if find_transaction(reader, id) is not None:
        return Decision()
    opened = ev.TransactionOpened(*id, command.lease_ms, context.now, dies_at, context.request)
    return Decision((opened,))


def _open_prepared(
    reader: Reader, stream: Stream, command: OpenTransaction, context: Context, prepared: str, dies_at: int
) -> Decision:
    id = stream.id.transaction(prepared)
    reader.get(id.aggregate)  # as it was prepared: never opened, not discarded
    opened = ev.TransactionOpened(*id, command.lease_ms, context.now, dies_at, context.request, prepared=True)
    return Decision((opened,), _where_to_write(stream, prepared))


def _where_to_write(stream: Stream, transaction: str) -> Reply:
    return Reply(Status.OK, transaction=transaction, segments=tuple(segments_to_write(stream, transaction)))


def decide_ready(reader: Reader, id: TransactionId, at: int) -> Decision:
    """Its segments exist: the lease begins and the client learns where to write.

    Nothing if it is ready already, or its end was decided: then `finish_abort` replies.
    """
    stream = find_stream(reader, id.stream_id)
    found = open_transaction(reader, id)
    if stream is None or found is None or found.ready:
        return Decision()
    return Decision((ev.TransactionReady(*id, at=at),), _where_to_write(stream, id.transaction))


def decide_ping(reader: Reader, command: PingTransaction, context: Context, limits: Limits) -> Decision:
    found = find_transaction(reader, command.transaction_id)
    if found is None:
        return refuse(Status.UNKNOWN, "no such transaction")
    if found.state in (TransactionState.COMMITTING, TransactionState.COMMITTED):
        return refuse(Status.COMMITTED)
    if not isinstance(found, Transaction) or found.state is not TransactionState.OPEN:
        return refuse(Status.ABORTED, _why(found))
    if command.lease_ms > limits.max_lease_ms:
        most = f"{limits.max_lease_ms} ms (SLUICE_MAX_LEASE_S)"
        return refuse(Status.LEASE_TOO_LARGE, f"a lease lasts at most {most}, not {command.lease_ms}")
    if context.appended_at + command.lease_ms > found.dies_at:
        life = found.dies_at - found.opened_at
        return refuse(
            Status.MAX_EXECUTION_TIME_EXCEEDED,
            f"it may live for {life} ms (SLUICE_MAX_TRANSACTION_LIFE_S) from its creation at {found.opened_at}",
        )
    pinged = ev.TransactionPinged(
        *command.transaction_id,
        lease_ms=command.lease_ms,
        at=max(context.now, found.last_activity_at),
    )
    return Decision((pinged,), Reply(Status.OK))


def decide_commit(reader: Reader, command: CommitTransaction, context: Context, limits: Limits) -> Decision:
    """From here on it will be committed, in the order in which this was decided.

    Where nothing waits before it, the batch begins in the same record.
    """
    found = find_transaction(reader, command.transaction_id)
    if found is None:
        return refuse(Status.FAILURE, "no such transaction")
    if found.state in (TransactionState.COMMITTING, TransactionState.COMMITTED):
        return _SUCCESS
    if not isinstance(found, Transaction) or found.state is not TransactionState.OPEN:
        return refuse(Status.FAILURE, _why(found))
    if not found.ready:
        return refuse(Status.FAILURE, "its segments are being created: no client has it yet")
    before = transactions_of(reader, command.stream_id).committing
    if len(before) >= limits.waiting_commits:
        most = limits.waiting_commits
        return refuse(Status.TOO_MANY_WAITING, f"{most} transactions of this stream wait for their commit, no more may")
    committing = ev.TransactionCommitting(
        *command.transaction_id,
        at=context.now,
        writer=command.writer,
        timestamp=command.timestamp,
    )
    begun = () if before else batch_of_one(reader, command.stream_id, context, command.transaction)
    return Decision((committing, *begun), Reply(Status.SUCCESS))


def decide_abort(reader: Reader, command: AbortTransaction, context: Context) -> Decision:
    """From here on it will not be committed. With a version in the command only if it has not changed since."""
    found = find_transaction(reader, command.transaction_id)
    if command.version is not None and command.version != reader.version(command.aggregate):
        return Decision()
    if found is None:
        return refuse(Status.FAILURE, "no such transaction")
    if found.state in (TransactionState.ABORTING, TransactionState.ABORTED):
        return _SUCCESS
    if found.state is not TransactionState.OPEN:
        return refuse(Status.FAILURE, f"the transaction is {found.state.value}")
    aborting = ev.TransactionAborting(
        *command.transaction_id,
        reason=command.reason,
        at=context.now,
    )
    return Decision((aborting,), Reply(Status.SUCCESS))


def finish_abort(reader: Reader, id: TransactionId, now: int) -> Decision:
    found = find_transaction(reader, id)
    if not isinstance(found, Transaction) or found.state is not TransactionState.ABORTING:
        return Decision()
    aborted = ev.TransactionAborted(*id, at=now)
    is_opener_waiting = found.workflow is not None and found.workflow.request is not None
    ended = refusal(Status.ENDED, "the transaction was ended while its segments were created")
    return Decision((aborted,), ended if is_opener_waiting else None)


def _why(found: Transaction | EndedTransaction) -> str:
    reasons = {
        AbortReason.USER: "its client requested it",
        AbortReason.LEASE: "its lease ran out",
        AbortReason.SEAL: "its stream was sealed",
        AbortReason.RESTORE: "it was open in the back-up that was restored",
        None: "no reason is known",
    }
    return f"the transaction is {found.state.value}: {reasons[found.reason]}"


def decisions(limits: Limits) -> dict[type, Decide]:
    """Which function decides each command."""
    return {
        OpenTransaction: partial(decide_open, limits=limits),
        PingTransaction: partial(decide_ping, limits=limits),
        CommitTransaction: partial(decide_commit, limits=limits),
        AbortTransaction: decide_abort,
    }
