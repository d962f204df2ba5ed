"""A controller in memory: the twin of the real one for users' tests, together with the twin of the segment stores.

It answers the same requests with the same messages, so that everything above the channel is the code that runs with a
real controller. Streams are scaled by requests only, never by their load; retention policies do nothing. Concurrency: a
call takes effect at once, as far as the twin of the segment stores lets it.
"""

from collections.abc import Collection
from typing import Any, cast
from uuid import uuid4

import msgspec

from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import ScaleType
from sluice.domain.ids import StreamId
from sluice.domain.names import MARK_PREFIX, mark_stream
from sluice.domain.segment import Segment, number_of, segment_id, segment_name, transaction_segment_name
from sluice.domain.stream import cuts
from sluice.domain.stream.history import Epoch, History
from sluice.domain.stream.queries import successors_with_predecessors
from sluice.domain.stream.state import Stream, StreamState
from sluice.domain.stream.upper_bound import UpperBound, Watermark
from sluice.domain.transaction_ids import halves, text_of, transaction_id
from sluice.pravega import Host, SegmentStore
from sluice.pravega.watermarks import encode_watermark
from sluice.stream_messages import stream_config_message, stream_config_of
from sluice_client.channel import Answer, Request, Rpc
from sluice_client.controller import ControllerApi
from sluice_client.errors import ClientClosed, StreamMissing, StreamSealed
from sluice_client.memory_groups import InMemoryGroups, may_follow

_HOST = Host("memory", 0)


class InMemoryController(ControllerApi):
    """Creates the segments in `store`."""

    def __init__(self, store: SegmentStore) -> None:
        self._service = _Service(store)
        self._closed = False

    def close(self) -> None:
        """Calls that come later end with ClientClosed."""
        self._closed = True

    @property
    def released(self) -> dict[tuple[str, str], dict[int, int]]:
        """Up to where each subscriber, `scope/group`, needs a stream, `scope/stream`, no more; for tests to look at."""
        return self._service.released

    async def call(self, rpc: Rpc[Request, Answer], request: Request) -> Answer:
        """See ControllerApi. Raises AttributeError for what the twin cannot do."""
        if self._closed:
            raise ClientClosed(f"{_HOST}")
        return await rpc(cast(Any, self._service))(request)


class _Transaction(msgspec.Struct):
    """`segments` in the order of those of its epoch."""

    epoch: int
    segments: list[str]
    state: pb.TxnState.State = pb.TxnState.OPEN


class _Stream(Stream):
    """`cut` is where reading begins, from the start."""

    times: dict[str, pb.TimestampFromWriter] = msgspec.field(default_factory=dict)
    """The latest of each writer."""
    transactions: dict[str, _Transaction] = msgspec.field(default_factory=dict)

    @property
    def sealed(self) -> bool:
        return self.state is StreamState.SEALED


