"""Commands on table segments and their replies (segment-store-wire-protocol 5.2)."""

from sluice.pravega.wire.command import Command, code
from sluice.pravega.wire.fields import I32, I64, Blob, Bool, Entries, Keys, Longs, Str


@code(70)
class CreateTableSegment(Command, frozen=True, gc=False):
    """Create a table; keys of a fixed length in bytes are kept in order, 0 means any length."""

    request_id: I64
    segment: Str
    token: Str
    sorted_deprecated: Bool = False
    key_length: I32 = 0
    rollover_size_bytes: I64 = 0


@code(71)
class DeleteTableSegment(Command, frozen=True, gc=False):
    """Delete a table."""

    request_id: I64
    segment: Str
    must_be_empty: Bool
    token: Str


@code(68)
class GetTableSegmentInfo(Command, frozen=True, gc=False):
    """Request size and number of entries of a table."""

    request_id: I64
    segment: Str
    token: Str


@code(69)
class TableSegmentInfo(Command, frozen=True, gc=False):
    """Reply to GetTableSegmentInfo; offsets in bytes."""

    request_id: I64
    segment: Str
    start_offset: I64
    length: I64
    entry_count: I64
    key_length: I32


@code(74)
class UpdateTableEntries(Command, frozen=True, gc=False):
    """Write entries, all or none if any demands a version."""

    request_id: I64
    segment: Str
    token: Str
    entries: Entries
    table_segment_offset: I64 = -1


@code(75)
class TableEntriesUpdated(Command, frozen=True, gc=False):
    """Reply to UpdateTableEntries: one version for each entry."""

    request_id: I64
    versions: Longs


@code(76)
class RemoveTableKeys(Command, frozen=True, gc=False):
    """Remove keys, all or none if any demands a version."""

    request_id: I64
    segment: Str
    token: Str
    keys: Keys
    table_segment_offset: I64 = -1


@code(77)
class TableKeysRemoved(Command, frozen=True, gc=False):
    """Reply to RemoveTableKeys."""

    request_id: I64
    segment: Str


@code(78)
class ReadTable(Command, frozen=True, gc=False):
    """Read the values of keys."""

    request_id: I64
    segment: Str
    token: Str
    keys: Keys


@code(79)
class TableRead(Command, frozen=True, gc=False):
    """Reply to ReadTable: one entry for each key, in order."""

    request_id: I64
    segment: Str
    entries: Entries


@code(85)
class ReadTableEntries(Command, frozen=True, gc=False):
    """Read about so many entries: by a token, or with a fixed key length from one key to another, both inclusive."""

    request_id: I64
    segment: Str
    token: Str
    suggested_count: I32
    continuation: Blob = b""
    prefix_deprecated: Blob = b""
    from_key: Blob = b""
    to_key: Blob = b""


@code(86)
class TableEntriesRead(Command, frozen=True, gc=False):
    """Reply to ReadTableEntries: only no entries mean the end (5.6)."""

    request_id: I64
    segment: Str
    entries: Entries
    continuation: Blob
