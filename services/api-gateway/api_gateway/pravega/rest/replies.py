"""The replies to commands as answers of this interface."""

from collections.abc import Mapping

from api_gateway.edge.rest.failures import RefusedError
from sluice.domain.decision import Reply
from sluice.domain.status import Status


def done(reply: Reply, refusals: Mapping[Status, int]) -> None:
    """Raises RefusedError for a refusal: with its status in `refusals`, 500 for any other (admin-rest-api 5)."""
    if reply.status != Status.SUCCESS:
        raise RefusedError(refusals.get(reply.status, 500), reply.reason, reply.status)
