"""What is shown of streams, and what is sent about them."""

from typing import Annotated

from pydantic import AllowInfNan, Field

from api_gateway.console.rest.base import INT64_MAX, Body, Cut, Model, Page
from sluice.insight.shown import text
from sluice.insight.streams import SegmentModel, StreamItem


class StreamList(Page[StreamItem]):
    """A page of streams, by name."""


class SegmentList(Page[SegmentModel]):
    """A page of segments, by key range."""


class Successor(SegmentModel):
    """A segment that came for others."""

    replaces: list[int] = text("The ids of all segments it came for.")


class SuccessorList(Model):
    """The segments that came for one; none if it is active, unknown or its stream is sealed."""

    items: list[Successor]


class SegmentLocation(Model):
    """Where a segment is, or would be if it existed."""

    segment: str = Field(description="Its name on the data plane.", examples=["demo/greetings/0.#epoch.0"])
    container: int = Field(description="The container it belongs to.")
    store: str = Field(description="host:port of the segment store that runs the container.")


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
