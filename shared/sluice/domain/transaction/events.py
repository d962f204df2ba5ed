"""What became true of transactions, and of the batches that commit them."""

from collections.abc import Mapping

import msgspec

from sluice.domain.ids import StreamId, TransactionId
from sluice.domain.names import transaction_aggregate
from sluice.domain.transaction.commands import AbortReason


class TransactionEvent(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    scope: str
    stream: str
    transaction: str

    @property
    def stream_id(self) -> StreamId:
        return StreamId(self.scope, self.stream)

    @property
    def transaction_id(self) -> TransactionId:
        return TransactionId(self.scope, self.stream, self.transaction)

    @property
    def aggregate(self) -> str:
        return transaction_aggregate(self.scope, self.stream, self.transaction)


class TransactionOpened(TransactionEvent, frozen=True):
    """The id is given. Times in epoch ms; no ping may reach beyond `dies_at`.

    If it was `prepared` its segments exist, and the lease runs from `at`. Else they have yet to be created, until when
    no lease runs.
    """

    lease_ms: int
    at: int
    dies_at: int
    request: str | None = None
    prepared: bool = False


class TransactionReady(TransactionEvent, frozen=True):
    """The segments exist; the lease runs from `at`."""

    at: int


class TransactionPinged(TransactionEvent, frozen=True):
    """The lease runs for `lease_ms` from `at`, which is never before the broker appended the ping."""

    lease_ms: int
    at: int


class TransactionCommitting(TransactionEvent, frozen=True):
    """The transaction will be committed, behind those of its stream for which this was said before."""

    at: int
    writer: str = ""
    timestamp: int = 0


class TransactionAborting(TransactionEvent, frozen=True):
    """The transaction will not be committed; its segments have yet to be deleted."""

    reason: AbortReason
    at: int


class TransactionCommitted(TransactionEvent, frozen=True):
    at: int


class TransactionAborted(TransactionEvent, frozen=True):
    at: int


class TransactionPrepared(TransactionEvent, frozen=True):
    """The segments of this id exist: it may be opened."""


class TransactionDiscarded(TransactionEvent, frozen=True):
    """The id was prepared and may not be opened any more; its segments have yet to be deleted."""


class RangeEvent(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    """About transactions that are prepared together; `first` is the first one's id."""

    scope: str
    stream: str
    first: str

    @property
    def stream_id(self) -> StreamId:
        return StreamId(self.scope, self.stream)

    @property
    def first_id(self) -> TransactionId:
        return TransactionId(self.scope, self.stream, self.first)

    @property
    def aggregate(self) -> str:
        return self.first_id.range


class TransactionRangeReserved(RangeEvent, frozen=True):
    """The `count` ids from the first one on are given away; their segments have yet to be created."""

    count: int
    at: int


class TransactionRangePrepared(RangeEvent, frozen=True):
    """All segments of the range exist."""


class TransactionRangeDiscarded(RangeEvent, frozen=True):
    """These transactions of the range will not be opened; their segments have yet to be deleted."""

    transactions: tuple[str, ...]
    at: int


class TransactionRangeDeleted(RangeEvent, frozen=True):
    """The segments of what was discarded are deleted."""


class CommitsEvent(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    scope: str
    stream: str

    @property
    def stream_id(self) -> StreamId:
        return StreamId(self.scope, self.stream)

    @property
    def aggregate(self) -> str:
        return self.stream_id.commits


class CommitBatchStarted(CommitsEvent, frozen=True):
    """These transactions, all of one epoch, are merged in this order; with `rolls` into segments of a new epoch."""

    transactions: tuple[str, ...]
    at: int
    rolls: bool = False


class CommitBatchEnded(CommitsEvent, frozen=True):
    pass


class EmptySegmentsSkipped(CommitsEvent, frozen=True):
    """These segments of the batch that runs were sealed and empty: not merged, to be deleted.

    Their numbers, by transaction.
    """

    segments: Mapping[str, tuple[int, ...]]


class EmptySegmentsDeleted(CommitsEvent, frozen=True):
    """What the stream's batches up to the one of this number have skipped is deleted; the first one has number 1."""

    batch: int


Event = (
    TransactionOpened
    | TransactionReady
    | TransactionPinged
    | TransactionCommitting
    | TransactionAborting
    | TransactionCommitted
    | TransactionAborted
    | TransactionPrepared
    | TransactionDiscarded
    | TransactionRangeReserved
    | TransactionRangePrepared
    | TransactionRangeDiscarded
    | TransactionRangeDeleted
    | CommitBatchStarted
    | CommitBatchEnded
    | EmptySegmentsSkipped
    | EmptySegmentsDeleted
)
