"""The replies to commands as answers of HTTP.

A reply carries Pravega's name of a status. What says that something is missing, exists already or is not allowed now
has its HTTP status by that name; a test holds that every name the domain can reply has its place. Pure functions.
"""

from collections.abc import Mapping

from api_gateway.rest.failures import RefusedError
from sluice.domain.decision import Reply

DONE = frozenset({"SUCCESS", "OK", "STARTED"})

STATUSES: Mapping[str, int] = {
    "INVALID_SCOPE_NAME": 400,
    "INVALID_STREAM_NAME": 400,
    "INVALID_RG_NAME": 400,
    "INVALID_TABLE_NAME": 400,
    "LEASE_OUT_OF_BOUNDS": 400,
    "LEASE_TOO_LARGE": 400,
    "SCOPE_NOT_FOUND": 404,
    "STREAM_NOT_FOUND": 404,
    "RG_NOT_FOUND": 404,
    "TABLE_NOT_FOUND": 404,
    "UNKNOWN": 404,
    "SCOPE_EXISTS": 409,
    "SCOPE_NOT_EMPTY": 409,
    "STREAM_EXISTS": 409,
    "STREAM_NOT_SEALED": 409,
    "STREAM_SEALED": 409,
    "TABLE_EXISTS": 409,
    "INVALID_CONFIG": 409,
    "PRECONDITION_FAILED": 409,
    "FAILURE": 409,
    "NOT_RUNNING": 409,
    "TOO_LATE": 409,
    "ENDED": 409,
    "COMMITTED": 409,
    "ABORTED": 409,
    "MAX_EXECUTION_TIME_EXCEEDED": 409,
    "TOO_MANY_OPEN": 503,
    "TOO_MANY_WAITING": 503,
}


def done(reply: Reply, about: str) -> Reply:
    """The reply if it is not a refusal. Raises RefusedError; `about` says what the command was about.

    KeyError for a status that is not in the table: the domain and it disagree.
    """
    if reply.status in DONE:
        return reply
    words = reply.status.lower().replace("_", " ")
    raise RefusedError(STATUSES[reply.status], f"{about}: {reply.reason or words}", reply.status)
