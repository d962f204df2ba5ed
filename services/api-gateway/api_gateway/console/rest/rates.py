"""Rates of a stream's segments: as they are now, while they are looked at, and as they were."""

from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from api_gateway.console.looking_back import From, LookBack, To
from api_gateway.console.rates import Rates
from api_gateway.console.rest.base import Model, ScopeName, StreamName, refusals, router
from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.parts import ServedClock, ServedContainers, ServedReads, served
from sluice.domain.ids import StreamId
from sluice.domain.segment import segment_name
from sluice.lookback.rate_history import RATE_HISTORY, RateHistory, RateHistoryQuestion, history_of

routes = router("segments")

_ONE = "/scopes/{scope}/streams/{stream}"
MAX_SPAN_MS = 8 * 24 * 3600 * 1000
"""Samples are kept for a week."""


class RateModel(Model):
    """What is written to a segment; what is not known yet, or no more, is left out."""

    id: int = Field(examples=[4294967298])
    bytes_per_s: float | None = None
    events_per_s: float | None = None
    length: int | None = Field(default=None, description="In bytes, with what was truncated.")
    store: str | None = Field(default=None, description="host:port of the segment store that has it.")


class RatesModel(Model):
    """What is written to the segments of the active epoch, by key range."""

    at: int = Field(description="The gateway's time, epoch ms.")
    segments: list[RateModel]
    complete: bool = Field(description="Whether the rates of all are known; if not, call again in a second or two.")


class PastRate(Model):
    """What was written to a segment."""

    id: int
    bytes_per_s: list[float] = Field(description="In each bucket; -1 where it is not known.")


class RateHistoryModel(Model):
    """What was written to segments, as far as cuts were sampled; a segment without samples is left out."""

    from_: int = Field(alias="from", description="Where the first bucket begins, epoch ms.")
    bucket_ms: int = Field(description="How long a bucket is; longer than requested where there would be too many.")
    segments: list[PastRate]
    searched_to: int = Field(description="The last moment that is taken in, epoch ms.")
    complete: bool = Field(description="Whether that is the end of what was requested; if not, go on from there.")


@routes.get(f"{_ONE}/rates", operation_id="getRates", response_model=RatesModel, responses=refusals(404))
async def get_rates(
    reads: ServedReads,
    clock: ServedClock,
    rates: Annotated[Rates, served(Rates)],
    containers: ServedContainers,
    scope: ScopeName,
    stream: StreamName,
) -> Response:
    """Say what is written to each segment now, a second. The first call begins to measure, so it knows nothing yet."""
    id = StreamId(scope, stream)
    await reads.stream(id)
    found, placement = rates.look(id), containers.placement()
    segments = [
        RateModel(
            id=one.id,
            bytes_per_s=_rounded(one.bytes_per_s),
            events_per_s=_rounded(one.events_per_s),
            length=one.length,
            store=placement.store(placement.container(segment_name(*id, one.id))),
        )
        for one in found.segments
    ]
    return as_json(RatesModel(at=clock.now_ms(), segments=segments, complete=found.complete))


@routes.get(
    f"{_ONE}/rates/history",
    operation_id="getRatesHistory",
    response_model=RateHistoryModel,
    responses=refusals(404),
)
async def get_rates_history(
    reads: ServedReads,
    clock: ServedClock,
    look_back: LookBack,
    rates: Annotated[Rates, served(Rates)],
    scope: ScopeName,
    stream: StreamName,
    from_: From = "-1h",
    to: To = "",
    bucket: Annotated[
        int, Query(ge=60_000, le=24 * 3600 * 1000, description="About how long a bucket is, in milliseconds.")
    ] = 60_000,
) -> Response:
    """Say what was written to each segment: by the minute where the stream has a policy, or was looked at."""
    id = StreamId(scope, stream)
    config = (await reads.stream(id)).config
    begin, end = look_back.time(from_), look_back.time(to) or clock.now_ms()
    if not 0 < end - begin <= MAX_SPAN_MS:
        raise BadRequestError("from must be before to, and not more than 8 days")
    if config.retention is None and not config.scaling.is_by_load:
        bucket_ms, of_segments = history_of(rates.kept.since(id, begin), begin, end, bucket)
        found = RateHistory(begin, bucket_ms, of_segments, searched_to=end, complete=True)
    else:
        found = await look_back(RATE_HISTORY, RateHistoryQuestion(scope, stream, begin, end, bucket))
    segments = [
        PastRate(id=one.id, bytes_per_s=[_rounded(rate) or 0.0 for rate in one.bytes_per_s]) for one in found.segments
    ]
    return as_json(
        RateHistoryModel(
            **{"from": found.from_ms},
            bucket_ms=found.bucket_ms,
            segments=segments,
            searched_to=found.searched_to,
            complete=found.complete,
        )
    )


def _rounded(rate: float | None) -> float | None:
    return round(rate, 2) if rate is not None else None