class _Service(InMemoryGroups):
    """The RPCs, each under its name."""

    def __init__(self, store: SegmentStore) -> None:
        super().__init__()
        self._store = store
        self._scopes: dict[str, dict[str, _Stream]] = {}
        self._numbers: dict[StreamId, int] = {}

    def _stream(self, info: pb.StreamInfo) -> _Stream:
        found = self._scopes.get(info.scope, {}).get(info.stream)
        if found is None:
            raise StreamMissing(f"{info.scope}/{info.stream}")
        return found

    # Scopes

    async def createScope(self, request: pb.ScopeInfo) -> pb.CreateScopeStatus:
        if request.scope in self._scopes:
            return pb.CreateScopeStatus(status=pb.CreateScopeStatus.SCOPE_EXISTS)
        self._scopes[request.scope] = {}
        return pb.CreateScopeStatus()

    async def checkScopeExists(self, request: pb.ScopeInfo) -> pb.ExistsResponse:
        return pb.ExistsResponse(exists=request.scope in self._scopes)

    async def listScopes(self, request: pb.ScopesRequest) -> pb.ScopesResponse:
        found = [] if request.continuationToken.token else self._scopes
        return pb.ScopesResponse(scopes=found, continuationToken=_LAST)

    async def deleteScope(self, request: pb.ScopeInfo) -> pb.DeleteScopeStatus:
        if self._scopes.get(request.scope):
            return pb.DeleteScopeStatus(status=pb.DeleteScopeStatus.SCOPE_NOT_EMPTY)
        if self._scopes.pop(request.scope, None) is None:
            return pb.DeleteScopeStatus(status=pb.DeleteScopeStatus.SCOPE_NOT_FOUND)
        return pb.DeleteScopeStatus()

    async def deleteScopeRecursive(self, request: pb.ScopeInfo) -> pb.DeleteScopeStatus:
        for name, stream in list(self._scopes.get(request.scope, {}).items()):
            stream.state = StreamState.SEALED
            await self.deleteStream(pb.StreamInfo(scope=request.scope, stream=name))
        self._scopes.pop(request.scope, None)
        return pb.DeleteScopeStatus()

    # Streams

    async def createStream(self, request: pb.StreamConfig) -> pb.CreateStreamStatus:
        info, config = request.streamInfo, stream_config_of(request)
        streams = self._scopes.get(info.scope)
        if streams is None:
            return pb.CreateStreamStatus(status=pb.CreateStreamStatus.SCOPE_NOT_FOUND)
        if info.stream in streams:
            return pb.CreateStreamStatus(status=pb.CreateStreamStatus.STREAM_EXISTS)
        id, history = StreamId(info.scope, info.stream), History([], {})
        stream = streams[info.stream] = _Stream(id, "", StreamState.ACTIVE, config, 0, history, 0, active=-1)
        await self._begin_epoch(info, stream, [], _equal_ranges(config.scaling.min_segments))
        stream.cut = dict.fromkeys(stream.active_epoch.segments, 0)
        if not info.stream.startswith(MARK_PREFIX):
            await self.createStream(pb.StreamConfig(streamInfo=_marks_of(info), scalingPolicy=_ONE_SEGMENT))
        return pb.CreateStreamStatus()

    async def checkStreamExists(self, request: pb.StreamInfo) -> pb.ExistsResponse:
        return pb.ExistsResponse(exists=request.stream in self._scopes.get(request.scope, {}))

    async def listStreamsInScope(self, request: pb.StreamsInScopeRequest) -> pb.StreamsInScopeResponse:
        return self._listed(request, "")

    async def listStreamsInScopeForTag(self, request: pb.StreamsInScopeWithTagRequest) -> pb.StreamsInScopeResponse:
        return self._listed(request, request.tag)

    def _listed(self, request: Any, tag: str) -> pb.StreamsInScopeResponse:
        scope = request.scope.scope
        if scope not in self._scopes:
            return pb.StreamsInScopeResponse(status=pb.StreamsInScopeResponse.SCOPE_NOT_FOUND)
        streams = {} if request.continuationToken.token else self._scopes[scope]
        found = [
            pb.StreamInfo(scope=scope, stream=name)
            for name, stream in streams.items()
            if not tag or tag in stream.config.tags
        ]
        return pb.StreamsInScopeResponse(streams=found, continuationToken=_LAST)

    async def getStreamConfiguration(self, request: pb.StreamInfo) -> pb.StreamConfig:
        return stream_config_message(StreamId(request.scope, request.stream), self._stream(request).config)

    async def updateStream(self, request: pb.StreamConfig) -> pb.UpdateStreamStatus:
        stream = self._scopes.get(request.streamInfo.scope, {}).get(request.streamInfo.stream)
        if stream is None or stream.sealed:
            return pb.UpdateStreamStatus(
                status=pb.UpdateStreamStatus.STREAM_NOT_FOUND if stream is None else pb.UpdateStreamStatus.STREAM_SEALED
            )
        stream.config = stream_config_of(request)
        scaling, count = stream.config.scaling, len(stream.active_epoch.segments)
        fixed = scaling.scale_type is ScaleType.FIXED
        if count < scaling.min_segments or (fixed and count != scaling.min_segments):
            ids = stream.active_epoch.segments
            await self._begin_epoch(request.streamInfo, stream, ids, _equal_ranges(scaling.min_segments))
        return pb.UpdateStreamStatus()

    async def sealStream(self, request: pb.StreamInfo) -> pb.UpdateStreamStatus:
        stream = self._scopes.get(request.scope, {}).get(request.stream)
        if stream is None:
            return pb.UpdateStreamStatus(status=pb.UpdateStreamStatus.STREAM_NOT_FOUND)
        stream.state = StreamState.SEALED
        for transaction in stream.transactions.values():
            await self._abort(transaction)
        for id in stream.active_epoch.segments:
            await self._store.seal_segment(segment_name(request.scope, request.stream, id))
        return pb.UpdateStreamStatus()

    async def truncateStream(self, request: pb.StreamCut) -> pb.UpdateStreamStatus:
        info, cut = request.streamInfo, dict(request.cut)
        stream = self._scopes.get(info.scope, {}).get(info.stream)
        if stream is None or stream.sealed:
            return pb.UpdateStreamStatus(
                status=pb.UpdateStreamStatus.STREAM_NOT_FOUND if stream is None else pb.UpdateStreamStatus.STREAM_SEALED
            )
        if not may_follow(stream, cut, stream.cut):
            return pb.UpdateStreamStatus(status=pb.UpdateStreamStatus.FAILURE)
        stream.cut = cut
        for segment in filter(cuts.lies_before(stream, cut), stream.history.segments.values()):
            await self._store.delete_segment(segment_name(info.scope, info.stream, segment.id))
        for id, offset in cut.items():
            await self._store.truncate_segment(segment_name(info.scope, info.stream, id), max(0, offset))
        return pb.UpdateStreamStatus()

    async def deleteStream(self, request: pb.StreamInfo) -> pb.DeleteStreamStatus:
        stream = self._scopes.get(request.scope, {}).get(request.stream)
        if stream is None or not stream.sealed:
            return pb.DeleteStreamStatus(
                status=pb.DeleteStreamStatus.STREAM_NOT_FOUND
                if stream is None
                else pb.DeleteStreamStatus.STREAM_NOT_SEALED
            )
        del self._scopes[request.scope][request.stream]
        if (marks := self._scopes[request.scope].get(mark_stream(request.stream))) is not None:
            marks.state = StreamState.SEALED
            await self.deleteStream(_marks_of(request))
        for id in stream.history.segments:
            await self._store.delete_segment(segment_name(request.scope, request.stream, id))
        return pb.DeleteStreamStatus()

    # Segments

    async def scale(self, request: pb.ScaleRequest) -> pb.ScaleResponse:
        stream = self._stream(request.streamInfo)
        before = stream.active
        if stream.sealed or not set(request.sealedSegments) <= set(stream.active_epoch.segments):
            return pb.ScaleResponse(status=pb.ScaleResponse.PRECONDITION_FAILED)
        ranges = [(entry.start, entry.end) for entry in request.newKeyRanges]
        await self._begin_epoch(request.streamInfo, stream, list(request.sealedSegments), ranges)
        return pb.ScaleResponse(status=pb.ScaleResponse.STARTED, epoch=before)

    async def checkScale(self, request: pb.ScaleStatusRequest) -> pb.ScaleStatusResponse:
        self._stream(request.streamInfo)
        return pb.ScaleStatusResponse(status=pb.ScaleStatusResponse.SUCCESS)

    async def getCurrentSegments(self, request: pb.StreamInfo) -> pb.SegmentRanges:
        stream = self._stream(request)
        found = [] if stream.sealed else [_range(request, segment) for segment in stream.active_segments()]
        return pb.SegmentRanges(segmentRanges=found)

    async def getEpochSegments(self, request: pb.GetEpochSegmentsRequest) -> pb.SegmentRanges:
        found = self._stream(request.streamInfo).history.segments_of(request.epoch)
        return pb.SegmentRanges(segmentRanges=[_range(request.streamInfo, segment) for segment in found])

    async def getSegments(self, request: pb.GetSegmentsRequest) -> pb.SegmentsAtTime:
        head, location = self._stream(request.streamInfo).cut, pb.SegmentsAtTime.SegmentLocation
        found = [location(segmentId=_id(request.streamInfo, id), offset=offset) for id, offset in head.items()]
        return pb.SegmentsAtTime(segments=found)

    async def getSegmentsImmediatelyFollowing(self, request: pb.SegmentId) -> pb.SuccessorResponse:
        stream, entry = self._stream(request.streamInfo), pb.SuccessorResponse.SegmentEntry
        found = [
            entry(segment=_range(request.streamInfo, segment), value=before)
            for segment, before in successors_with_predecessors(stream, request.segmentId)
        ]
        return pb.SuccessorResponse(segments=found)

    async def getSegmentsBetween(self, request: pb.StreamCutRange) -> pb.StreamCutRangeResponse:
        start, end = dict(getattr(request, "from")), dict(request.to)
        found = cuts.segments_between(self._stream(request.streamInfo), start, end)
        return pb.StreamCutRangeResponse(segments=[_id(request.streamInfo, id) for id in sorted(found)])

    async def getURI(self, _request: pb.SegmentId) -> pb.NodeUri:
        return pb.NodeUri(endpoint=_HOST.address, port=_HOST.port)

    async def getDelegationToken(self, _request: pb.StreamInfo) -> pb.DelegationToken:
        return pb.DelegationToken()

    # Times of writers

    async def noteTimestampFromWriter(self, request: pb.TimestampFromWriter) -> pb.TimestampResponse:
        """A watermark follows at once, if all writers have gone on since the one before."""
        info, stream = request.position.streamInfo, self._stream(request.position.streamInfo)
        last, lowest = stream.times.get(request.writer), min((n.timestamp for n in stream.times.values()), default=None)
        if last is not None and request.timestamp < last.timestamp:
            return pb.TimestampResponse(result=pb.TimestampResponse.INVALID_TIME)
        stream.times[request.writer] = request
        times = [report.timestamp for report in stream.times.values()]
        if lowest is None or min(times) > lowest:
            bound = UpperBound()
            for id, offset in (pair for report in stream.times.values() for pair in report.position.cut.items()):
                bound.add(stream.history.segment(id), offset)
            (marks,) = self._stream(_marks_of(info)).active_epoch.segments
            segment = segment_name(info.scope, mark_stream(info.stream), marks)
            await self._store.append(segment, uuid4(), encode_watermark(Watermark(min(times), max(times), bound.cut())))
        return pb.TimestampResponse()

    async def removeWriter(self, request: pb.RemoveWriterRequest) -> pb.RemoveWriterResponse:
        if self._stream(request.stream).times.pop(request.writer, None) is None:
            return pb.RemoveWriterResponse(result=pb.RemoveWriterResponse.UNKNOWN_WRITER)
        return pb.RemoveWriterResponse()

    # Transactions

    async def createTransaction(self, request: pb.CreateTxnRequest) -> pb.CreateTxnResponse:
        info, stream = request.streamInfo, self._stream(request.streamInfo)
        if stream.sealed:
            raise StreamSealed(f"{info.scope}/{info.stream}")
        epoch, current = stream.active, stream.active_segments()
        id = transaction_id(epoch, f"{len(stream.transactions)}")
        high, low = halves(id)
        names = [transaction_segment_name(info.scope, info.stream, found.id, high, low) for found in current]
        for name in names:
            await self._store.create_segment(name, 0, 0)
        stream.transactions[id] = _Transaction(epoch, names)
        ranges = [_range(info, Segment(segment_id(epoch, number_of(s.id)), s.low, s.high)) for s in current]
        return pb.CreateTxnResponse(txnId=pb.TxnId(highBits=high, lowBits=low), activeSegments=ranges)

    async def pingTransaction(self, request: pb.PingTxnRequest) -> pb.PingTxnStatus:
        state = self._state_of(request)
        ended = {pb.TxnState.COMMITTED: pb.PingTxnStatus.COMMITTED, pb.TxnState.ABORTED: pb.PingTxnStatus.ABORTED}
        unended = pb.PingTxnStatus.OK if state == pb.TxnState.OPEN else pb.PingTxnStatus.UNKNOWN
        return pb.PingTxnStatus(status=ended.get(state, unended))

    async def checkTransactionState(self, request: pb.TxnRequest) -> pb.TxnState:
        return pb.TxnState(state=self._state_of(request))

    async def abortTransaction(self, request: pb.TxnRequest) -> pb.TxnStatus:
        transaction = self._transaction(request)
        if transaction is None or transaction.state == pb.TxnState.COMMITTED:
            return pb.TxnStatus(status=pb.TxnStatus.FAILURE)
        await self._abort(transaction)
        return pb.TxnStatus()

    async def commitTransaction(self, request: pb.TxnRequest) -> pb.TxnStatus:
        info, transaction = request.streamInfo, self._transaction(request)
        if transaction is None or transaction.state == pb.TxnState.ABORTED:
            return pb.TxnStatus(status=pb.TxnStatus.FAILURE)
        if transaction.state == pb.TxnState.OPEN:
            transaction.state = pb.TxnState.COMMITTED
            stream = self._stream(info)
            active, is_of_epoch = stream.active_segments(), stream.active == transaction.epoch
            if not is_of_epoch:
                await self._replace_all(info, stream, stream.history.segments_of(transaction.epoch))
            for target, source in zip(stream.active_segments(), transaction.segments, strict=True):
                await self._store.merge_batch(segment_name(info.scope, info.stream, target.id), [source])
            if not is_of_epoch:
                await self._replace_all(info, stream, active)
        return pb.TxnStatus()

    async def _replace_all(self, info: pb.StreamInfo, stream: _Stream, like: list[Segment]) -> None:
        ranges = [(segment.low, segment.high) for segment in like]
        await self._begin_epoch(info, stream, stream.active_epoch.segments, ranges)

    async def _abort(self, transaction: _Transaction) -> None:
        if transaction.state == pb.TxnState.OPEN:
            transaction.state = pb.TxnState.ABORTED
            for name in transaction.segments:
                await self._store.delete_segment(name)

    def _transaction(self, request: pb.TxnRequest | pb.PingTxnRequest) -> _Transaction | None:
        stream = self._scopes.get(request.streamInfo.scope, {}).get(request.streamInfo.stream)
        id = text_of(request.txnId.highBits, request.txnId.lowBits)
        return stream.transactions.get(id) if stream is not None else None

    def _state_of(self, request: pb.TxnRequest | pb.PingTxnRequest) -> pb.TxnState.State:
        transaction = self._transaction(request)
        return pb.TxnState.UNKNOWN if transaction is None else transaction.state

    async def _begin_epoch(
        self, info: pb.StreamInfo, stream: _Stream, replaced: Collection[int], ranges: list[tuple[float, float]]
    ) -> None:
        """Creates the segments for these ranges, and seals those that they replace."""
        id = StreamId(info.scope, info.stream)
        number = self._numbers.get(id, 0)
        self._numbers[id] = number + len(ranges)
        epoch = stream.next_epoch
        new = [Segment(segment_id(epoch, number + at), low, high) for at, (low, high) in enumerate(ranges)]
        for segment in new:
            await self._store.create_segment(segment_name(info.scope, info.stream, segment.id), 0, 0)
        kept = [id for id in (stream.active_epoch.segments if epoch else ()) if id not in replaced]
        alive = (*kept, *(segment.id for segment in new))
        stream.history.add(Epoch(epoch, epoch, epoch, alive), new, replaced)
        stream.active = epoch
        for sealed in replaced:
            await self._store.seal_segment(segment_name(info.scope, info.stream, sealed))


_ONE_SEGMENT = pb.ScalingPolicy(minNumSegments=1)
_LAST = pb.ContinuationToken(token="last")


def _marks_of(info: pb.StreamInfo) -> pb.StreamInfo:
    return pb.StreamInfo(scope=info.scope, stream=mark_stream(info.stream))


def _id(info: pb.StreamInfo, segment: int) -> pb.SegmentId:
    return pb.SegmentId(streamInfo=pb.StreamInfo(scope=info.scope, stream=info.stream), segmentId=segment)


def _range(info: pb.StreamInfo, segment: Segment) -> pb.SegmentRange:
    return pb.SegmentRange(segmentId=_id(info, segment.id), minKey=segment.low, maxKey=segment.high)


def _equal_ranges(count: int) -> list[tuple[float, float]]:
    return [(number / count, (number + 1) / count) for number in range(count)]
