"""The records of the original's metadata: what is in the values of its tables, and in its ZooKeeper store.

Each is declared once; `wire.encode` and `wire.decode` follow the declaration. Times are epoch ms, sizes and offsets
bytes. Rules: controller-metadata-store 2.5 and 2.6. Pure.
"""

import zlib
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Annotated, Self

import msgspec

from sluice.pravega.envelope import PayloadReader, text
from sluice_cli.migration.wire import (
    F64,
    I32,
    I64,
    TEXT,
    Blob,
    Bool,
    Ids,
    Offsets,
    Part,
    Record,
    Since,
    Text,
    Texts,
    Uuids,
    dict_of,
    nested,
    optional,
    ordinal,
    part,
    tuple_of,
)

NO_EPOCH = -(1 << 31)
"""In place of an epoch: there is none."""
NO_TIME = -(1 << 63)
"""In place of a time or a position: there is none."""


class StreamState(IntEnum):
    """What a stream is busy with."""

    UNKNOWN = 0
    CREATING = 1
    ACTIVE = 2
    UPDATING = 3
    SCALING = 4
    COMMITTING_TXN = 5
    TRUNCATING = 6
    SEALING = 7
    SEALED = 8


class ThingState(IntEnum):
    """What a reader group or key-value table is busy with."""

    UNKNOWN = 0
    CREATING = 1
    DELETING = 2
    ACTIVE = 3


class TransactionStatus(IntEnum):
    """How far a transaction is."""

    UNKNOWN = 0
    OPEN = 1
    COMMITTING = 2
    COMMITTED = 3
    ABORTING = 4
    ABORTED = 5


class ScaleKind(IntEnum):
    """What a target rate counts."""

    FIXED = 0
    KILOBYTES = 1
    EVENTS = 2


class RetentionKind(IntEnum):
    """What a retention policy limits."""

    TIME = 0
    SIZE = 1


class GroupRetention(IntEnum):
    """How a reader group holds back retention."""

    NONE = 0
    MANUAL = 1
    AUTOMATIC = 2


class SegmentRecord(Record, frozen=True):
    """A segment of a stream or table."""

    number: I32
    creation_ms: I64
    creation_epoch: I32
    low: F64
    high: F64

    @property
    def id(self) -> int:
        """What clients know it by."""
        return self.creation_epoch << 32 | self.number


Segments = Annotated[tuple[SegmentRecord, ...], tuple_of(nested(SegmentRecord))]


class ScalingPolicy(Record, frozen=True):
    """When segments are split and merged."""

    kind: Annotated[ScaleKind, ordinal(ScaleKind)]
    target_rate: I32
    scale_factor: I32
    min_segments: I32


class RetentionPolicy(Record, frozen=True):
    """When a stream is truncated; `limit` and `most` are ms or bytes, `most` 0: none."""

    kind: Annotated[RetentionKind, ordinal(RetentionKind)]
    limit: I64
    most: Annotated[I64, Since(1)] = 0


class StreamConfiguration(Record, frozen=True):
    """What a stream's owner chose; `updating`: a change was requested and is not done."""

    scope: Text
    stream: Text
    scaling: Annotated[ScalingPolicy | None, optional(ScalingPolicy)]
    retention: Annotated[RetentionPolicy | None, optional(RetentionPolicy)]
    updating: Bool
    timestamp_aggregation_ms: Annotated[I64, Since(1)] = 0
    tags: Annotated[Texts, Since(2)] = ()
    tags_only: Bool = False
    removed_tags: Texts = ()
    rollover_bytes: Annotated[I64, Since(3)] = 0


class StateRecord(Record, frozen=True):
    """The state of a stream."""

    state: Annotated[StreamState, ordinal(StreamState)]


class ThingStateRecord(Record, frozen=True):
    """The state of a reader group or key-value table."""

    state: Annotated[ThingState, ordinal(ThingState)]


class EpochRecord(Record, frozen=True):
    """The segments of an epoch; `reference` is another epoch if it repeats that one. Splits and merges -1: unknown."""

    epoch: I32
    reference: I32
    segments: Segments
    creation_ms: I64
    splits: Annotated[I64, Since(1)] = -1
    merges: I64 = -1


class HistoryRecord(Record, frozen=True):
    """What changed with an epoch."""

    epoch: I32
    reference: I32
    sealed: Segments
    created: Segments
    time_ms: I64


class HistoryChunk(Record, frozen=True):
    """A thousand epochs; all of it follows from the epoch records."""

    records: Annotated[tuple[HistoryRecord, ...], tuple_of(nested(HistoryRecord))]


class SealedSizes(Record, frozen=True):
    """Sizes of sealed segments."""

    sizes: Offsets


class Range(Part, frozen=True):
    """A range of keys."""

    low: F64
    high: F64


