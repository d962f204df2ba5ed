"""What a store answers when it does not carry out a request (segment-store-wire-protocol 4.2).

`stack` is the store's stack trace, mostly empty.
"""

from sluice.pravega.wire.command import Command, code
from sluice.pravega.wire.fields import I32, I64, Str, Uuid

TOKEN_EXPIRED = 1
"""`AuthTokenCheckFailed.error_code` that a fresh token cures; anything else is a lasting refusal."""


@code(50)
class WrongHost(Command, frozen=True, gc=False):
    """The container of the segment does not run on this store."""

    request_id: I64
    segment: Str
    correct_host: Str
    stack: Str = ""


@code(51)
class SegmentIsSealed(Command, frozen=True, gc=False):
    """The segment is sealed."""

    request_id: I64
    segment: Str
    stack: Str = ""
    offset: I64 = -1


@code(52)
class SegmentAlreadyExists(Command, frozen=True, gc=False):
    """A segment of this name exists, or existed a moment ago."""

    request_id: I64
    segment: Str
    stack: Str = ""


@code(53)
class NoSuchSegment(Command, frozen=True, gc=False):
    """There is no segment of this name."""

    request_id: I64
    segment: Str
    stack: Str = ""
    offset: I64 = -1


@code(55)
class InvalidEventNumber(Command, frozen=True, gc=False):
    """Another append of this writer was stored in between; the store then closes the connection."""

    writer_id: Uuid
    request_id: I64
    stack: Str = ""
    event_number: I64 = -1


@code(56)
class SegmentIsTruncated(Command, frozen=True, gc=False):
    """The offset lies before the start of the segment, or a truncation beyond its end."""

    request_id: I64
    segment: Str
    start_offset: I64
    stack: Str = ""
    offset: I64 = -1


@code(57)
class OperationUnsupported(Command, frozen=True, gc=False):
    """The store cannot do this."""

    request_id: I64
    operation: Str
    stack: Str = ""


@code(60)
class AuthTokenCheckFailed(Command, frozen=True, gc=False):
    """The delegation token was refused; see TOKEN_EXPIRED."""

    request_id: I64
    stack: Str = ""
    error_code: I32 = -1


@code(61)
class ErrorMessage(Command, frozen=True, gc=False):
    """The store found the request illegal."""

    request_id: I64
    segment: Str
    message: Str
    error_code: I32


@code(80)
class TableSegmentNotEmpty(Command, frozen=True, gc=False):
    """The table has entries."""

    request_id: I64
    segment: Str
    stack: Str


@code(81)
class TableKeyDoesNotExist(Command, frozen=True, gc=False):
    """A version was demanded of a key that does not exist."""

    request_id: I64
    segment: Str
    stack: Str


@code(82)
class TableKeyBadVersion(Command, frozen=True, gc=False):
    """A key does not have the version demanded."""

    request_id: I64
    segment: Str
    stack: Str
