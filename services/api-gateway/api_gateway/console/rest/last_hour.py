"""The last hour of the system by minute, and what changed last. Numbers are of everything."""

from itertools import islice
from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from api_gateway.console.last_hour import LastHour
from api_gateway.console.rest.base import Model, refusals, router
from api_gateway.console.rest.events import resource_of_subject
from api_gateway.edge.listing import may_read
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.parts import served
from sluice.engine.lately import KEPT_CHANGES, MINUTE_MS

routes = router("cluster")

ServedHour = Annotated[LastHour, served(LastHour)]


class MinuteModel(Model):
    """What happened in a minute, and how much there was at its end."""

    at: int = Field(description="When it begins, epoch ms.")
    changes: int = Field(description="Events of the journal.")
    commits: int = Field(description="Transactions that were committed.")
    aborts: int = Field(description="Transactions that were aborted.")
    open: int | None = Field(default=None, description="Open transactions; left out if that is not known yet.")
    waiting: int | None = Field(default=None, description="Transactions whose commit waits; left out likewise.")
    silent: int = Field(description="Segment containers that did not answer for a part of it at least.")
    bytes: int | None = Field(
        default=None,
        description="Written to the streams whose lengths are sampled, those with a policy; left out where that is not "
        "known, as of the last minutes, or not any more.",
    )


class LateChangeModel(Model):
    """A change, as `events` has it."""

    aggregate: str = Field(examples=["stream:demo/greetings"])
    types: list[str] = Field(examples=[["StreamScaled"]])
    at: int = Field(description="When the broker appended it, epoch ms.")


class HourModel(Model):
    """The last hour, or since there is something in the journal, and what changed last."""

    bucket_ms: int = Field(description="How long a minute is, ms.")
    to: int = Field(description="When this was found, epoch ms: so far the last minute goes.")
    items: list[MinuteModel] = Field(description="Each minute, the earliest first; 61 at most.")
    changes: list[LateChangeModel] = Field(description="What changed last, the last one first.")


@routes.get("/overview/hour", operation_id="getLastHour", response_model=HourModel, responses=refusals())
async def last_hour(
    shared: ServedHour,
    changes: Annotated[int, Query(ge=0, le=KEPT_CHANGES, description="How many of the last changes at most.")] = 0,
) -> Response:
    """Count by minute what happened in the last hour, not older than some seconds; list what changed last."""
    found = await shared.hour()
    items = [MinuteModel.model_validate(one, from_attributes=True) for one in found.minutes]
    readable = (one for one in shared.changes() if may_read(resource_of_subject(one.aggregate)))
    late = [LateChangeModel.model_validate(one, from_attributes=True) for one in islice(readable, changes)]
    return as_json(HourModel(bucket_ms=MINUTE_MS, to=found.to, items=items, changes=late))
