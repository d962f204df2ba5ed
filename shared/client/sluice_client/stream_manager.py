"""Scopes and streams: making, changing, looking at and removing them.

A call returns when it has its effect; one whose answer was lost is made again, and then finds its effect there.
Concurrency: any number of calls side by side on one event loop.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

import msgspec

from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.names import MARK_PREFIX, READER_GROUP_PREFIX
from sluice.pravega import SegmentStore
from sluice.pravega.stream_cut import StreamCut
from sluice.stream_messages import stream_config_message, stream_config_of
from sluice_client.attempts import Patience, answered
from sluice_client.controller import ControllerApi, name_of, segment_message, stream_message
from sluice_client.errors import (
    Refused,
    ScopeMissing,
    ScopeNotEmpty,
    StreamMissing,
    StreamNotSealed,
    StreamSealed,
    Unavailable,
)
from sluice_client.names import check_scope, check_stream

_SCALE_LOOK_S = 0.2


class KeyRange(msgspec.Struct, frozen=True):
    """A segment, and the routing keys that go to it: from `low` to below `high`."""

    segment: str
    low: float
    high: float


class StreamDescription(msgspec.Struct, frozen=True):
    """A stream as it is: no segment takes events if it is sealed."""

    config: StreamConfig
    segments: tuple[KeyRange, ...]
    head: StreamCut

    @property
    def sealed(self) -> bool:
        """Whether nothing can be written any more."""
        return not self.segments


class StreamManager:
    """What a cluster has of scopes and streams. Every method may raise what those of `ControllerApi` may."""

    def __init__(self, controller: ControllerApi, store: SegmentStore, patience: Patience) -> None:
        self._controller = controller
        self._store = store
        self._patience = patience

    async def create_scope(self, scope: str) -> bool:
        """Creates a scope; False: it was there already."""
        return await self._controller.create_scope(scope)

    async def scope_exists(self, scope: str) -> bool:
        """Whether there is such a scope."""
        check_scope(scope)
        return (await self._controller.call(lambda stub: stub.checkScopeExists, pb.ScopeInfo(scope=scope))).exists

    async def scopes(self) -> AsyncIterator[str]:
        """The names of all scopes, in no order."""
        token = pb.ContinuationToken()
        while True:
            request = pb.ScopesRequest(continuationToken=token)
            page = await self._controller.call(lambda stub: stub.listScopes, request)
            if not page.scopes:
                return
            for scope in page.scopes:
                yield scope
            token = page.continuationToken

    async def delete_scope(self, scope: str, *, with_contents: bool = False) -> bool:
        """Deletes a scope, on demand with all that is in it; False: there was none. Raises ScopeNotEmpty."""
        check_scope(scope)
        request, deleted = pb.ScopeInfo(scope=scope), pb.DeleteScopeStatus
        if with_contents:
            answer = await self._controller.call(lambda stub: stub.deleteScopeRecursive, request)
        else:
            answer = await self._controller.call(lambda stub: stub.deleteScope, request)
        if answer.status in (deleted.SUCCESS, deleted.SCOPE_NOT_FOUND):
            return answer.status == deleted.SUCCESS
        if answer.status == deleted.SCOPE_NOT_EMPTY:
            raise ScopeNotEmpty(scope)
        raise Refused(f"deleteScope {scope}: {deleted.Status.Name(answer.status)}")

    async def create_stream(self, scope: str, stream: str, config: StreamConfig | None = None) -> bool:
        """Creates a stream, with one segment unless `config` says more; False: it was there already, as it was.

        Raises ScopeMissing.
        """
        return await self._controller.create_configured(scope, stream, config or StreamConfig())

    async def stream_exists(self, scope: str, stream: str) -> bool:
        """Whether there is such a stream, sealed or not."""
        check_stream(scope, stream)
        return (await self._controller.call(lambda stub: stub.checkStreamExists, stream_message(scope, stream))).exists

    async def streams(self, scope: str, tag: str = "") -> AsyncIterator[str]:
        """The names of the streams of a scope, in no order, of those with the tag if one is given.

        Without those that Pravega keeps for itself. Raises ScopeMissing.
        """
        check_scope(scope)
        token = pb.ContinuationToken()
        while True:
            if tag:
                tagged = pb.StreamsInScopeWithTagRequest(
                    scope=pb.ScopeInfo(scope=scope), tag=tag, continuationToken=token
                )
                page = await self._controller.call(lambda stub: stub.listStreamsInScopeForTag, tagged)
            else:
                request = pb.StreamsInScopeRequest(scope=pb.ScopeInfo(scope=scope), continuationToken=token)
                page = await self._controller.call(lambda stub: stub.listStreamsInScope, request)
            if page.status == pb.StreamsInScopeResponse.SCOPE_NOT_FOUND:
                raise ScopeMissing(scope)
            if page.status != pb.StreamsInScopeResponse.SUCCESS:
                raise Refused(f"listStreams {scope}: {pb.StreamsInScopeResponse.Status.Name(page.status)}")
            if not page.streams:
                return
            for found in page.streams:
                if not found.stream.startswith((MARK_PREFIX, READER_GROUP_PREFIX)):
                    yield found.stream
            token = page.continuationToken

    async def config(self, scope: str, stream: str) -> StreamConfig:
        """The configuration of a stream. Raises StreamMissing."""
        check_stream(scope, stream)
        request = stream_message(scope, stream)
        return stream_config_of(await self._controller.call(lambda stub: stub.getStreamConfiguration, request))

    async def describe(self, scope: str, stream: str) -> StreamDescription:
        """Configuration, segments and head of a stream. Raises StreamMissing."""
        config = await self.config(scope, stream)
        answer = await self._controller.call(lambda stub: stub.getCurrentSegments, stream_message(scope, stream))
        ranges = [KeyRange(name_of(found.segmentId), found.minKey, found.maxKey) for found in answer.segmentRanges]
        ranges.sort(key=lambda segment: segment.low)
        return StreamDescription(config, tuple(ranges), await self.head(scope, stream))

    async def update_stream(self, scope: str, stream: str, config: StreamConfig) -> None:
        """Gives a stream another configuration, as a whole; a fixed number of segments that differs scales it.

        Raises StreamMissing, StreamSealed.
        """
        check_stream(scope, stream)
        request = stream_config_message(StreamId(scope, stream), config)
        _check_updated(await self._controller.call(lambda stub: stub.updateStream, request), scope, stream)

    async def seal_stream(self, scope: str, stream: str) -> None:
        """Ends a stream: nothing can be written any more. Raises StreamMissing."""
        check_stream(scope, stream)
        request = stream_message(scope, stream)
        _check_updated(await self._controller.call(lambda stub: stub.sealStream, request), scope, stream)

    async def truncate_stream(self, cut: StreamCut) -> None:
        """Drops what lies before a cut. Raises StreamMissing, StreamSealed; Refused for a cut before the head."""
        check_stream(cut.scope, cut.stream)
        request = pb.StreamCut(streamInfo=stream_message(cut.scope, cut.stream), cut=cut.by_id())
        _check_updated(await self._controller.call(lambda stub: stub.truncateStream, request), cut.scope, cut.stream)

    async def delete_stream(self, scope: str, stream: str) -> bool:
        """Deletes a sealed stream; False: there was none. Raises StreamNotSealed."""
        check_stream(scope, stream)
        deleted = pb.DeleteStreamStatus
        status = (await self._controller.call(lambda stub: stub.deleteStream, stream_message(scope, stream))).status
        if status in (deleted.SUCCESS, deleted.STREAM_NOT_FOUND):
            return status == deleted.SUCCESS
        if status == deleted.STREAM_NOT_SEALED:
            raise StreamNotSealed(f"{scope}/{stream}")
        raise Refused(f"deleteStream {scope}/{stream}: {deleted.Status.Name(status)}")

    async def scale(self, segments: Sequence[str], ranges: Sequence[tuple[float, float]]) -> None:
        """Replaces segments of one stream by new ones for these ranges of keys, which together are theirs.

        Returns when events go to the new ones. Raises Refused, also if one of the segments takes no events any more.
        """
        messages = [segment_message(segment) for segment in segments]
        request = pb.ScaleRequest(
            streamInfo=messages[0].streamInfo,
            sealedSegments=[message.segmentId for message in messages],
            newKeyRanges=[pb.ScaleRequest.KeyRangeEntry(start=low, end=high) for low, high in ranges],
            scaleTimestamp=time.time_ns() // 1_000_000,
        )
        answer = await self._controller.call(lambda stub: stub.scale, request)
        if answer.status != pb.ScaleResponse.STARTED:
            raise Refused(f"scale {segments}: {pb.ScaleResponse.ScaleStreamStatus.Name(answer.status)}")
        await self._scaled(pb.ScaleStatusRequest(streamInfo=request.streamInfo, epoch=answer.epoch))

    async def _scaled(self, request: pb.ScaleStatusRequest) -> None:
        """Waits for the end of a scale."""
        found, stream = pb.ScaleStatusResponse, f"{request.streamInfo.scope}/{request.streamInfo.stream}"
        try:
            async with asyncio.timeout(self._patience.deadline_s):
                while True:
                    status = (await self._controller.call(lambda stub: stub.checkScale, request)).status
                    if status == found.SUCCESS:
                        return
                    if status != found.IN_PROGRESS:
                        raise Refused(f"scale {stream}: {found.ScaleStatus.Name(status)}")
                    await asyncio.sleep(_SCALE_LOOK_S)
        except TimeoutError:
            raise Unavailable(f"{stream}: the scale goes on after {self._patience.deadline_s} s") from None

    async def head(self, scope: str, stream: str) -> StreamCut:
        """Where the oldest event is. Raises StreamMissing."""
        check_stream(scope, stream)
        request = pb.GetSegmentsRequest(streamInfo=stream_message(scope, stream))
        answer = await self._controller.call(lambda stub: stub.getSegments, request)
        return StreamCut(scope, stream, {name_of(found.segmentId): found.offset for found in answer.segments})

    async def tail(self, scope: str, stream: str) -> StreamCut:
        """Where the next event of each segment goes. Raises StreamMissing, StreamSealed."""
        segments = await self._controller.segments(scope, stream)
        if not segments:
            raise StreamSealed(f"{scope}/{stream}")
        infos = await asyncio.gather(*(self._info_of(segment) for segment in segments))
        return StreamCut(scope, stream, dict(zip(segments, infos, strict=True)))

    async def _info_of(self, segment: str) -> int:
        return (await answered(lambda: self._store.segment_info(segment), self._patience)).length


def _check_updated(answer: pb.UpdateStreamStatus, scope: str, stream: str) -> None:
    status = pb.UpdateStreamStatus
    if answer.status in (status.STREAM_NOT_FOUND, status.SCOPE_NOT_FOUND):
        raise StreamMissing(f"{scope}/{stream}")
    if answer.status == status.STREAM_SEALED:
        raise StreamSealed(f"{scope}/{stream}")
    if answer.status != status.SUCCESS:
        raise Refused(f"{scope}/{stream}: {status.Status.Name(answer.status)}")
