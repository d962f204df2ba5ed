"""What the routes of HTTP have at hand once the journal is loaded, and how they ask for a change."""

from typing import Annotated

import msgspec
from fastapi import Depends, Request, Response
from pydantic import BaseModel

from api_gateway.reads import Reads
from api_gateway.requests import Requests
from api_gateway.rest.dead_letters import DeadLetters
from api_gateway.rest.failures import NotStartedError
from api_gateway.rest.signs_of_life import SignsOfLife
from api_gateway.rest.statistics import Statistics
from sluice.domain.commands import Command
from sluice.domain.decision import Reply
from sluice.engine.ports import Clock
from sluice.pravega.store import SegmentStore


class Backend(msgspec.Struct, frozen=True):
    """The way to everything the routes answer from."""

    reads: Reads
    requests: Requests
    store: SegmentStore
    dead_letters: DeadLetters
    signs_of_life: SignsOfLife
    statistics: Statistics
    container_count: int
    clock: Clock


async def _backend(request: Request) -> Backend:
    backend = request.app.state.backend
    if not isinstance(backend, Backend):
        raise NotStartedError("the journal is being loaded")
    return backend


Served = Annotated[Backend, Depends(_backend)]


class Asking:
    """Asks for changes on behalf of one HTTP call, which is answered with the id of the last request."""

    def __init__(self, call: Request, requests: Requests) -> None:
        self._call = call
        self._requests = requests

    async def __call__(self, command: Command) -> Reply:
        """The reply to the command. Raises as `Requests.ask` does."""
        id = self._call.state.asked = self._requests.new_id()
        return await self._requests.ask(command, id=id)


async def _asking(request: Request, backend: Served) -> Asking:
    return Asking(request, backend.requests)


Asks = Annotated[Asking, Depends(_asking)]


def as_json(model: BaseModel, status: int = 200) -> Response:
    """The model as an answer, without what is None."""
    return Response(
        model.model_dump_json(by_alias=True, exclude_none=True), status_code=status, media_type="application/json"
    )
