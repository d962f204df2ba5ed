"""The demonstration: whether one runs, its beginning and its end."""

from typing import Annotated

from fastapi import Response
from pydantic import Field

from api_gateway.console.demonstration import READINGS, SCOPE, Demonstration
from api_gateway.console.rest.base import Model, refusals, router
from api_gateway.edge.reads import Reads
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.parts import ServedReads, served

routes = router("cluster")

ServedDemonstration = Annotated[Demonstration, served(Demonstration)]


class DemonstrationModel(Model):
    """The demonstration of this gateway."""

    running: bool
    present: bool = Field(description="Whether what one has made is there.")
    scope: str = Field(description="The scope that it fills.", examples=[SCOPE])
    since: int | None = Field(default=None, description="When it was started, epoch ms; left out unless it runs.")
    refusal: str | None = Field(default=None, description="Why none can be started here; left out if one can.")
    problem: str | None = Field(default=None, description="Why the last one ended by itself; left out if none did.")


@routes.get("/demonstration", operation_id="getDemonstration", response_model=DemonstrationModel, responses=refusals())
async def shown(demonstration: ServedDemonstration, reads: ServedReads) -> Response:
    """Show whether a demonstration runs at this gateway."""
    return as_json(_model(demonstration, reads))


@routes.post(
    "/demonstration",
    operation_id="startDemonstration",
    response_model=DemonstrationModel,
    responses=refusals(409, is_change=True),
)
async def start(demonstration: ServedDemonstration, reads: ServedReads) -> Response:
    """Start a program that fills a scope of its own by the ordinary client; nothing happens if it runs."""
    await demonstration.start()
    return as_json(_model(demonstration, reads))


@routes.delete(
    "/demonstration",
    operation_id="stopDemonstration",
    response_model=DemonstrationModel,
    responses=refusals(is_change=True),
)
async def stop(demonstration: ServedDemonstration, reads: ServedReads) -> Response:
    """End that program; what it has made stays."""
    await demonstration.stop()
    return as_json(_model(demonstration, reads))


def _model(demonstration: Demonstration, reads: Reads) -> DemonstrationModel:
    state = demonstration.state
    return DemonstrationModel(
        running=state.running,
        present=reads.known_stream(READINGS) is not None,
        scope=SCOPE,
        since=state.since or None,
        refusal=state.refusal or None,
        problem=state.problem or None,
    )
