"""What the routes of this interface have in common: the router, the form of models, what a refusal looks like."""

from typing import Annotated, Any, Generic, TypeVar

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

from api_gateway.console.permissions import PREFIX, rule_of
from api_gateway.edge.rest.boundary import PROBLEM_TYPE, REQUEST_HEADER, GuardedRoute
from api_gateway.edge.rest.capacity import CALL
from sluice.insight.shown import Shown
from sluice.validation import form

INT64_MAX = 2**63 - 1
INT32_MAX = 2**31 - 1

MAX_PROPERTIES = 20
"""Of an object that is sent; none has half as many."""

Item = TypeVar("Item")


class Model(BaseModel):
    """camelCase in JSON; a property that is None is left out."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class Page(Model, Generic[Item]):
    """A page of a list."""

    items: list[Item]
    next: str | None = Field(default=None, description="Where the next page begins; left out at the end.")


class Body(Model):
    """What is sent; an unknown property is refused, numbers are not written as text.

    What is wrong with it is never more than a few sentences: a body may hold a hundred thousand wrong items, so a list
    or a dict of a body fails with its first one (`fail_fast`).
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_count(cls, sent: object) -> object:
        if isinstance(sent, dict) and len(sent) > MAX_PROPERTIES:
            raise ValueError(f"it has {len(sent)} properties, there are not so many")
        return sent


class Taken(Model):
    """The answer to a change that has nothing else to say."""

    status: str = Field(description="Pravega's name of the status.", examples=["SUCCESS"])


_NAME = "^[A-Za-z0-9._-]+$"

ScopeName = Annotated[str, Path(description="The scope's name.", examples=["demo"])]
StreamName = Annotated[str, Path(description="The stream's name.", examples=["greetings"])]
GroupName = Annotated[str, Path(description="The reader group's name.", examples=["readers"])]
TableName = Annotated[str, Path(description="The key-value table's name.", examples=["settings"])]
TransactionUuid = Annotated[
    str,
    Path(
        description="The transaction's id.",
        pattern=form("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "a UUID in small letters"),
        examples=["00000000-0000-0000-0102-030405060708"],
    ),
]
SegmentId = Annotated[
    int,
    Path(description="Epoch in the high 32 bits, number in the low ones.", ge=0, le=INT64_MAX, examples=[4294967298]),
]

SegmentKey = Annotated[
    str, StringConstraints(pattern=form("^(0|[1-9][0-9]{0,17})$", "the id of a segment: a whole number"))
]
Cut = Annotated[
    dict[SegmentKey, Annotated[int, Field(ge=-1, le=INT64_MAX)]],
    Field(
        description="A stream cut: segment ids, as text, with byte offsets; -1 for a segment not yet reached.",
        examples=[{"0": 1024, "4294967297": -1}],
        json_schema_extra={"additionalProperties": False},
        fail_fast=True,
    ),
]


def cut_of(cut: dict[str, int]) -> dict[int, int]:
    return {int(segment): offset for segment, offset in cut.items()}


class SluiceRoute(GuardedRoute):
    """A route of this interface."""

    rule_of = staticmethod(rule_of)


def router(tag: str, *, is_feed: bool = False) -> APIRouter:
    """Feeds have places of their own (feed/feeds.py)."""
    return APIRouter(prefix=PREFIX, tags=[tag], route_class=SluiceRoute, dependencies=[] if is_feed else [CALL])


_WHY = {
    400: "The request is not a right one.",
    404: "There is no such resource.",
    408: "The body did not come in time.",
    409: "The state of the resource does not allow it; `reason` says which rule of Pravega.",
    412: "A condition does not hold: If-None-Match, it is there already; If-Match, its configuration is another one.",
    413: "The request is larger than Sluice can take.",
    503: "Sluice cannot answer at the moment: it is starting, overloaded, or Kafka is away. Try again.",
    504: "No answer came in time; the requested operation may go on.",
}


def refusals(*statuses: int, is_change: bool = False) -> dict[int | str, dict[str, Any]]:
    """The refusals of a call for its description, beside those that any call may meet; `is_change` if it is one."""
    always = (400, 408, 413, 503, 504) if is_change else (400, 503)
    return {
        status: {
            "description": _WHY[status],
            "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            **(_NAMED if is_change and status in (404, 409, 504) else {}),
        }
        for status in sorted({*always, *statuses})
    }


_NAMED: dict[str, Any] = {
    "headers": {
        REQUEST_HEADER: {
            "description": "The id of the request in topics and journal.",
            "schema": {"type": "string"},
        }
    }
}


def changed(description: str, model: type[BaseModel | Shown] | None = None) -> dict[str, Any]:
    """The description of the answer to a change that was made."""
    return {"description": description, **({"model": model} if model is not None else {}), **_NAMED}
