"""RPCs that return segments and cuts (controller-grpc-api 5.5): reads of one stream behind a barrier."""

from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.reads import Reads
from api_gateway.pravega.convert import cut_of, epoch_of, fill_range, fill_segment_id, ranges_message, stream_of
from api_gateway.pravega.handlers import Context, Handler
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.stream import cuts, queries
from sluice.security.resources import Permission, mapped_resource, stream_resource
from sluice.security.tokens import TokenSigner


class SegmentHandlers:
    """Answers from the state of one stream; a stream that does not exist is an error in all of them.

    The tokens in them are for clients of before 0.6, which ask for no others.
    """

    def __init__(self, reads: Reads, tokens: TokenSigner) -> None:
        self._reads = reads
        self._tokens = tokens

    def table(self) -> dict[str, Handler]:
        return {
            "getCurrentSegments": self.current,
            "getEpochSegments": self.of_epoch,
            "getSegments": self.head,
            "getSegmentsImmediatlyFollowing": self.following,
            "getSegmentsImmediatelyFollowing": self.following,
            "getSegmentsBetween": self.between,
            "isSegmentValid": self.is_current,
            "isStreamCutValid": self.is_cut_valid,
        }

    async def current(self, request: pb.StreamInfo, _context: Context) -> pb.SegmentRanges:
        id = stream_of(request)
        response = ranges_message(id, queries.current_segments(await self._reads.stream(id)))
        if request.accessOperation != pb.StreamInfo.NONE:
            response.delegationToken = self._tokens.of(Permission.READ_UPDATE, mapped_resource(*id))
        return response

    async def of_epoch(self, request: pb.GetEpochSegmentsRequest, _context: Context) -> pb.SegmentRanges:
        id = stream_of(request.streamInfo)
        epoch = epoch_of(request.epoch)
        response = ranges_message(id, queries.epoch_segments(await self._reads.stream(id), epoch))
        response.delegationToken = self._tokens.of(Permission.READ_UPDATE, stream_resource(*id))
        return response

    async def head(self, request: pb.GetSegmentsRequest, _context: Context) -> pb.SegmentsAtTime:
        id = stream_of(request.streamInfo)
        response = pb.SegmentsAtTime()
        for segment, offset in queries.head(await self._reads.stream(id)).items():
            location = response.segments.add(offset=offset)
            fill_segment_id(location.segmentId, id, segment)
        if request.streamInfo.accessOperation != pb.StreamInfo.NONE:
            response.delegationToken = self._tokens.of(Permission.READ_UPDATE, stream_resource(*id))
        return response

    async def following(self, request: pb.SegmentId, _context: Context) -> pb.SuccessorResponse:
        id = stream_of(request.streamInfo)
        stream = await self._reads.stream(id)
        response = pb.SuccessorResponse()
        for successor, replaced in queries.successors_with_predecessors(stream, request.segmentId):
            fill_range(response.segments.add(value=replaced).segment, id, successor)
        return response

    async def between(self, request: pb.StreamCutRange, _context: Context) -> pb.StreamCutRangeResponse:
        id = stream_of(request.streamInfo)
        # `from` is a keyword of Python.
        start, end = dict(getattr(request, "from")), dict(request.to)
        if not start and not end:
            raise BadRequestError("both cuts are empty")
        response = pb.StreamCutRangeResponse()
        for segment in cuts.segments_between(await self._reads.stream(id), start, end):
            fill_segment_id(response.segments.add(), id, segment)
        response.delegationToken = self._tokens.of(Permission.READ, stream_resource(*id))
        return response

    async def is_current(self, request: pb.SegmentId, _context: Context) -> pb.SegmentValidityResponse:
        stream = await self._reads.stream(stream_of(request.streamInfo))
        return pb.SegmentValidityResponse(response=queries.is_current(stream, request.segmentId))

    async def is_cut_valid(self, request: pb.StreamCut, _context: Context) -> pb.StreamCutValidityResponse:
        id = stream_of(request.streamInfo)
        cut = cut_of(request.cut.items())
        return pb.StreamCutValidityResponse(response=cuts.is_valid(await self._reads.stream(id), cut))
