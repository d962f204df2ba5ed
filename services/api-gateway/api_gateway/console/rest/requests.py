"""What became of a request: sent, decided, carried out, answered."""

from typing import Annotated, Any

from fastapi import Path, Query, Response
from pydantic import Field

from api_gateway.console.looking_back import From, LookBack, Since, To
from api_gateway.console.paging import DEFAULT, MAX_ITEMS, After, Limit, numbers_in, token_of
from api_gateway.console.rest.base import INT64_MAX, Model, Page, refusals, router
from api_gateway.edge.listing import may_read
from api_gateway.edge.rest.answers import as_document, as_json
from api_gateway.edge.security import rest_resources
from api_gateway.edge.security.aggregates import may_see
from sluice.domain.status import DONE
from sluice.kafka.topics import DEAD_LETTERS, JOURNAL
from sluice.lookback.replies import REPLIES, RepliedRequest, RepliesQuestion
from sluice.lookback.tracing_job import TRACE, TraceFound, TraceQuestion
from sluice.security.caller import CALLER, ForbiddenError
from sluice.security.resources import ROOT
from sluice.validation import form

routes = router("requests")

HOUR_MS = 60 * 60 * 1000

RequestId = Annotated[
    str,
    Path(
        description="Its id, as every change says it: 12 characters or more, a hyphen between them.",
        examples=["5f2b8c11d0-1"],
        min_length=12,
        max_length=1000,
        pattern=form("^.+-.+$", "the id of a request: two parts with a hyphen between them"),
    ),
]
"""A gateway makes the shortest ones: a token of its own, a hyphen, a number. All others have these parts, too."""


class AnswerModel(Model):
    """The reply to the request."""

    status: str = Field(examples=["SUCCESS"])
    reason: str | None = None
    at: int = Field(description="When the journal had it, epoch ms.")
    after: int = Field(description="How many ms after the first step.")


class StepModel(Model):
    """A record of the history, or an entry of a record of the journal."""

    at: int = Field(description="When the broker appended it, epoch ms.")
    since_start: int = Field(description="ms since the first step.")
    took: int = Field(description="ms since the step before.")
    what: str = Field(examples=["requested"])
    says: str = Field(description="What it says, on one line.")
    request: str = Field(description="The request it belongs to: this one, or one that its workflows sent.")
    types: list[str] = Field(description="Of its command or its events.")
    topic: str
    partition: int
    offset: int
    by: str = Field(description="service/instance that wrote it.")
    entry: int | None = Field(default=None, description="Which entry of a record of the journal it is.")
    outcome: str | None = Field(default=None, description="What became of the entry: counted, stale or duplicate.")


class RunningModel(Model):
    """A workflow of the request that is not over."""

    aggregate: str
    kind: str
    since: int
    step: str
    attempts: int
    last_error: str


class RequestHistory(Model):
    """The history of a request; without steps nothing of it was found that the caller may see."""

    request: str
    principal: str | None = Field(default=None, description="Who called, if that is known.")
    began: int | None = Field(default=None, description="When the first step was, epoch ms.")
    answer: AnswerModel | None = Field(description="The reply; null if there is none yet.")
    steps: list[StepModel]
    running: list[RunningModel]
    searched_to: int = Field(description="Back to this moment all is searched, epoch ms.")
    complete: bool = Field(description="Whether it is all: from where the request was sent, or from `since` on.")


class RepliedModel(Model):
    """A request, and the reply to it."""

    request: str
    at: int = Field(description="When the journal had the reply, epoch ms.")
    status: str = Field(examples=["SUCCESS"])
    refused: bool = Field(description="Whether it was refused.")
    reason: str | None = Field(default=None, description="Why, in words.")
    aggregates: list[str] = Field(description="What it changed, or what the refusal rests on.")
    types: list[str] = Field(description="Of its events.", examples=[["StreamSealed"]])
    by: str = Field(description="service/instance that decided it.")
    principal: str | None = Field(default=None, description="Who called, if that is known.")


class RepliedList(Page[RepliedModel]):
    """Requests that were replied to, the latest first."""

    searched_to: int = Field(description="Back to this moment none is missing, epoch ms.")
    complete: bool = Field(description="Whether all of the span is searched that can be.")
    kept_from: int | None = Field(
        default=None, description="Before this moment, epoch ms, not all can be searched; left out if all can."
    )


