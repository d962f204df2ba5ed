"""What a call can fail with, and the one table that says which HTTP status that is.

The twin of `api_gateway.edge.errors` for HTTP. A caller that gets 503 or 504 may retry; all else is final. Of 503
nothing was done, of 504 that is not known. Pure functions.
"""

import logging

import msgspec
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from api_gateway.edge.errors import (
    BadRequestError,
    NoOwnerError,
    NotServingError,
    OverloadedError,
    QuotaExceededError,
    RequestTimeoutError,
)
from api_gateway.edge.reads import MissingError
from sluice.domain.errors import IllegalStateError, InvalidArgumentError, NotFoundError, StreamRestoringError
from sluice.engine.journal import JournalError
from sluice.engine.ports import RecordTooLargeError, SendError, SendQueueFullError
from sluice.kafka.dead_letters import DeadLettersUnavailableError
from sluice.kafka.group_progress import GroupsUnavailableError
from sluice.lookback import errors as lookback
from sluice.pravega.errors import SegmentStoreError
from sluice.security.caller import ForbiddenError, UnauthenticatedError
from sluice.validation import sentences

MAX_DETAIL = 500

JSON_TYPE = "application/json"


class RefusedError(Exception):
    """The answer is this status; `reason` is Pravega's name for it where there is one, the message is for users."""

    def __init__(self, status: int, detail: str, reason: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.reason = reason


class Failure(msgspec.Struct, frozen=True):
    """An HTTP status, why for users, Pravega's name for it if it has one, and the level at which the log says so."""

    status: int
    detail: str
    reason: str = ""
    level: int = logging.DEBUG


_STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (NotFoundError, 404),
    (lookback.NotFoundError, 404),
    (BadRequestError, 400),
    (lookback.InvalidTextError, 400),
    (InvalidArgumentError, 400),
    (IllegalStateError, 409),
    (StreamRestoringError, 503),
    (RecordTooLargeError, 413),
    (OverloadedError, 503),
    (QuotaExceededError, 429),
    (NotServingError, 503),
    (NoOwnerError, 503),
    (SendQueueFullError, 503),
    (SendError, 504),
    (JournalError, 503),
    (DeadLettersUnavailableError, 503),
    (GroupsUnavailableError, 503),
    (SegmentStoreError, 503),
    (lookback.LookbackError, 503),
    (RequestTimeoutError, 504),
)


def failure_of(error: Exception) -> Failure:
    """The status for an exception; an unexpected one is 500, shows nothing of its inside, and is an ERROR of ours."""
    if isinstance(error, RefusedError):
        return Failure(error.status, str(error)[:MAX_DETAIL], error.reason)
    if isinstance(error, RequestValidationError):
        return Failure(400, "; ".join(sentences(error.errors()))[:MAX_DETAIL])
    if isinstance(error, HTTPException):
        return Failure(error.status_code, str(error.detail)[:MAX_DETAIL])
    if isinstance(error, UnauthenticatedError):
        return Failure(401, "no credentials, or wrong ones")
    if isinstance(error, ForbiddenError):
        return Failure(403, "these credentials do not allow it")
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            reason = error.reason if isinstance(error, MissingError) else ""
            hint = f"; {error.hint}" if isinstance(error, lookback.LookbackError) and error.hint else ""
            return Failure(status, f"{error}{hint}"[:MAX_DETAIL], reason)
    return Failure(500, "something went wrong inside; the log of the gateway says what", level=logging.ERROR)
