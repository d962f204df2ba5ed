"""The replies to commands as answers of HTTP.

A reply carries Pravega's name of a status. What says that something is missing, exists already or is not allowed now
has its HTTP status by that name; a test holds that every name the domain can reply has its status. Pure functions.
"""

from collections.abc import Mapping

from api_gateway.edge.rest.failures import RefusedError
from sluice.domain.decision import Reply
from sluice.domain.status import DONE, Status

STATUSES: Mapping[Status, int] = {
    Status.INVALID_SCOPE_NAME: 400,
    Status.INVALID_STREAM_NAME: 400,
    Status.INVALID_RG_NAME: 400,
    Status.INVALID_TABLE_NAME: 400,
    Status.LEASE_OUT_OF_BOUNDS: 400,
    Status.LEASE_TOO_LARGE: 400,
    Status.SCOPE_NOT_FOUND: 404,
    Status.STREAM_NOT_FOUND: 404,
    Status.RG_NOT_FOUND: 404,
    Status.TABLE_NOT_FOUND: 404,
    Status.UNKNOWN: 404,
    Status.SCOPE_EXISTS: 409,
    Status.SCOPE_NOT_EMPTY: 409,
    Status.STREAM_EXISTS: 409,
    Status.STREAM_NOT_SEALED: 409,
    Status.STREAM_SEALED: 409,
    Status.TABLE_EXISTS: 409,
    Status.INVALID_CONFIG: 409,
    Status.PRECONDITION_FAILED: 409,
    Status.FAILURE: 409,
    Status.NOT_RUNNING: 409,
    Status.TOO_LATE: 409,
    Status.ENDED: 409,
    Status.COMMITTED: 409,
    Status.ABORTED: 409,
    Status.MAX_EXECUTION_TIME_EXCEEDED: 409,
    Status.CONFIG_CHANGED: 412,
    Status.TOO_MANY_OPEN: 503,
    Status.TOO_MANY_WAITING: 503,
}


def done(reply: Reply, about: str) -> Reply:
    """The reply if it is not a refusal. Raises RefusedError; `about` says what the command was about."""
    if reply.status in DONE:
        return reply
    raise refused(reply, about)


def refused(reply: Reply, about: str) -> RefusedError:
    """The answer to a refusal. KeyError for a status that is not in the table: the domain and it disagree."""
    return RefusedError(STATUSES[reply.status], f"{about}: {why(reply)}", reply.status)


def why(reply: Reply) -> str:
    """What a refusal says, in words."""
    return reply.reason or reply.status.lower().replace("_", " ")
