"""The ways in which a call can end without any reply, as plain values.

The connection reports them; what each of them means for the caller stands in the one table in `errors.py`.
"""

from enum import Enum


class Failure(Enum):
    """Why there is no reply."""

    NO_ROUTE = "the container map has no host for the container"
    CONNECT_FAILED = "the segment store does not accept connections"
    INCOMPATIBLE = "the segment store speaks no common version of the protocol"
    CLOSED_BY_PEER = "the segment store closed the connection"
    LOST = "the connection broke"
    SILENT = "the segment store no longer answers on the connection"
    MALFORMED = "the segment store sent bytes that are not the protocol"
    TIMED_OUT = "the call's time was up"
    OVERLOADED = "too many calls wait for this segment store"
    WRITER_BUSY = "another append of this writer is under way"
    UNENCODABLE = "the request has no bytes"
    CLOSED = "the client was closed"


class ConnectionFailure(Exception):
    """A call ended without a reply; whether it had an effect is not known."""

    def __init__(self, failure: Failure, detail: str = "") -> None:
        super().__init__(f"{failure.value}: {detail}" if detail else failure.value)
        self.failure = failure
        self.detail = detail
