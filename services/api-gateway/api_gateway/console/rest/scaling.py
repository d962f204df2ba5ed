"""Scaling by hand, and the segments that come of it."""

from typing import Annotated

from fastapi import Path, Query, Response

from api_gateway.console.paging import DEFAULT, After, Limit, numbers_in, token_of
from api_gateway.console.rest.actions import action
from api_gateway.console.rest.base import (
    INT32_MAX,
    INT64_MAX,
    ScopeName,
    SegmentId,
    StreamName,
    refusals,
    router,
)
from api_gateway.console.rest.stream_models import (
    ScaleBody,
    ScaleProgress,
    ScaleStarted,
    SegmentList,
    SegmentLocation,
    Successor,
    SuccessorList,
)
from api_gateway.edge.containers import Containers
from api_gateway.edge.errors import NoOwnerError
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.failures import RefusedError
from api_gateway.edge.rest.parts import Parts, ServedClock, ServedContainers, ServedReads
from sluice.domain.decision import Reply
from sluice.domain.errors import NotFoundError
from sluice.domain.ids import StreamId
from sluice.domain.segment import segment_name
from sluice.domain.stream import queries
from sluice.domain.stream import scale as scales
from sluice.domain.stream.commands import ScaleStream
from sluice.domain.stream.state import Stream, StreamState
from sluice.insight.streams import segments_shown

routes = router("segments")

_ONE = "/scopes/{scope}/streams/{stream}"
ABOUT = "stream {0.scope}/{0.stream}"
"""In refusals of what is to be done with a stream."""

Epoch = Annotated[int, Path(ge=0, le=INT32_MAX, description="The epoch that the scale began on.")]


def _started(parts: Parts, command: ScaleStream, reply: Reply) -> ScaleStarted:
    segments = segments_shown(command.stream_id, reply.segments, parts[Containers].placement())
    return ScaleStarted(epoch=reply.epoch, segments=segments)


@action(
    routes,
    "scale",
    "POST",
    f"{_ONE}/scale",
    id="scaleStream",
    about=ABOUT,
    says="It has begun.",
    status=202,
    answer=_started,
    dry=True,
)
async def scale_stream(
    reads: ServedReads, clock: ServedClock, scope: ScopeName, stream: StreamName, body: ScaleBody
) -> ScaleStream:
    """Replace segments of a stream by new ones over the same keys. Answered when it has begun."""
    await reads.stream(StreamId(scope, stream))
    ranges = tuple((low, high) for low, high in body.ranges)
    return ScaleStream(scope=scope, stream=stream, seals=tuple(body.sealed), ranges=ranges, at=clock.now_ms())


@routes.get(
    f"{_ONE}/scales/{{epoch}}", operation_id="checkScale", response_model=ScaleProgress, responses=refusals(404, 409)
)
async def check_scale(reads: ServedReads, scope: ScopeName, stream: StreamName, epoch: Epoch) -> Response:
    """Say whether the scale that began on an epoch has ended; 404 if none began on it, 409 if it was cancelled."""
    found = await reads.stream(StreamId(scope, stream))
    progress = scales.progress(found, epoch)
    if progress is scales.ScaleProgress.NONE:
        raise NotFoundError(
            f"no scale of {scope}/{stream} has begun on epoch {epoch}; the active one is {found.active}"
        )
    if progress is scales.ScaleProgress.CANCELLED:
        raise RefusedError(409, f"the scale of {scope}/{stream} on epoch {epoch} was cancelled", "INTERNAL_ERROR")
    return as_json(ScaleProgress(epoch=epoch, done=progress is scales.ScaleProgress.DONE))


@routes.get(f"{_ONE}/segments", operation_id="listSegments", response_model=SegmentList, responses=refusals(404, 409))
async def list_segments(
    reads: ServedReads,
    containers: ServedContainers,
    scope: ScopeName,
    stream: StreamName,
    epoch: Annotated[int | None, Query(ge=0, le=INT32_MAX, description="Those of this epoch.")] = None,
    time: Annotated[int | None, Query(ge=0, le=INT64_MAX, description="Those that were active then, epoch ms.")] = None,
    limit: Limit = DEFAULT,
    after: After = "",
) -> Response:
    """List the segments that are written to now, or were at a time or in an epoch; by key range."""
    if epoch is not None and time is not None:
        raise RefusedError(400, "epoch and time exclude each other")
    found = await reads.stream(StreamId(scope, stream))
    # An epoch never changes: a list that was begun goes on in the epoch it began with.
    begun = numbers_in(after, 2)
    if begun is not None:
        number, first = begun
    else:
        number, first = _epoch(found, epoch, time), 0
        if epoch is None and time is None and found.state is StreamState.SEALED:
            return as_json(SegmentList(items=[]))
    segments = queries.epoch_segments(found, number)
    page = segments[first : first + limit]
    following = token_of(f"{number}.{first + limit}") if first + limit < len(segments) else None
    return as_json(SegmentList(items=segments_shown(found.id, page, containers.placement()), next=following))


def _epoch(stream: Stream, epoch: int | None, time: int | None) -> int:
    if epoch is not None:
        return epoch
    if time is None:
        return stream.active
    # A scale that is under way has added an epoch already.
    number = min(stream.history.epoch_at(time), stream.active)
    if number < 0:
        raise NotFoundError(f"{stream.id} was created later, at {stream.history.created_at(stream.history.first)}")
    return number


@routes.get(
    f"{_ONE}/segments/{{segment}}/successors",
    operation_id="listSuccessors",
    response_model=SuccessorList,
    responses=refusals(404),
)
async def successors(
    reads: ServedReads, containers: ServedContainers, scope: ScopeName, stream: StreamName, segment: SegmentId
) -> Response:
    """List the segments that came for one, each with all it came for."""
    found = await reads.stream(StreamId(scope, stream))
    if found.history.find(segment) is None:
        raise NotFoundError(f"{scope}/{stream} has no segment {segment}")
    pairs = queries.successors_with_predecessors(found, segment)
    shown = segments_shown(found.id, (successor for successor, _ in pairs), containers.placement())
    items = [Successor(**vars(one), replaces=replaced) for one, (_, replaced) in zip(shown, pairs, strict=True)]
    return as_json(SuccessorList(items=items))


@routes.get(
    f"{_ONE}/segments/{{segment}}/location",
    operation_id="locateSegment",
    response_model=SegmentLocation,
    responses=refusals(404),
)
async def location(
    reads: ServedReads, containers: ServedContainers, scope: ScopeName, stream: StreamName, segment: SegmentId
) -> Response:
    """Say which segment store has a segment."""
    found = await reads.stream(StreamId(scope, stream))
    if found.history.find(segment) is None:
        raise NotFoundError(f"{scope}/{stream} has no segment {segment}")
    name, placement = segment_name(scope, stream, segment), containers.placement()
    container = placement.container(name)
    store = placement.store(container)
    if container is None or store is None:
        raise NoOwnerError(f"no segment store is known to run container {container}")
    return as_json(SegmentLocation(segment=name, container=container, store=store))
