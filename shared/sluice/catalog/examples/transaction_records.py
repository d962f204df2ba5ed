"""Examples of the events of transactions: one committed, one aborted, one of an earlier epoch that rolls."""

from sluice.catalog.examples import names as n
from sluice.catalog.examples.history import SUCCESS, History
from sluice.domain.decision import Reply
from sluice.domain.ids import StreamId, TransactionId
from sluice.domain.segment import Segment, number_of, segment_id
from sluice.domain.status import Status
from sluice.domain.stream.events import StreamEpochsRolled, StreamRolled, WriterTimeNoted
from sluice.domain.transaction.commands import AbortReason
from sluice.domain.transaction.events import (
    CommitBatchEnded,
    CommitBatchStarted,
    EmptySegmentsDeleted,
    EmptySegmentsSkipped,
    TransactionAborted,
    TransactionAborting,
    TransactionCommitted,
    TransactionCommitting,
    TransactionDiscarded,
    TransactionOpened,
    TransactionPinged,
    TransactionPrepared,
    TransactionRangeDeleted,
    TransactionRangeDiscarded,
    TransactionRangePrepared,
    TransactionRangeReserved,
    TransactionReady,
)
from sluice.domain.transaction_ids import ids_of_range, transaction_id
from sluice.kafka.topics import ABORT, COMMIT, REQUESTS_TRANSACTIONS

_S, _O = n.SCOPE, n.STREAM
_COMMITS = StreamId(_S, _O).commits
_ORDERS = StreamId(_S, _O).aggregate
_LEASE_MS = 30_000

_SEGMENTS = (
    Segment(segment_id(1, 0), 0.0, 0.5),
    Segment(n.UPPER_LEFT, 0.5, 0.75),
    Segment(n.UPPER_RIGHT, 0.75, 1.0),
)
"""What the writers of a transaction of epoch 1 send to: generalized ids."""

_LAST = transaction_id(1, n.request_id(0x26))
"""Open when the stream is sealed."""

_OTHER = TransactionId(_S, _O, transaction_id(1, n.request_id(0x2A))).aggregate
"""One that does not exist."""


def _opened(history: History, seconds: float, transaction: str, request: str) -> None:
    opened = TransactionOpened(_S, _O, transaction, _LEASE_MS, n.at(seconds), dies_at=n.at(seconds + _LEASE_MS))
    history.append(seconds, n.TRANSACTIONS, opened, decides=REQUESTS_TRANSACTIONS, guards=(_ORDERS,))
    ready = TransactionReady(_S, _O, transaction, at=n.at(seconds + 0.1))
    answer = Reply(Status.OK, transaction=transaction, segments=_SEGMENTS)
    history.append(seconds + 0.1, n.TRANSACTIONS, ready, request=request, reply=answer)


def transactions(history: History) -> None:
    """One is committed, with the time its writer gave; one is aborted because its client did not ping."""
    _opened(history, 50, n.COMMITTED, n.request_id(0x21))
    pinged = TransactionPinged(_S, _O, n.COMMITTED, _LEASE_MS, at=n.at(54))
    history.append(
        54, n.TRANSACTIONS, pinged, decides=REQUESTS_TRANSACTIONS, request=n.request_id(0x23), reply=Reply(Status.OK)
    )
    unknown = Reply(Status.UNKNOWN, "no such transaction")
    history.also(decides=REQUESTS_TRANSACTIONS, request=n.request_id(0x29), reply=unknown, guards=(_OTHER,))
    history.append(
        55,
        n.TRANSACTIONS,
        TransactionCommitting(_S, _O, n.COMMITTED, at=n.at(55), writer=n.WRITER, timestamp=n.at(55)),
        CommitBatchStarted(_S, _O, transactions=(n.COMMITTED,), at=n.at(55)),
        decides=COMMIT,
        request=n.request_id(0x24),
        reply=SUCCESS,
        guards=(_ORDERS,),
    )
    reached = {n.FIRST: 1500, n.UPPER_LEFT: 220, n.UPPER_RIGHT: 180}
    history.append(
        55.2,
        n.TRANSACTIONS,
        WriterTimeNoted(_S, _O, n.WRITER, timestamp=n.at(55), position=reached),
        EmptySegmentsSkipped(_S, _O, segments={n.COMMITTED: (number_of(n.UPPER_LEFT),)}),
        TransactionCommitted(_S, _O, n.COMMITTED, at=n.at(55.2)),
        CommitBatchEnded(_S, _O),
    )
    _opened(history, 56, n.ABORTED, n.request_id(0x22))
    aborting = TransactionAborting(_S, _O, n.ABORTED, AbortReason.LEASE, at=n.at(70))
    history.append(70, n.TRANSACTIONS, aborting, decides=ABORT, request=n.LEASE_CHECK, reply=SUCCESS)
    history.append(70.1, n.TRANSACTIONS, TransactionAborted(_S, _O, n.ABORTED, at=n.at(70.1)))


