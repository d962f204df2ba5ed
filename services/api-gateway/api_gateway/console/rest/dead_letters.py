"""Dead letters: list, drop, replay."""

import base64
from typing import Annotated, Literal

from fastapi import Path, Query, Request, Response
from pydantic import Field

from api_gateway.console.dead_letters import (
    DeadLetters,
    Letter,
    NoSuchLetterError,
    NotReplayableError,
    RecordOffset,
    SettledAlreadyError,
)
from api_gateway.console.paging import DEFAULT, After, Limit, numbers_in, token_of
from api_gateway.console.rest.base import INT32_MAX, INT64_MAX, Model, Page, refusals, router
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.failures import RefusedError
from api_gateway.edge.rest.parts import served
from sluice.kafka.dead_letters import Settlement

routes = router("dead letters")

Letters = Annotated[DeadLetters, served(DeadLetters)]

Partition = Annotated[int, Path(ge=0, le=INT32_MAX, description="Partition of the topic of dead letters.")]
Offset = Annotated[int, Path(ge=0, le=INT64_MAX, description="Offset in that partition.")]


class DeadLetterItem(Model):
    """A record that could not be handled."""

    partition: int = Field(description="Partition of the topic of dead letters.")
    offset: int = Field(description="Offset in that partition.")
    topic: str = Field(description="Where it comes from; empty if not from a topic.", examples=["sluice.commit"])
    key: str
    reason: str = Field(description="Why it could not be handled.")
    service: str = Field(description="Who gave it up, as service/instance.")
    at: int = Field(description="When, epoch ms.")
    value: str = Field(description="The record, as text or, if it is none, in base64.")
    encoding: Literal["text", "base64"]
    settled: Literal["dropped", "replayed"] | None = Field(default=None, description="What became of it, if anything.")


class DeadLetterList(Page[DeadLetterItem]):
    """A page of dead letters, the latest first."""


class DeadLetterSettlement(Model):
    """What became of a dead letter."""

    partition: int
    offset: int
    settled: Literal["dropped", "replayed"]
    request: str | None = Field(default=None, description="The id under which a request was sent again.")


@routes.get("/dead-letters", operation_id="listDeadLetters", response_model=DeadLetterList, responses=refusals())
async def list_dead_letters(
    letters: Letters,
    settled: Annotated[bool, Query(description="Also those that were dropped or replayed.")] = False,
    limit: Limit = DEFAULT,
    after: After = "",
) -> Response:
    """List records that could not be handled."""
    page = await letters.page(limit, numbers_in(after, 3), settled)
    following = token_of(".".join(map(str, page.end))) if page.end is not None else None
    return as_json(DeadLetterList(items=[_item(*letter) for letter in page.letters], next=following))


@routes.get(
    "/dead-letters/{partition}/{offset}",
    operation_id="describeDeadLetter",
    response_model=DeadLetterItem,
    responses=refusals(404),
)
async def describe_dead_letter(letters: Letters, partition: Partition, offset: Offset) -> Response:
    """Show a record that could not be handled."""
    try:
        found = await letters.one((partition, offset))
    except NoSuchLetterError as error:
        raise _refused((partition, offset), error) from error
    return as_json(_item(*found))


@routes.post(
    "/dead-letters/{partition}/{offset}/replay",
    operation_id="replayDeadLetter",
    response_model=DeadLetterSettlement,
    responses=refusals(404, 409, is_change=True),
)
async def replay(request: Request, letters: Letters, partition: Partition, offset: Offset) -> Response:
    """Send the record back into its source topic, a request under an id of its own.

    At least once: if two gateways get the call at the same moment, or one ends before it has recorded what it sent, the
    record is sent more than once, each time as a new request.
    """
    try:
        id = await letters.replay((partition, offset))
    except (NoSuchLetterError, SettledAlreadyError, NotReplayableError) as error:
        raise _refused((partition, offset), error) from error
    request.state.request_id = id
    return as_json(DeadLetterSettlement(partition=partition, offset=offset, settled="replayed", request=id or None))


@routes.post(
    "/dead-letters/{partition}/{offset}/drop",
    operation_id="dropDeadLetter",
    response_model=DeadLetterSettlement,
    responses=refusals(404, 409, is_change=True),
)
async def drop(letters: Letters, partition: Partition, offset: Offset) -> Response:
    """Have the record left out of the list from now on. Kafka keeps it until its time is over."""
    try:
        await letters.drop((partition, offset))
    except (NoSuchLetterError, SettledAlreadyError) as error:
        raise _refused((partition, offset), error) from error
    return as_json(DeadLetterSettlement(partition=partition, offset=offset, settled="dropped"))


def _refused(record_offset: RecordOffset, error: Exception) -> RefusedError:
    status = 404 if isinstance(error, NoSuchLetterError) else 409
    return RefusedError(status, f"dead letter {record_offset[0]}/{record_offset[1]}: {error}")


def _item(letter: Letter, value: bytes, settled: Settlement | None) -> DeadLetterItem:
    encoding: Literal["text", "base64"]
    try:
        text, encoding = value.decode(), "text"
    except UnicodeDecodeError:
        text, encoding = base64.b64encode(value).decode(), "base64"
    return DeadLetterItem(
        partition=letter.record_offset[0],
        offset=letter.record_offset[1],
        topic=letter.topic,
        key=letter.key,
        reason=letter.reason,
        service=letter.service,
        at=letter.at,
        value=text,
        encoding=encoding,
        settled=settled.value if settled is not None else None,
    )
