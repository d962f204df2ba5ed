"""What only clients of others send, and its replies: for a store that serves them (wire protocol 2.2, 4.3, 5.2)."""

from sluice.pravega.wire.command import Command, code
from sluice.pravega.wire.fields import I32, I64, Blob, Bool, Entries, Keys, Rest, Str, Uuid


@code(3)
class AppendBlock(Command, frozen=True, gc=False):
    """Events, headers included, that are appended with the AppendBlockEnd that follows."""

    writer_id: Uuid
    data: Rest


@code(-1)
class Padding(Command, frozen=True, gc=False):
    """What fills a block that ends early; alone it means nothing."""

    zeros: Rest


@code(-2)
class PartialEvent(Command, frozen=True, gc=False):
    """The end of a block, in which an event begins that AppendBlockEnd goes on with."""

    data: Rest


@code(89)
class ConditionalBlockEnd(Command, frozen=True, gc=False):
    """Append bytes as they are if the segment has the expected length."""

    writer_id: Uuid
    event_number: I64
    expected_offset: I64
    data: Blob
    request_id: I64


@code(41)
class LocateOffset(Command, frozen=True, gc=False):
    """Request where an event ends, at an offset or behind it."""

    request_id: I64
    segment: Str
    target_offset: I64
    token: Str


@code(42)
class OffsetLocated(Command, frozen=True, gc=False):
    """Reply to LocateOffset, in bytes."""

    request_id: I64
    segment: Str
    offset: I64


@code(83)
class ReadTableKeys(Command, frozen=True, gc=False):
    """ReadTableEntries without values."""

    request_id: I64
    segment: Str
    token: Str
    suggested_count: I32
    continuation: Blob = b""
    prefix_deprecated: Blob = b""
    from_key: Blob = b""
    to_key: Blob = b""


@code(84)
class TableKeysRead(Command, frozen=True, gc=False):
    """Reply to ReadTableKeys: only no keys mean the end (5.6)."""

    request_id: I64
    segment: Str
    keys: Keys
    continuation: Blob


@code(88)
class ReadTableEntriesDelta(Command, frozen=True, gc=False):
    """Read about so many entries that were written at a position of the table's log, or behind it."""

    request_id: I64
    segment: Str
    token: Str
    from_position: I64
    suggested_count: I32


@code(87)
class TableEntriesDeltaRead(Command, frozen=True, gc=False):
    """Reply to ReadTableEntriesDelta; the last position is where to read on (5.7)."""

    request_id: I64
    segment: Str
    entries: Entries
    should_clear: Bool
    reached_end: Bool
    last_position: I64