class NewSegment(Part, frozen=True):
    """A segment that a scale makes; there is one range."""

    id: I64
    ranges: Annotated[tuple[Range, ...], tuple_of(part(Range))]


class EpochTransition(Record, frozen=True):
    """A scale from `active_epoch` to the next one; NO_EPOCH: none."""

    active_epoch: I32
    time_ms: I64
    sealed: Ids
    created: Annotated[tuple[NewSegment, ...], tuple_of(part(NewSegment))]


class SpanEntry(Part, frozen=True):
    """A segment at the head of a stream, with the epoch in which the cut meets it."""

    segment: Annotated[SegmentRecord, nested(SegmentRecord)]
    epoch: I32


class Truncation(Record, frozen=True):
    """Where a stream begins; `updating`: `to_delete` is to be deleted. Without a cut: at its first epoch."""

    cut: Offsets
    span: Annotated[tuple[SpanEntry, ...], tuple_of(part(SpanEntry))]
    deleted: Ids
    to_delete: Ids
    size_till: I64
    updating: Bool


class RetentionReference(Record, frozen=True):
    """A cut that was recorded for retention."""

    size: I64
    time_ms: I64


class RetentionSet(Record, frozen=True):
    """All recorded cuts, by time."""

    references: Annotated[tuple[RetentionReference, ...], tuple_of(nested(RetentionReference))]


class RetentionCut(Record, frozen=True):
    """A recorded cut itself."""

    time_ms: I64
    size: I64
    cut: Offsets


class ActiveTransaction(Record, frozen=True):
    """A transaction that has not ended."""

    created_ms: I64
    lease_expiry_ms: I64
    max_expiry_ms: I64
    status: Annotated[TransactionStatus, ordinal(TransactionStatus)]
    writer_id: Annotated[Text, Since(1)] = ""
    commit_time_ms: I64 = NO_TIME
    commit_order: I64 = NO_TIME
    commit_offsets: Annotated[Offsets, Since(2)] = msgspec.field(default_factory=dict)


class CompletedTransaction(Record, frozen=True):
    """How a transaction ended."""

    time_ms: I64
    status: Annotated[TransactionStatus, ordinal(TransactionStatus)]


class CommittingTransactions(Record, frozen=True):
    """The batch that is being committed; `active_epoch` if that makes the stream roll, else NO_EPOCH."""

    epoch: I32
    transactions: Uuids
    active_epoch: I32


class WriterMark(Record, frozen=True):
    """What a writer noted of its time."""

    time_ms: I64
    position: Offsets
    alive: Bool


class Subscribers(Record, frozen=True):
    """Who holds back retention: `scope/group`."""

    names: Texts


class Subscriber(Record, frozen=True):
    """What one of them needs no more; without a cut: nothing was said yet."""

    name: Text
    generation: I64
    updated_ms: I64
    cut: Offsets


class TagRecord(Record, frozen=True):
    """Which streams have a tag; all of it follows from their configurations."""

    tag: Text
    compressed: Blob

    @classmethod
    def of(cls, tag: str, streams: Iterable[str]) -> Self:
        return cls(tag, zlib.compress(b"".join(map(text, streams))))

    @property
    def streams(self) -> tuple[str, ...]:
        """Raises zlib.error, MalformedPayload."""
        return tuple(_texts(PayloadReader(zlib.decompress(self.compressed)))) if self.compressed else ()


def _texts(data: PayloadReader) -> Iterator[str]:
    while data.remaining:
        yield data.text()


class GroupCut(Record, frozen=True):
    """Where a group begins or ends in a stream; empty: no bound."""

    cut: Offsets


GroupCuts = Annotated[dict[str, GroupCut], dict_of(TEXT, nested(GroupCut))]


class GroupConfiguration(Record, frozen=True):
    """What a reader group reads, by `scope/stream`."""

    refresh_ms: I64
    automatic_checkpoint_ms: I64
    max_outstanding_checkpoints: I32
    retention: Annotated[GroupRetention, ordinal(GroupRetention)]
    generation: I64
    starting: GroupCuts
    ending: GroupCuts
    updating: Bool


class TableConfiguration(Record, frozen=True):
    """A key-value table's; versions before 0.10 wrote no lengths."""

    scope: Text
    table: Text
    partitions: I32
    primary_key_length: I32 = 0
    secondary_key_length: I32 = 0


class TableEpoch(Record, frozen=True):
    """The segments of a key-value table."""

    epoch: I32
    segments: Annotated[tuple[SegmentRecord, ...], tuple_of(nested(SegmentRecord))]
    creation_ms: I64


NO_TRANSITION = EpochTransition(NO_EPOCH, NO_TIME, (), ())
NO_COMMITS = CommittingTransactions(NO_EPOCH, (), NO_EPOCH)
NOT_TRUNCATED = Truncation({}, (), (), (), 0, False)
