"""What is shown of streams, and what is sent about them."""

from typing import Annotated

from pydantic import AllowInfNan, Field

from api_gateway.console.rest.actions import Allowed
from api_gateway.console.rest.base import INT64_MAX, Body, Cut, Model, Moment
from api_gateway.console.rest.config_models import StreamConfiguration
from api_gateway.console.rest.unreachable import Unreachable
from api_gateway.console.rest.why_models import DecisionModel
from api_gateway.console.rest.workflow_models import RunningWorkflow


class StreamItem(Model):
    """A stream in a list."""

    name: str = Field(description="The stream's name.", examples=["greetings"])
    state: str = Field(description="What is being done with it.", examples=["ACTIVE"])
    epoch: int = Field(description="The epoch that is written to.")
    segments: int = Field(description="How many segments are written to.")
    unreachable: int | None = Field(
        default=None, description="How many of them can be neither written nor read; left out if all can."
    )
    tags: list[str] = Field(description="Its tags, in the order in which they were given.")


class StreamList(Model):
    """A page of streams, by name."""

    items: list[StreamItem]
    next: str | None = Field(default=None, description="Where the next page begins; left out at the end.")


class SegmentModel(Model):
    """A segment, the part of the key space it is responsible for, and who keeps it."""

    id: int = Field(description="Epoch in the high 32 bits, number in the low ones.", examples=[4294967298])
    number: int = Field(description="Its number, unique in the stream.")
    epoch: int = Field(description="The epoch it was created in.")
    low: float = Field(description="Where its key range begins.")
    high: float = Field(description="Where its key range ends; that key is not part of it.")
    container: int = Field(description="The container it belongs to.")
    store: str | None = Field(
        default=None, description="host:port of the segment store that runs the container, if known."
    )
    problem: str | None = Field(
        default=None, description="What is wrong with its container, in words; left out if that answers."
    )


class SegmentList(Model):
    """A page of segments, by key range."""

    items: list[SegmentModel]
    next: str | None = Field(default=None, description="Where the next page begins; left out at the end.")


class Successor(SegmentModel):
    """A segment that came for others."""

    replaces: list[int] = Field(description="The ids of all segments it came for.")


class SuccessorList(Model):
    """The segments that came for one; none if it is active, unknown or its stream is sealed."""

    items: list[Successor]


class SegmentLocation(Model):
    """Where a segment is, or would be if it existed."""

    segment: str = Field(description="Its name on the data plane.", examples=["demo/greetings/0.#epoch.0"])
    container: int = Field(description="The container it belongs to.")
    store: str = Field(description="host:port of the segment store that runs the container.")


class WaitingWorkflow(Model):
    """A workflow that waits until others of the stream have ended."""

    kind: str = Field(examples=["scale-stream"])
    at: int = Field(description="When that was last recorded, epoch ms.")


class TransactionCounts(Model):
    """How many transactions of the stream are in each state."""

    open: int = Field(description="Open.")
    waiting: int = Field(description="Waiting to be committed.")
    aborting: int = Field(description="Being aborted.")


class SubscriberModel(Model):
    """A reader group for which the stream keeps what is yet to be read."""

    name: str = Field(description="scope/name of the reader group.", examples=["demo/readers"])
    group_id: str = Field(description="Its UUID.")
    generation: int = Field(description="Its generation.")
    updated_at: int = Field(description="When it last reported, epoch ms.")
    cut: Cut = Field(description="How far it has read; empty before its first report.")


class WatermarkModel(Model):
    """The latest watermark, in the writers' own time."""

    lower: int
    upper: int
    at: int = Field(description="When it was written, epoch ms.")


class StreamDescription(Moment):
    """All there is to know of a stream."""

    scope: str
    name: str
    state: str = Field(description="What is being done with it.", examples=["ACTIVE"])
    epoch: int = Field(description="The epoch that is written to.")
    created_at: int = Field(description="When it was created, epoch ms.")
    config: StreamConfiguration
    segments: list[SegmentModel] = Field(description="The segments that are written to; none once it is sealed.")
    head_cut: Cut = Field(description="Where reading begins.")
    truncated_bytes: int = Field(description="How many bytes lie before the head.")
    workflow: RunningWorkflow | None = Field(default=None, description="What changes it at the moment, or commits.")
    waiting: WaitingWorkflow | None = Field(default=None, description="The workflow that waits.")
    unreachable: Unreachable | None = Field(
        default=None, description="Its segments that can be neither written nor read; left out if all can."
    )
    transactions: TransactionCounts
    subscribers: list[SubscriberModel]
    decisions: list[DecisionModel] = Field(description="The last decision on scaling and on retention.")
    allowed: list[Allowed] | None = Field(
        default=None,
        description="What the caller may do: update, scale, truncate, seal, delete; commit and abort of transactions; "
        "retry and cancel of its workflow. Left out of the past.",
    )
    mark_stream: str = Field(description="The name of the stream that carries its watermarks.")
    watermark: WatermarkModel | None = Field(default=None, description="The latest one, if there is any.")


class ScaleBody(Body):
    """Which segments go and what comes for them."""

    sealed: list[Annotated[int, Field(ge=0, le=INT64_MAX)]] = Field(
        description="The ids of the segments that go.", examples=[[0]], max_length=10_000, fail_fast=True
    )
    ranges: list[
        Annotated[list[Annotated[float, AllowInfNan(False), Field(ge=0, le=1)]], Field(min_length=2, max_length=2)]
    ] = Field(
        description="The key ranges of those that come, each [low, high); together those of the segments that go.",
        examples=[[[0.0, 0.5], [0.5, 1.0]]],
        max_length=10_000,
        fail_fast=True,
    )


class ScaleStarted(Model):
    """A scale that has begun."""

    epoch: int = Field(description="The epoch it began on: GET /scales/{epoch} shows whether it has ended.")
    segments: list[SegmentModel] = Field(description="The segments that come.")


class ScaleProgress(Model):
    """Whether the scale that began on an epoch has ended."""

    epoch: int
    done: bool


class TruncateBody(Body):
    """Where the stream begins from now on."""

    cut: Cut
