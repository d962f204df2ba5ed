"""The readers of a reader group: what each reads, and how much all have yet to read."""

import logging
from itertools import islice
from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import Field

from api_gateway.console.group_readers import MAX_STREAMS, GroupReaders, Held
from api_gateway.console.lookback import while_caller_waits
from api_gateway.console.rest.base import GroupName, Model, ScopeName, refusals, router
from api_gateway.edge.errors import OverloadedError, QuotaExceededError
from api_gateway.edge.group_state import StateError
from api_gateway.edge.listing import may_read
from api_gateway.edge.reads import Reads
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.failures import RefusedError
from api_gateway.edge.rest.parts import ServedReads, served
from sluice.domain.ids import GroupId, StreamId
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.status import Status
from sluice.lookback.errors import LookbackError
from sluice.pravega.errors import SegmentMissing
from sluice.security.resources import mapped_resource

log = logging.getLogger(__name__)

routes = router("reader groups")


class HeldSegment(Model):
    """A segment, and how far it is read: coarse, for readers report now and then."""

    stream: str = Field(examples=["demo/orders"])
    segment: int = Field(description="Its id.")
    offset: int = Field(description="Of the next event; -1: read to its end.")


class ReaderModel(Model):
    """A reader that is online."""

    name: str
    segments: list[HeldSegment] = Field(description="What it reads.")


class Lag(Model):
    """What is yet to be read of streams that the caller may READ, by all readers together."""

    bytes: int | None = Field(
        default=None,
        description="As far as it is known: of what segment stores do not say nothing is counted. Left out if that is "
        "all, as where a stream does not exist.",
    )
    ms: int | None = Field(
        default=None,
        description="How long ago the oldest of it was written, 6 hours at most, as of half a minute ago; left out if "
        "that is not known, or not asked for: cuts are sampled of streams with a policy only.",
    )


class GroupReadersModel(Model):
    """Who reads what. Without a state, which the first reader writes, nothing is assigned, and all is unread."""

    readers: list[ReaderModel]
    unassigned: list[HeldSegment] = Field(description="What waits for a reader.")
    lag: Lag
    checkpoint_at: int | None = Field(
        default=None,
        description="When it last reported a cut, as at its checkpoints, epoch ms; left out if it has not, as groups "
        "without retention.",
    )
    at: int = Field(description="When that was looked at, epoch ms; some seconds ago at most.")
    complete: bool = Field(description="Whether the lag counts everything; what the caller may not READ it does not.")


@routes.get(
    "/scopes/{scope}/readergroups/{group}/readers",
    operation_id="listReaders",
    response_model=GroupReadersModel,
    responses=refusals(404, 409),
)
async def list_readers(
    request: Request,
    reads: ServedReads,
    group_readers: Annotated[GroupReaders, served(GroupReaders)],
    scope: ScopeName,
    group: GroupName,
    age: Annotated[bool, Query(description="Look up `lag.ms`, which is in the past; false is quicker.")] = True,
) -> Response:
    """Say which reader of a group reads which segments, what waits for a reader, and how far behind the group is."""
    id = GroupId(scope, group)
    found = await reads.group_or_none(id)
    if found is None and reads.known_stream(id.state_stream) is None:
        raise RefusedError(404, f"reader group {scope}/{group} does not exist", Status.RG_NOT_FOUND)
    try:
        readers = await group_readers.find(id, found)
    except SegmentMissing as error:
        raise RefusedError(404, f"reader group {scope}/{group} is gone", Status.RG_NOT_FOUND) from error
    except StateError as error:
        raise RefusedError(409, f"the state of {scope}/{group} cannot be read: {error}") from error
    readable = [stream for stream in readers.unread if may_read(mapped_resource(*stream))]
    total = sum(readers.unread[stream].bytes for stream in readable)
    complete = readers.complete and len(readable) == len(readers.unread)
    is_known, ms = bool(total) or complete, None
    if age and is_known:
        try:
            ms = await while_caller_waits(request, group_readers.age(id, readers, readable))
        except (LookbackError, OverloadedError, QuotaExceededError) as error:
            log.warning("age of what is unread is not known", extra={"group": f"{id}", "error": f"{error}"})
    return as_json(
        GroupReadersModel(
            readers=[ReaderModel(name=one.name, segments=list(map(_model, one.segments))) for one in readers.readers],
            unassigned=list(map(_model, readers.unassigned)),
            lag=Lag(bytes=total if is_known else None, ms=ms),
            checkpoint_at=_checkpoint_at(reads, found) if found is not None else None,
            at=readers.at,
            complete=complete,
        )
    )


def _checkpoint_at(reads: Reads, group: ReaderGroup) -> int | None:
    """When streams of it last had a cut reported, as far as they are known here."""
    name, streams = f"{group.id}", map(StreamId.of, islice(group.config.starts, MAX_STREAMS))
    present = (reads.known_stream(stream) for stream in streams if may_read(mapped_resource(*stream)))
    known = (stream.subscribers.get(name) for stream in present if stream is not None)
    return max((one.updated_at for one in known if one is not None and one.cut), default=None)


def _model(held: Held) -> HeldSegment:
    return HeldSegment(stream=held.stream, segment=held.segment, offset=held.offset)
