"""Commands on stream segments and their replies (segment-store-wire-protocol 4.3)."""

from sluice.pravega.wire.command import Command, code
from sluice.pravega.wire.fields import I8, I32, I64, Bool, MergedSources, Str, Strs, Updates, Uuid

NULL_ATTRIBUTE_VALUE = -(1 << 63)
"""What an attribute that is not set reads as, and what clears one (4.10)."""
REPLACE_IF_EQUALS = 4
"""The kind of an AttributeUpdate that is done if the attribute has the expected value."""


@code(20)
class CreateSegment(Command, frozen=True, gc=False):
    """Create a stream segment; the rate is in events/s or KB/s as the scale type says."""

    request_id: I64
    segment: Str
    target_rate: I32
    scale_type: I8
    token: Str
    rollover_size_bytes: I64 = 0


@code(21)
class SegmentCreated(Command, frozen=True, gc=False):
    """Reply to CreateSegment, CreateTransientSegment and CreateTableSegment."""

    request_id: I64
    segment: Str


@code(32)
class UpdateSegmentPolicy(Command, frozen=True, gc=False):
    """Set the scale type and target rate of a segment."""

    request_id: I64
    segment: Str
    target_rate: I32
    scale_type: I8
    token: Str


@code(33)
class SegmentPolicyUpdated(Command, frozen=True, gc=False):
    """Reply to UpdateSegmentPolicy."""

    request_id: I64
    segment: Str


@code(28)
class SealSegment(Command, frozen=True, gc=False):
    """End a segment for writers."""

    request_id: I64
    segment: Str
    token: Str


@code(29)
class SegmentSealed(Command, frozen=True, gc=False):
    """Reply to SealSegment."""

    request_id: I64
    segment: Str


@code(38)
class TruncateSegment(Command, frozen=True, gc=False):
    """Drop what lies before an offset in bytes."""

    request_id: I64
    segment: Str
    truncation_offset: I64
    token: Str


@code(39)
class SegmentTruncated(Command, frozen=True, gc=False):
    """Reply to TruncateSegment."""

    request_id: I64
    segment: Str


@code(30)
class DeleteSegment(Command, frozen=True, gc=False):
    """Delete a segment, sealed or not."""

    request_id: I64
    segment: Str
    token: Str


@code(31)
class SegmentDeleted(Command, frozen=True, gc=False):
    """Reply to DeleteSegment and DeleteTableSegment."""

    request_id: I64
    segment: Str


@code(40)
class CreateTransientSegment(Command, frozen=True, gc=False):
    """Create a segment that is to be merged into this one, under a name of the store's own."""

    request_id: I64
    writer_id: Uuid
    segment: Str
    token: Str


@code(58)
class MergeSegments(Command, frozen=True, gc=False):
    """Merge a segment into another one, if attributes of that have the values that are expected."""

    request_id: I64
    segment: Str
    source: Str
    token: Str
    updates: Updates


@code(59)
class SegmentsMerged(Command, frozen=True, gc=False):
    """Reply to MergeSegments."""

    request_id: I64
    segment: Str
    source: Str
    target_length: I64 = -1


@code(90)
class MergeSegmentsBatch(Command, frozen=True, gc=False):
    """Merge several segments into one, in this order."""

    request_id: I64
    segment: Str
    sources: Strs
    token: Str


@code(91)
class SegmentsBatchMerged(Command, frozen=True, gc=False):
    """Reply to MergeSegmentsBatch, in the order of the request."""

    request_id: I64
    segment: Str
    merged: MergedSources


@code(11)
class GetStreamSegmentInfo(Command, frozen=True, gc=False):
    """Request length, start and state of a segment."""

    request_id: I64
    segment: Str
    token: Str


@code(12)
class StreamSegmentInfo(Command, frozen=True, gc=False):
    """Reply to GetStreamSegmentInfo; offsets in bytes, time in ms since the epoch."""

    request_id: I64
    segment: Str
    exists: Bool
    is_sealed: Bool
    is_deleted: Bool
    last_modified_ms: I64
    write_offset: I64
    start_offset: I64 = 0


@code(34)
class GetSegmentAttribute(Command, frozen=True, gc=False):
    """Read one attribute."""

    request_id: I64
    segment: Str
    attribute_id: Uuid
    token: Str


@code(35)
class SegmentAttribute(Command, frozen=True, gc=False):
    """Reply to GetSegmentAttribute."""

    request_id: I64
    value: I64


@code(36)
class UpdateSegmentAttribute(Command, frozen=True, gc=False):
    """Compare and set one attribute; the new value comes first."""

    request_id: I64
    segment: Str
    attribute_id: Uuid
    new_value: I64
    expected_value: I64
    token: Str


@code(37)
class SegmentAttributeUpdated(Command, frozen=True, gc=False):
    """Reply to UpdateSegmentAttribute, and to MergeSegments if not: whether the expected value was there."""

    request_id: I64
    success: Bool
