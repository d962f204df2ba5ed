"""What a stream looked like over time (admin-rest-api 5.11)."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Annotated

from fastapi import Query
from fastapi.responses import StreamingResponse

from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.rest.answers import encoded
from api_gateway.edge.rest.parts import ServedReads
from api_gateway.pravega.rest.base import ONE_STREAM, ScopeName, StreamName, refusals, router
from api_gateway.pravega.rest.models import Int64, ScaledSegment, ScaleEvent
from sluice.domain.ids import StreamId
from sluice.domain.segment import Segment, epoch_of, number_of
from sluice.domain.stream.cuts import RangeIndex
from sluice.domain.stream.history import History

routes = router()


@routes.get(
    f"{ONE_STREAM}/scaling-events",
    operation_id="getScalingEvents",
    response_model=list[ScaleEvent],
    responses=refusals(400, 404),
)
async def scaling_events(
    reads: ServedReads,
    scope: ScopeName,
    stream: StreamName,
    begin: Annotated[Int64, Query(alias="from", description="Epoch ms.")],
    end: Annotated[Int64, Query(alias="to", description="Epoch ms.")],
) -> StreamingResponse:
    """List the epochs of a stream that began in a span of time, and first the one before them."""
    if begin < 0 or end < 0 or begin > end:
        raise BadRequestError("from and to must not be negative, and not the wrong way round")
    found = await reads.stream(StreamId(scope, stream))
    first, last = (min(found.history.epoch_at(time), found.active) for time in (begin, end))
    return StreamingResponse(_parts(found.history, max(first, 0), last), media_type="application/json")


async def _parts(history: History, first: int, last: int) -> AsyncIterator[str]:
    """The answer, an epoch at a time: of a large stream all of them would be too much to hold.

    What a history says of an epoch never changes, so other tasks may run meanwhile.
    """
    before: list[Segment] = []
    separator = ""
    yield "["
    for number in history.numbers(first, last):
        present = history.segments_of(number)
        # Only the first one can have begun earlier: it is the one that was active at `from`.
        event = ScaleEvent(
            timestamp=history.created_at(number),
            segments=[
                ScaledSegment(
                    number=number_of(s.id),
                    epoch=epoch_of(s.id),
                    start=history.created_at(epoch_of(s.id)),
                    key_start=s.low,
                    key_end=s.high,
                )
                for s in present
            ],
            splits=_torn(before, present),
            merges=_torn(present, before),
        )
        yield separator + encoded(event)
        before, separator = present, ","
        await asyncio.sleep(0)
    yield "]"


def _torn(segments: Iterable[Segment], others: list[Segment]) -> int:
    """How many of the segments overlap more than one of the others."""
    index = RangeIndex(others)
    return sum(sum(1 for _ in index.overlapping(s.low, s.high)) > 1 for s in segments)
