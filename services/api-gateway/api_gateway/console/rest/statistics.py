"""Statistics of a stream: what happened to it by minute, hour and day, and how old the figures are."""

from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from api_gateway.console.rest.base import Model, ScopeName, StreamName, refusals, router
from api_gateway.console.statistics import Statistics
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.parts import ServedClock, ServedReads, served
from sluice.domain.ids import StreamId
from sluice.insight.statistics import WindowKind, WindowStatistics

routes = router("streams")


class WindowModel(Model):
    """What happened in a window."""

    begin: int = Field(description="Where it begins, epoch ms.")
    end: int = Field(description="Where the next one begins, epoch ms.")
    opened: int = Field(description="How many transactions were opened.")
    committed: int = Field(description="How many were committed.")
    aborted: dict[str, int] = Field(
        description="How many were aborted, by the reason: `user`, `lease` or `seal`.", examples=[{"lease": 2}]
    )
    timed: int = Field(description="Of how many that ended it is known how long they took, from open to end.")
    total_ms: int = Field(description="How long those took together.")
    longest_ms: int = Field(description="How long the longest of them took.")
    operations: dict[str, int] = Field(
        description="How often it was changed: `create`, `update`, `scale`, `truncate`, `seal`, `delete`.",
        examples=[{"scale": 1}],
    )


class StreamStatisticsModel(Model):
    """The latest windows in which something happened, and how old the figures are. The figures are approximate."""

    window: WindowKind = Field(description="How long a window is.")
    as_of: int | None = Field(
        default=None,
        description="Until when all that happened is in them, epoch ms; left out if nothing was counted yet.",
    )
    age_s: float | None = Field(default=None, description="How many seconds ago that was; left out likewise.")
    items: list[WindowModel] = Field(description="The latest first.")


@routes.get(
    "/scopes/{scope}/streams/{stream}/statistics",
    operation_id="getStreamStatistics",
    response_model=StreamStatisticsModel,
    responses=refusals(404),
)
async def statistics(
    reads: ServedReads,
    clock: ServedClock,
    counted: Annotated[Statistics, served(Statistics)],
    scope: ScopeName,
    stream: StreamName,
    window: Annotated[WindowKind, Query(description="How long a window is.")] = WindowKind.MINUTE,
    count: Annotated[int, Query(ge=1, le=120, description="How many windows at most.")] = 10,
) -> Response:
    """Count a stream's transactions and operations by minute, hour or day; the windows are those of UTC."""
    await reads.stream(StreamId(scope, stream))
    as_of = counted.as_of(StreamId(scope, stream))
    found = counted.windows(StreamId(scope, stream), window, count)
    return as_json(
        StreamStatisticsModel(
            window=window,
            as_of=as_of,
            age_s=max(0, clock.now_ms() - as_of) / 1000 if as_of is not None else None,
            items=[_model(one) for one in found],
        )
    )


def _model(window: WindowStatistics) -> WindowModel:
    figures = window.figures
    return WindowModel(
        begin=window.begin,
        end=window.begin + window.window.length_ms,
        opened=figures.opened,
        committed=figures.committed,
        aborted={reason.value: count for reason, count in sorted(figures.aborted.items(), key=lambda i: i[0].value)},
        timed=figures.timed,
        total_ms=figures.total_ms,
        longest_ms=figures.longest_ms,
        operations={operation.value: count for operation, count in sorted(figures.operations.items())},
    )
