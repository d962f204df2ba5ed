"""What the routes of this interface have in common: the router, names, and what a refusal looks like."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path

from api_gateway.edge.rest.boundary import REQUEST_HEADER, GuardedRoute, empty_answer
from api_gateway.edge.rest.capacity import CALL
from api_gateway.pravega.rest.permissions import RULES

ScopeName = Annotated[str, Path(alias="scopeName", description="The scope's name.", examples=["demo"])]
StreamName = Annotated[str, Path(alias="streamName", description="The stream's name.", examples=["greetings"])]
GroupName = Annotated[str, Path(alias="readerGroupName", description="The reader group's name.", examples=["readers"])]

SCOPES = "/scopes"
ONE_SCOPE = "/scopes/{scopeName}"
STREAMS = "/scopes/{scopeName}/streams"
ONE_STREAM = "/scopes/{scopeName}/streams/{streamName}"
GROUPS = "/scopes/{scopeName}/readergroups"
ONE_GROUP = "/scopes/{scopeName}/readergroups/{readerGroupName}"


class PravegaRoute(GuardedRoute):
    """A route of Pravega's interface. What is no number where the address needs one is not found there."""

    refuse = staticmethod(empty_answer)
    not_a_number = HTTPStatus.NOT_FOUND
    rule_of = staticmethod(lambda method, path: RULES[f"{method} {path}"])


def router(*, is_vital: bool = False) -> APIRouter:
    """Vital calls are answered however many calls there are."""
    needs = [] if is_vital else [CALL]
    return APIRouter(prefix="/v1", tags=["Pravega"], route_class=PravegaRoute, dependencies=needs)


_WHY = {
    400: "The request is not a right one.",
    404: "There is no such resource.",
    408: "The body did not come in time.",
    409: "It exists already.",
    412: "The state of the resource does not allow it.",
    413: "The body is larger than Sluice can take.",
    415: "The body is not JSON.",
    500: "It could not be done.",
    503: "Sluice cannot answer at the moment: it is starting, overloaded, or Kafka is away. Try again.",
    504: "No answer came in time; the requested operation may go on.",
}


def refusals(*statuses: int, is_change: bool = False) -> dict[int | str, dict[str, Any]]:
    """The refusals of a call for its description: none of them has a body. `is_change` if it is one."""
    always = (408, 413, 500, 503, 504) if is_change else (500, 503)
    return {status: {"description": _WHY[status]} for status in sorted({*always, *statuses})}


def changed(description: str) -> dict[str, Any]:
    header = {"description": "The id of the request in topics and journal.", "schema": {"type": "string"}}
    return {"description": description, "headers": {REQUEST_HEADER: header}}
