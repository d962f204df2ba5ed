"""What the routes of HTTP have at hand once the journal is loaded, and how they submit a change."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from fastapi import Depends, Request, Response
from pydantic import BaseModel

from api_gateway.console.dead_letters import DeadLetters
from api_gateway.console.demonstration import Demonstration
from api_gateway.console.feed.feeds import Feeds
from api_gateway.console.group_readers import GroupReaders
from api_gateway.console.lookback import Lookback
from api_gateway.console.overview import Overview
from api_gateway.console.partitions import Partitions
from api_gateway.console.rates import Rates
from api_gateway.console.statistics import Statistics
from api_gateway.console.what_ifs import WhatIfs
from api_gateway.edge.heartbeats import LastHeartbeats
from api_gateway.edge.reads import Reads
from api_gateway.edge.requests import Requests
from api_gateway.edge.rest.failures import NotServingError
from api_gateway.edge.worker import Worker
from sluice.domain.commands import Command
from sluice.domain.decision import Reply
from sluice.engine.ports import Clock
from sluice.outages import Outage, outages
from sluice.pravega.store import SegmentStore


class Backend(msgspec.Struct, frozen=True):
    """The way to everything the routes answer from."""

    reads: Reads
    requests: Requests
    store: SegmentStore
    dead_letters: DeadLetters
    last_heartbeats: LastHeartbeats
    statistics: Statistics
    demonstration: Demonstration
    container_count: int
    clock: Clock
    lookback: Lookback
    rates: Rates
    readers: GroupReaders
    worker: Worker
    cluster: str
    feeds: Feeds
    overview: Overview
    partitions: Partitions
    what_ifs: WhatIfs = msgspec.field(default_factory=WhatIfs)

    def outages(self) -> dict[int, Outage]:
        """The segment containers that do not answer, as far as this process knows."""
        return outages(self.reads.cluster(), self.container_count)


async def _backend(request: Request) -> Backend:
    backend = request.app.state.backend
    if not isinstance(backend, Backend):
        raise NotServingError("the journal is being loaded, or the process ends")
    return backend


Served = Annotated[Backend, Depends(_backend)]


class Submission:
    """Submits changes on behalf of one HTTP call, which is answered with the id of the last request."""

    def __init__(self, call: Request, requests: Requests) -> None:
        self._call = call
        self._requests = requests

    async def __call__(self, command: Command) -> Reply:
        """The reply to the command. Raises as `Requests.submit` does."""
        id = self._call.state.request_id = self._requests.new_id()
        return await self._requests.submit(command, id=id)


async def _submission(request: Request, backend: Served) -> Submission:
    return Submission(request, backend.requests)


Submit = Annotated[Submission, Depends(_submission)]


def as_document(document: Any) -> Response:
    """JSON as it is."""
    return Response(msgspec.json.encode(document), media_type="application/json")


def as_json(model: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The model as an answer, without what is None."""
    return Response(encoded(model), status_code=status, headers=headers, media_type="application/json")


def encoded(model: BaseModel) -> str:
    """As JSON, without what is None. A long list is encoded one by one, between pauses."""
    return model.model_dump_json(by_alias=True, exclude_none=True)
