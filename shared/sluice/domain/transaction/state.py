"""What a transaction is, while it is open and once it has ended.

Its state is an aggregate of its own, so that what happens to one transaction never competes with another of the same
stream. Rules: stream-and-transaction-semantics 6.1 and 6.2.
"""

from enum import Enum

import msgspec

from sluice.domain.decision import Reader
from sluice.domain.ids import TransactionId
from sluice.domain.segment import Segment, number_of, segment_id, transaction_segment_name
from sluice.domain.stream.state import Stream
from sluice.domain.transaction.commands import AbortReason
from sluice.domain.transaction_ids import epoch_of, halves
from sluice.domain.workflow import Workflow

LONGEST_CREATION_MS = 120_000
"""How long the segments of a transaction may take to be created before its lease begins to run all the same."""


NO_TIME = -(2**63)
"""What Pravega's clients send as the time of a commit whose user gave none (controller-grpc-api 9.4)."""


class TransactionState(Enum):
    """Pravega's names for the states, as clients see them."""

    OPEN = "OPEN"
    COMMITTING = "COMMITTING"
    ABORTING = "ABORTING"
    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"
    UNKNOWN = "UNKNOWN"


class Transaction(msgspec.Struct, array_like=True):
    """A transaction that has not ended; times in epoch ms, as the broker counts them.

    The lease runs out `lease_ms` after `last_activity_at`, the last ping; none may reach beyond `dies_at`.
    `writer` and `timestamp` are those of its commit, which was requested at `committing_at`, 0 before; `workflow` is
    there while it is being opened or aborted.
    """

    id: TransactionId
    opened_at: int
    lease_ms: int
    last_activity_at: int
    dies_at: int
    state: TransactionState = TransactionState.OPEN
    ready: bool = False
    writer: str = ""
    timestamp: int = 0
    reason: AbortReason | None = None
    workflow: Workflow | None = None
    committing_at: int = 0

    @property
    def uuid(self) -> str:
        return self.id.transaction

    @property
    def has_writers_time(self) -> bool:
        """Whether it was committed with a time of its writer's own, which a watermark may follow from."""
        return self.writer != "" and self.timestamp != NO_TIME

    @property
    def lease_ends_at(self) -> int:
        """When it may be aborted unless its client pings."""
        creation = 0 if self.ready else LONGEST_CREATION_MS
        return self.last_activity_at + self.lease_ms + creation


class PreparedTransaction(msgspec.Struct, frozen=True, array_like=True):
    """An id that no client has yet; its segments exist. See `domain.transaction.prepared`."""


class EndedTransaction(msgspec.Struct, frozen=True, array_like=True):
    """What is remembered of a transaction that has ended; `reason` says why it was aborted, if it was."""

    uuid: str
    state: TransactionState
    at: int
    reason: AbortReason | None = None


def find_transaction(reader: Reader, id: TransactionId) -> Transaction | EndedTransaction | None:
    state = reader.get(id.aggregate)
    return state if isinstance(state, Transaction | EndedTransaction) else None


def open_transaction(reader: Reader, id: TransactionId) -> Transaction | None:
    """The transaction if nothing was decided about its end yet."""
    found = find_transaction(reader, id)
    return found if isinstance(found, Transaction) and found.state is TransactionState.OPEN else None


def segments_to_write(stream: Stream, transaction: str) -> list[Segment]:
    """The segments that the transaction's writers send to, by key range.

    Their ids are generalized: the number of a segment with the transaction's epoch, whatever epoch the segment is of
    (controller-grpc-api 6.2).
    """
    epoch = epoch_of(transaction)
    parents = stream.history.segments_of(epoch)
    return [Segment(segment_id(epoch, number_of(s.id)), s.low, s.high) for s in parents]


def segment_names(stream: Stream, transaction: str) -> dict[int, str]:
    """The names of the transaction's own segments on the data plane, by the number of the segment they stand for."""
    epoch = epoch_of(transaction)
    if not stream.history.has(epoch):
        return {}
    high, low = halves(transaction)
    return {
        number_of(s): transaction_segment_name(*stream.id, s, high, low) for s in stream.history.epoch(epoch).segments
    }
