"""Reading from and appending to a segment (segment-store-wire-protocol 2.2 and 3.1)."""

from sluice.pravega.wire.command import NO_REQUEST_ID, Command, code
from sluice.pravega.wire.fields import I32, I64, Blob, Bool, Event, Str, Uuid


@code(9)
class ReadSegment(Command, frozen=True, gc=False):
    """Read from an offset; at the tail the reply waits for data, without limit."""

    segment: Str
    offset: I64
    suggested_length: I32
    token: Str
    request_id: I64 = NO_REQUEST_ID


@code(10)
class SegmentRead(Command, frozen=True, gc=False):
    """Reply to ReadSegment."""

    segment: Str
    offset: I64
    at_tail: Bool
    end_of_segment: Bool
    data: Blob
    request_id: I64 = NO_REQUEST_ID


@code(1)
class SetupAppend(Command, frozen=True, gc=False):
    """Bind a writer to a segment on this connection."""

    request_id: I64
    writer_id: Uuid
    segment: Str
    token: Str


@code(2)
class AppendSetup(Command, frozen=True, gc=False):
    """Reply to SetupAppend: the last event number stored for the writer."""

    request_id: I64
    segment: Str
    writer_id: Uuid
    last_event_number: I64


@code(4)
class AppendBlockEnd(Command, frozen=True, gc=False):
    """Append whole events, headers included, in one piece."""

    writer_id: Uuid
    size_of_whole_events: I32
    data: Blob
    num_events: I32
    last_event_number: I64
    request_id: I64 = NO_REQUEST_ID


@code(5)
class ConditionalAppend(Command, frozen=True, gc=False):
    """Append one event, header added here, if the segment has the expected length."""

    writer_id: Uuid
    event_number: I64
    expected_offset: I64
    event: Event
    request_id: I64 = NO_REQUEST_ID


@code(7)
class DataAppended(Command, frozen=True, gc=False):
    """Reply to an append; covers everything of the writer up to its event number."""

    writer_id: Uuid
    event_number: I64
    previous_event_number: I64 = -1
    request_id: I64 = NO_REQUEST_ID
    segment_length: I64 = -1


@code(8)
class ConditionalCheckFailed(Command, frozen=True, gc=False):
    """The segment did not have the expected length; nothing was appended."""

    writer_id: Uuid
    event_number: I64
    request_id: I64 = NO_REQUEST_ID