def prepared(history: History) -> None:
    """Of two that are prepared one is opened, with the reply, and the other one discarded."""
    reserved = TransactionRangeReserved(_S, _O, n.PREPARED, count=2, at=n.at(70.2))
    history.append(70.2, n.TRANSACTIONS, reserved, guards=(_ORDERS,))
    opened, unused = ids_of_range(n.PREPARED, 2)
    each = (TransactionPrepared(_S, _O, id) for id in (opened, unused))
    history.append(70.3, n.TRANSACTIONS, TransactionRangePrepared(_S, _O, n.PREPARED), *each, guards=(_ORDERS,))
    request = n.request_id(0x2B)
    history.append(
        71,
        n.TRANSACTIONS,
        TransactionOpened(_S, _O, opened, _LEASE_MS, n.at(71), n.at(71 + _LEASE_MS), request, prepared=True),
        decides=REQUESTS_TRANSACTIONS,
        request=request,
        reply=Reply(Status.OK, transaction=opened, segments=_SEGMENTS),
        guards=(_ORDERS,),
    )
    aborting = TransactionAborting(_S, _O, opened, AbortReason.USER, at=n.at(71.1))
    history.append(71.1, n.TRANSACTIONS, aborting, decides=ABORT, request=n.request_id(0x2C), reply=SUCCESS)
    history.append(71.2, n.TRANSACTIONS, TransactionAborted(_S, _O, opened, at=n.at(71.2)))
    discarded = TransactionRangeDiscarded(_S, _O, n.PREPARED, transactions=(unused,), at=n.at(71.5))
    history.append(71.5, n.TRANSACTIONS, discarded, TransactionDiscarded(_S, _O, unused))
    history.append(71.6, n.TRANSACTIONS, TransactionRangeDeleted(_S, _O, n.PREPARED))


def rolled(history: History) -> None:
    """The stream has scaled since the transaction was opened: its batch gets an epoch of its own."""
    committing = TransactionCommitting(_S, _O, n.ROLLED, at=n.at(72))
    started = CommitBatchStarted(_S, _O, transactions=(n.ROLLED,), at=n.at(72), rolls=True)
    request = n.request_id(0x27)
    history.append(
        72, n.TRANSACTIONS, committing, started, decides=COMMIT, request=request, reply=SUCCESS, guards=(_ORDERS,)
    )
    sizes = {segment_id(2, 0): 300, segment_id(2, 1): 280}
    duplicated = StreamEpochsRolled(_S, _O, duplicates=0, created_at=n.at(72.1), sealed_sizes=sizes)
    history.append(72.1, n.TRANSACTIONS, duplicated, EmptySegmentsDeleted(_S, _O, batch=1))
    sealed = {n.FIRST: 1500, n.UPPER_LEFT: 220, n.UPPER_RIGHT: 180}
    history.append(
        72.2,
        n.TRANSACTIONS,
        StreamRolled(_S, _O, sealed_sizes=sealed),
        TransactionCommitted(_S, _O, n.ROLLED, at=n.at(72.2)),
        CommitBatchEnded(_S, _O),
        guards=(TransactionId(_S, _O, n.ROLLED).aggregate,),
    )
    _opened(history, 75, _LAST, n.request_id(0x26))


def ended(history: History) -> None:
    """What is still open when its stream is sealed is aborted."""
    aborting = TransactionAborting(_S, _O, _LAST, AbortReason.SEAL, at=n.at(84.1))
    history.append(84.1, n.TRANSACTIONS, aborting, decides=ABORT, request=n.SEAL_ABORT, reply=SUCCESS)
    history.append(84.2, n.TRANSACTIONS, TransactionAborted(_S, _O, _LAST, at=n.at(84.2)))
