"""Who ran which container, and which instances of our services there were."""

from fastapi import Response

from api_gateway.console.looking_back import From, LookBack, To
from api_gateway.console.rest.base import refusals, router
from api_gateway.edge.rest.answers import as_json
from sluice.lookback.history import CONTAINERS, MEMBERS, ContainersHistory, HistoryQuestion, MembersHistory

routes = router("cluster")

DAY_MS = 24 * 60 * 60 * 1000
"""So far back goes a history whose beginning is left out."""


@routes.get(
    "/containers/history",
    operation_id="getContainersHistory",
    response_model=ContainersHistory,
    responses=refusals(),
)
async def containers_history(look_back: LookBack, from_: From = "", to: To = "") -> Response:
    """Say which segment store ran which container, and when."""
    question = HistoryQuestion(look_back.since(from_, DAY_MS), look_back.time(to))
    shown = await look_back(CONTAINERS, question)
    return as_json(shown)


@routes.get("/members/history", operation_id="getMembersHistory", response_model=MembersHistory, responses=refusals())
async def members_history(look_back: LookBack, from_: From = "", to: To = "") -> Response:
    """Say which instances of our services there were, when, and why they ended."""
    shown = await look_back(MEMBERS, HistoryQuestion(look_back.since(from_, DAY_MS), look_back.time(to)))
    return as_json(shown)
