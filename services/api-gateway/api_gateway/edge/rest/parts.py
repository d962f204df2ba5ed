"""What routes have at hand once the journal is loaded: each asks for what it needs, by its type.

`Annotated[Rates, served(Rates)]` is the parameter of a route that needs the rates. What there is depends on what the
process serves (main.py).
"""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Request

from api_gateway.edge.containers import Containers
from api_gateway.edge.errors import NotServingError
from api_gateway.edge.reads import Reads
from api_gateway.edge.requests import Requests
from sluice.domain.commands import Command
from sluice.domain.decision import Reply
from sluice.engine.ports import Clock

Parts = Mapping[Any, Any]
"""What there is, by the type that it is asked for by."""


async def _parts(request: Request) -> Parts:
    parts: Parts | None = request.app.state.parts
    if parts is None:
        raise NotServingError("the journal is being loaded, or the process ends")
    return parts


ServedParts = Annotated[Parts, Depends(_parts)]


def served(kind: Any) -> Any:
    """The part of this type. Raises NotServingError."""

    async def find(parts: ServedParts) -> Any:
        return parts[kind]

    return Depends(find)


ServedReads = Annotated[Reads, served(Reads)]
ServedRequests = Annotated[Requests, served(Requests)]
ServedContainers = Annotated[Containers, served(Containers)]
ServedClock = Annotated[Clock, served(Clock)]


class Submission:
    """Submits changes on behalf of one HTTP call, which is answered with the id of the last request."""

    def __init__(self, call: Request, requests: Requests) -> None:
        self._call = call
        self._requests = requests

    async def __call__(self, command: Command) -> Reply:
        """The reply to the command. Raises as `Requests.submit` does."""
        id = self._call.state.request_id = self._requests.new_id()
        return await self._requests.submit(command, id=id)


async def _submission(request: Request, requests: ServedRequests) -> Submission:
    return Submission(request, requests)


Submit = Annotated[Submission, Depends(_submission)]
