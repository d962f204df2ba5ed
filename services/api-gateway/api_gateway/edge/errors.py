"""What a call can fail with, and the one table that says which gRPC status that is.

Clients decide by the code whether they try again (controller-grpc-api 3.2, 9.2, 10.2): NOT_FOUND and INVALID_ARGUMENT
are final, INTERNAL, UNKNOWN, UNAVAILABLE, DEADLINE_EXCEEDED and RESOURCE_EXHAUSTED are tried again. Pure functions.
"""

import logging

import msgspec
from google.protobuf.message import DecodeError
from grpc import StatusCode

from sluice.domain.errors import IllegalStateError, InvalidArgumentError, NotFoundError, StreamRestoringError
from sluice.engine.journal import JournalError
from sluice.engine.ports import RecordTooLargeError, SendError, SendQueueFullError
from sluice.security.caller import ForbiddenError, UnauthenticatedError

INTERNAL_TEXT = "Internal exception occurred"
"""Pravega's description for whatever fails before an operation began; clients know it, so it says no more than that."""

_MAX_DETAILS = 500

_REFUSED = {
    UnauthenticatedError: (StatusCode.UNAUTHENTICATED, "Authentication failed"),
    ForbiddenError: (StatusCode.PERMISSION_DENIED, "Authorization failed"),
}
"""Pravega's descriptions: who is refused learns nothing else."""


class BadRequestError(Exception):
    """What was sent can not be made into a request at all."""


class OverloadedError(Exception):
    """As many calls as may wait are waiting already."""


class QuotaExceededError(Exception):
    """The caller, or all callers on a scope, call more than the settings allow; the text names the limit."""


class RequestTimeoutError(Exception):
    """The request was sent and no reply came: in time, or while this process followed; the operation goes on."""


class NotServingError(Exception):
    """The journal is not loaded yet, or the process ends: nothing was done."""


class NoOwnerError(Exception):
    """No segment store is known to run the container."""


class Failure(msgspec.Struct, frozen=True):
    """A gRPC status, and the level at which it is logged: DEBUG if the caller gets everything anyway."""

    code: StatusCode
    details: str
    level: int = logging.DEBUG


_CODES: tuple[tuple[type[Exception], StatusCode], ...] = (
    (NotFoundError, StatusCode.NOT_FOUND),
    (IllegalStateError, StatusCode.INTERNAL),
    (InvalidArgumentError, StatusCode.INVALID_ARGUMENT),
    (StreamRestoringError, StatusCode.UNAVAILABLE),
    (NotServingError, StatusCode.UNAVAILABLE),
    (OverloadedError, StatusCode.RESOURCE_EXHAUSTED),
    (QuotaExceededError, StatusCode.RESOURCE_EXHAUSTED),
    (SendQueueFullError, StatusCode.RESOURCE_EXHAUSTED),
    (RequestTimeoutError, StatusCode.DEADLINE_EXCEEDED),
    (RecordTooLargeError, StatusCode.INTERNAL),
    (SendError, StatusCode.UNAVAILABLE),
    (JournalError, StatusCode.UNAVAILABLE),
)


def failure_of(error: Exception) -> Failure:
    """The status for an exception; an unexpected one is INTERNAL, and an ERROR of ours."""
    if isinstance(error, BadRequestError | DecodeError | NoOwnerError):
        return Failure(StatusCode.INTERNAL, INTERNAL_TEXT, logging.INFO)
    if isinstance(error, UnauthenticatedError | ForbiddenError):
        return Failure(*_REFUSED[type(error)])
    for kind, code in _CODES:
        if isinstance(error, kind):
            return Failure(code, str(error)[:_MAX_DETAILS])
    return Failure(StatusCode.INTERNAL, INTERNAL_TEXT, logging.ERROR)
