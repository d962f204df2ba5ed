"""Who ran which container, and which instances of our services there were."""

from typing import Any

from fastapi import Response
from pydantic import Field

from api_gateway.console.looking_back import From, LookBack, To
from api_gateway.console.rest.base import Model, refusals, router
from api_gateway.edge.rest.answers import as_document
from sluice.lookback.history import CONTAINERS, MEMBERS, HistoryQuestion

routes = router("cluster")

DAY_MS = 24 * 60 * 60 * 1000
"""So far back goes a history whose beginning is left out."""


class HoldingModel(Model):
    """A segment store ran a container."""

    container: int
    store: str = Field(description="host:port of the segment store.")
    from_: int = Field(alias="from", description="Since when, epoch ms; the beginning of the interval, or later.")
    to: int | None = Field(default=None, description="Until when; left out: to the end of what is searched.")


class ContainersHistory(Model):
    """Who ran which container; a container that is left out for a while was run by no store then."""

    items: list[HoldingModel]
    searched_to: int = Field(description="The last moment that is taken in, epoch ms.")
    complete: bool = Field(description="Whether that is the end of the interval; if not, go on from there.")


class MembershipModel(Model):
    """An instance of a service was a member."""

    service: str = Field(examples=["stream-workflows"])
    instance: str
    from_: int = Field(alias="from", description="When it was started, epoch ms.")
    to: int | None = Field(default=None, description="Until when; left out: to the end of what is searched.")
    why: str | None = Field(default=None, description="Why it was no longer, in words.")


class MembersHistory(Model):
    """Which instances were members."""

    items: list[MembershipModel]
    searched_to: int = Field(description="The last moment that is taken in, epoch ms.")
    complete: bool = Field(description="Whether that is the end of the interval; if not, go on from there.")


@routes.get(
    "/containers/history",
    operation_id="getContainersHistory",
    response_model=ContainersHistory,
    responses=refusals(),
)
async def containers_history(look_back: LookBack, from_: From = "", to: To = "") -> Response:
    """Say which segment store ran which container, and when."""
    found = await look_back(CONTAINERS, HistoryQuestion(look_back.since(from_, DAY_MS), look_back.time(to)))
    items = [{"container": one.container, "store": one.store, **_span(one.since, one.to)} for one in found.items]
    return as_document({"items": items, "searchedTo": found.searched_to, "complete": found.complete})


@routes.get("/members/history", operation_id="getMembersHistory", response_model=MembersHistory, responses=refusals())
async def members_history(look_back: LookBack, from_: From = "", to: To = "") -> Response:
    """Say which instances of our services there were, when, and why they ended."""
    found = await look_back(MEMBERS, HistoryQuestion(look_back.since(from_, DAY_MS), look_back.time(to)))
    items = [
        {
            "service": one.service,
            "instance": one.instance,
            **_span(one.since, one.to),
            **({"why": one.why} if one.why else {}),
        }
        for one in found.items
    ]
    return as_document({"items": items, "searchedTo": found.searched_to, "complete": found.complete})


def _span(since: int, to: int | None) -> dict[str, Any]:
    return {"from": since, **({"to": to} if to is not None else {})}
