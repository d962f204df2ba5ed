"""What all RPCs that change something do: submit a command, and answer with the status of the reply."""

from typing import Any

from api_gateway.handlers import Context
from api_gateway.requests import Requests
from api_gateway.rpc import trace_of
from api_gateway.statuses import response
from sluice.domain.commands import Command


async def submit(requests: Requests, command: Command, context: Context) -> Any:
    """The response to a command whose reply is a status and nothing more. Raises as `Requests.submit` does."""
    return response(command, await requests.submit(command, trace_of(context)))
