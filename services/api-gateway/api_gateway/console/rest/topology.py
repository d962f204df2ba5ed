"""The topology of a stream, for a picture of it: all segments it has or had, in columns.

Computed and encoded by the worker, on a snapshot of the stream.
"""

from functools import partial
from typing import Annotated, Any

import msgspec
from fastapi import Query, Response
from pydantic import Field

from api_gateway.console.looking_back import From, LookBack, To
from api_gateway.console.rest.base import INT64_MAX, Cut, Model, ScopeName, StreamName, refusals, router
from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.listing import may_read
from api_gateway.edge.rest.parts import ServedClock, ServedReads, served
from api_gateway.edge.worker import Worker
from sluice.domain.config import ScaleType
from sluice.domain.ids import StreamId
from sluice.domain.stream import queries
from sluice.domain.stream.restore import check_restored
from sluice.domain.stream.state import Stream, StreamState
from sluice.insight.shown import cut_shown, document
from sluice.insight.topology import MAX_RECTANGLES, snapshot, topology
from sluice.insight.workflows import RunningWorkflow, workflow_shown
from sluice.security.resources import reader_group_resource

routes = router("segments")

LEAST_RECTANGLES = 100


class SegmentColumnsModel(Model):
    """Of each segment, in the order of the ids; all columns are equally long. Times in epoch ms."""

    id: list[int]
    number: list[int]
    low: list[float]
    high: list[float]
    born_epoch: list[int] = Field(description="The first epoch with it.")
    born: list[int] = Field(description="When that began.")
    end_epoch: list[int] = Field(description="The first epoch without it; -1 of an active one.")
    end: list[int] = Field(description="When that began; 0 of an active one.")
    bytes: list[int] = Field(description="Its length when it was sealed; -1 if that is not known.")
    flags: list[int] = Field(
        description="The sum of: 1 truncated away, 2 being created, 4 duplicate of a rolling commit, "
        "8 its bounds are those of samples."
    )


class EpochColumnsModel(Model):
    """Of each epoch, the earliest first; all columns are equally long."""

    epoch: list[int]
    at: list[int] = Field(description="When it began, epoch ms.")
    reference: list[int] = Field(description="The epoch it is a duplicate of; itself unless it is one.")
    cause: list[str] = Field(description="What it came of: created, scale, rolling or restored.")


class SubscriberCut(Model):
    """How far a reader group has read, for which the stream keeps what is yet to be read."""

    name: str = Field(description="scope/name of the reader group.", examples=["demo/readers"])
    updated_at: int = Field(description="When it last reported, epoch ms.")
    cut: Cut = Field(description="Empty before its first report.")


class Target(Model):
    """What the stream scales by."""

    type: str = Field(description="events or kbytes.", examples=["events"])
    rate: int = Field(description="Per segment and second.")


class TopologyModel(Model):
    """A stream as rectangles over time and key space, and what is drawn over them."""

    state: str = Field(description="What is being done with it.", examples=["ACTIVE"])
    segments: SegmentColumnsModel
    epochs: EpochColumnsModel
    head: Cut = Field(description="Where reading begins.")
    head_at: int | None = Field(
        default=None, description="Since when the truncation to there is under way, epoch ms; left out if none is."
    )
    subscribers: list[SubscriberCut]
    workflow: RunningWorkflow | None = Field(default=None, description="What changes the stream, or commits.")
    now: int = Field(description="The gateway's time, epoch ms.")
    merged: bool = Field(description="Whether there was too much, and samples are shown.")
    target: Target | None = Field(default=None, description="Left out where the number of segments is fixed.")


@routes.get(
    "/scopes/{scope}/streams/{stream}/topology",
    operation_id="getTopology",
    response_model=TopologyModel,
    responses=refusals(404),
)
async def get_topology(
    reads: ServedReads,
    clock: ServedClock,
    worker: Annotated[Worker, served(Worker)],
    scope: ScopeName,
    stream: StreamName,
    look_back: LookBack,
    from_: From = "",
    to: To = "",
    most: Annotated[
        int,
        Query(ge=LEAST_RECTANGLES, le=MAX_RECTANGLES, description="How many segments and epochs the answer may have."),
    ] = MAX_RECTANGLES,
) -> Response:
    """Show all segments that a stream has or had, as rectangles over time and key space.

    Those that lived from `from` to `to`. Where there are more than `most`, it is sampled by time and key, which
    `merged` says.
    """
    begin, end = look_back.time(from_), look_back.time(to) or INT64_MAX
    if begin > end:
        raise BadRequestError("from must not be after to")
    id = StreamId(scope, stream)
    full = await reads.stream_in_full(id)
    check_restored(full.stream)
    around = _around(full.stream)
    around["workflow"] = document(workflow) if (workflow := workflow_shown(full.workflow)) is not None else None
    around["now"] = clock.now_ms()
    body = await worker.run(partial(_body, snapshot(full.stream), begin, end, most, around))
    return Response(body, media_type="application/json")


def _around(stream: Stream) -> dict[str, Any]:
    """What is shown beside the rectangles."""
    workflow, scaling = stream.workflow, stream.config.scaling
    return {
        "state": stream.state.value,
        "head": cut_shown(queries.head(stream)),
        "headAt": workflow.since if workflow is not None and stream.state is StreamState.TRUNCATING else None,
        "subscribers": [
            {"name": name, "updatedAt": subscriber.updated_at, "cut": cut_shown(subscriber.cut)}
            for name, subscriber in sorted(stream.subscribers.items())
            if may_read(reader_group_resource(*name.split("/", 1)))
        ],
        "target": None
        if scaling.scale_type is ScaleType.FIXED
        else {"type": scaling.scale_type.word, "rate": scaling.target_rate},
    }


def _body(stream: Stream, begin: int, end: int, most: int, around: dict[str, Any]) -> bytes:
    found = topology(stream, begin, end, most)
    shown = {name: value for name, value in around.items() if value is not None}
    return msgspec.json.encode(
        {**shown, "segments": _columns(found.segments), "epochs": _columns(found.epochs), "merged": found.merged}
    )


def _columns(columns: msgspec.Struct) -> dict[str, msgspec.Raw]:
    """Column by column: while one is encoded nothing else runs, the event loop included."""
    fields = msgspec.structs.fields(columns)
    return {f.encode_name: msgspec.Raw(msgspec.json.encode(getattr(columns, f.name))) for f in fields}