@routes.get("/requests", operation_id="listRequests", response_model=RepliedList, responses=refusals())
async def list_requests(
    look_back: LookBack,
    from_: From = "",
    to: To = "",
    refused: Annotated[bool | None, Query(description="Only those that were refused, or only the others.")] = None,
    limit: Limit = DEFAULT,
    after: After = "",
) -> Response:
    """List the requests that were replied to since a moment, an hour ago if it is left out."""
    position = numbers_in(after, 5)
    until = look_back.time(to) + 1 if to else INT64_MAX
    before = (position[0], position[1], position[2], position[3], position[4]) if position is not None else None
    # As in the journal: where a page ends should not say when something happened that is left out.
    at_most = limit if CALLER.get() is None else MAX_ITEMS
    question = RepliesQuestion(look_back.since(from_, HOUR_MS), until, refused, before, at_most)
    found = await look_back(REPLIES, question)
    visible = [one for one in found.items if _may_see_all(set(one.aggregates))]
    following, searched_to, complete = found.next, found.searched_to, found.complete
    if len(visible) > limit:
        following, complete = visible[limit - 1].order, False
        searched_to = following[0]
    return as_json(
        RepliedList(
            items=list(map(_replied, visible[:limit])),
            next=token_of(".".join(map(str, following))) if following is not None else None,
            searched_to=searched_to,
            complete=complete,
            kept_from=found.kept_from,
        )
    )


def _replied(one: RepliedRequest) -> RepliedModel:
    return RepliedModel(
        request=one.request,
        at=one.order[0],
        status=one.status.value,
        refused=one.status not in DONE,
        reason=one.reason or None,
        aggregates=one.aggregates,
        types=one.types,
        by=one.by,
        principal=one.principal or None,
    )


@routes.get("/requests/{id}", operation_id="getRequestHistory", response_model=RequestHistory, responses=refusals())
async def request_history(
    look_back: LookBack,
    id: RequestId,
    since: Since = "",
    before: Annotated[
        int, Query(ge=0, le=INT64_MAX, description="`searchedTo` of an answer that found nothing: search before it.")
    ] = 0,
) -> Response:
    """Say what became of a request, over all topics, in order and with times."""
    found = await look_back(TRACE, TraceQuestion(id, look_back.since(since, HOUR_MS), before))
    return as_document(_visible(id, found))


def _visible(id: str, found: TraceFound) -> dict[str, Any]:
    """The history without what the caller may not read; nothing of it if that is the request itself.

    A refusal in the journal is about what its request is about. What else does not say what it is about, as it could
    not be decoded, is for those who may READ the root, and a dead letter for those who may READ these. Raises
    ForbiddenError.
    """
    document = found.document
    steps: list[dict[str, Any]] = document["steps"]
    about: dict[str, set[str]] = {}
    for step, aggregates in zip(steps, found.steps, strict=True):
        about.setdefault(step["request"], set()).update(aggregates)
    allowed = {request: _may_see_all(aggregates) for request, aggregates in about.items()}
    searched = {"searchedTo": found.searched_to, "complete": found.complete}
    if not allowed.get(id, any(allowed.values())):
        # What is not found looks like what may not be seen.
        if not may_read(ROOT):
            raise ForbiddenError
        return {"request": id, "answer": None, "steps": [], "running": [], **searched}
    running = zip(document["running"], found.running, strict=True)
    return {
        **document,
        "steps": [
            step
            for step, aggregates in zip(steps, found.steps, strict=True)
            if allowed[step["request"]] and (aggregates or _may_see_any(step["topic"]))
        ],
        "running": [one for one, aggregate in running if may_see(aggregate)],
        **searched,
    }


def _may_see_any(topic: str) -> bool:
    """Whether the caller may see what a record of the topic says, whatever that is about."""
    if topic == DEAD_LETTERS.name:
        return may_read(rest_resources.DEAD_LETTERS)
    return topic == JOURNAL.name or may_read(ROOT)


def _may_see_all(aggregates: set[str]) -> bool:
    """What could not be decoded may be about anything."""
    return all(map(may_see, aggregates)) if aggregates else may_read(ROOT)
