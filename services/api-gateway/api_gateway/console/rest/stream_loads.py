"""What is written to streams, what they hold, and who is behind: of those that a list shows, at most a hundred."""

from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from api_gateway.console.rest.base import Model, refusals, router
from api_gateway.console.rest.stream_search import MAX_NAME, MAX_NAMES
from api_gateway.console.stream_groups import GroupLag
from api_gateway.console.stream_loads import StreamLoad, StreamLoads
from api_gateway.edge.listing import may_read
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.parts import ServedClock, served
from sluice.domain.ids import StreamId
from sluice.security.resources import mapped_resource, reader_group_resource

routes = router("streams")


class SlowestGroup(Model):
    """The reader group that has the most of a stream yet to read."""

    name: str = Field(description="scope/name", examples=["demo/readers"])
    bytes: int = Field(description="How much that is.")
    complete: bool = Field(description="Whether that counts everything: all segment stores answer.")


class StreamLoadModel(Model):
    """What is written to a stream, and what it holds; what is not known, or not yet, is left out."""

    scope: str
    name: str
    bytes_per_s: float | None = None
    events_per_s: float | None = None
    bytes: int | None = Field(default=None, description="How much lies between its head and its end.")
    complete: bool = Field(description="Whether rates and bytes are those of all its segments; else of some.")
    groups: int | None = Field(default=None, description="How many reader groups read it, that the caller may READ.")
    slowest: SlowestGroup | None = Field(default=None, description="The slowest of these.")
    unknown_groups: int | None = Field(
        default=None, description="Of how many of them it is not known how far they are; left out for none."
    )


class StreamLoadList(Model):
    """Loads, in the order of the names; a stream that is not there, or that the caller may not READ, is left out."""

    at: int = Field(description="The gateway's time, epoch ms.")
    items: list[StreamLoadModel]


@routes.get("/streams/loads", operation_id="getStreamLoads", response_model=StreamLoadList, responses=refusals())
async def stream_loads(
    loads: Annotated[StreamLoads, served(StreamLoads)],
    clock: ServedClock,
    name: Annotated[
        list[Annotated[str, Field(max_length=MAX_NAME)]],
        Query(min_length=1, max_length=MAX_NAMES, description="Those of these, each `scope/name`."),
    ],
) -> Response:
    """Say what is written to each stream a second, what it holds, and which reader group is slowest.

    The first call begins to measure, so it knows nothing yet; call every 5 seconds to have it go on.
    """
    wanted = [id for id in map(StreamId.of, name) if may_read(mapped_resource(*id))]
    return as_json(StreamLoadList(at=clock.now_ms(), items=list(map(_model, await loads.look(wanted)))))


def _model(load: StreamLoad) -> StreamLoadModel:
    groups = _readable(load.groups) if load.groups is not None else None
    behind = [
        SlowestGroup(name=f"{one.group}", bytes=one.bytes, complete=one.complete)
        for one in groups or ()
        if one.bytes is not None
    ]
    return StreamLoadModel(
        scope=load.id.scope,
        name=load.id.name,
        bytes_per_s=_rounded(load.bytes_per_s),
        events_per_s=_rounded(load.events_per_s),
        bytes=load.bytes,
        complete=load.complete,
        groups=len(groups) if groups is not None else None,
        slowest=max(behind, key=lambda one: one.bytes, default=None),
        unknown_groups=(len(groups) - len(behind) or None) if groups is not None else None,
    )


def _readable(groups: list[GroupLag]) -> list[GroupLag]:
    return [one for one in groups if may_read(reader_group_resource(*one.group))]


def _rounded(rate: float | None) -> float | None:
    return round(rate, 2) if rate is not None else None
