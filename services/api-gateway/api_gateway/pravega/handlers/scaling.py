"""RPCs that scale a stream by hand (controller-grpc-api 5.4)."""

from api_gateway.edge.reads import Reads
from api_gateway.edge.requests import Requests
from api_gateway.pravega.convert import epoch_of, fill_range, ranges_of, stream_of
from api_gateway.pravega.handlers import Context, Handler
from api_gateway.pravega.handlers.submitting import response_to
from api_gateway.pravega.rpc import trace_of
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.errors import NotFoundError
from sluice.domain.stream.commands import ScaleStream
from sluice.domain.stream.scale import ScaleProgress, answer_at_once, progress

LONGEST_ANSWER_S = 1.0
"""How long the answer to checkScale waits for a scale to end: Java clients poll only once a second."""

_STATUSES = {
    # The original does not tell the two apart.
    ScaleProgress.NONE: pb.ScaleStatusResponse.IN_PROGRESS,
    ScaleProgress.RUNNING: pb.ScaleStatusResponse.IN_PROGRESS,
    ScaleProgress.DONE: pb.ScaleStatusResponse.SUCCESS,
    ScaleProgress.CANCELLED: pb.ScaleStatusResponse.INTERNAL_ERROR,
}


class ScaleHandlers:
    """A scale is answered when it has begun; clients poll whether it has ended.

    That question waits for the end a little, so that the answer is there when the scale is.
    """

    def __init__(self, reads: Reads, requests: Requests) -> None:
        self._reads = reads
        self._requests = requests

    def table(self) -> dict[str, Handler]:
        return {"scale": self.scale, "checkScale": self.check}

    async def scale(self, request: pb.ScaleRequest, context: Context) -> pb.ScaleResponse:
        id = stream_of(request.streamInfo)
        command = ScaleStream(
            *id,
            seals=tuple(request.sealedSegments),
            ranges=ranges_of(request.newKeyRanges),
            at=request.scaleTimestamp,
        )
        reply = answer_at_once(await self._reads.stream_or_none(id), command)
        if reply is None:
            reply = await self._requests.submit(command, trace_of(context))
        response: pb.ScaleResponse = response_to(command, reply, context)
        response.epoch = reply.epoch
        for segment in reply.segments:
            fill_range(response.segments.add(), id, segment)
        return response

    async def check(self, request: pb.ScaleStatusRequest, _context: Context) -> pb.ScaleStatusResponse:
        epoch = epoch_of(request.epoch)
        stream = await self._reads.scaled_stream(stream_of(request.streamInfo), epoch, LONGEST_ANSWER_S)
        try:
            status = _STATUSES[progress(stream, epoch)]
        except NotFoundError:
            status = pb.ScaleStatusResponse.INVALID_INPUT
        return pb.ScaleStatusResponse(status=status)
