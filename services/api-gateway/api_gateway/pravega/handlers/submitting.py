"""What all RPCs that change something do: submit a command, and answer with the status of the reply and its reason."""

from typing import Any

from api_gateway.edge.requests import Requests
from api_gateway.pravega.handlers import Context
from api_gateway.pravega.rpc import trace_of
from api_gateway.pravega.statuses import response
from sluice.domain.commands import Command
from sluice.domain.decision import MAX_REASON, Reply

REASON = "sluice-reason"
"""The trailing metadata with the reason of a refusal, for users: Pravega's responses have no place for it."""


async def submit(requests: Requests, command: Command, context: Context) -> Any:
    """The response to a command whose reply is a status and nothing more. Raises as `Requests.submit` does."""
    return response_to(command, await requests.submit(command, trace_of(context)), context)


def response_to(command: Command, reply: Reply, context: Context) -> Any:
    """The response with the status of the reply; its reason goes with it. Raises as `response` does."""
    if reply.reason:
        context.set_trailing_metadata(((REASON, _as_metadata(reply.reason)),))
    return response(command, reply)


def _as_metadata(reason: str) -> str:
    """gRPC fails a call whose metadata is anything but printable ASCII, or too long for the client."""
    return "".join(c if " " <= c <= "~" else "?" for c in reason[:MAX_REASON])
