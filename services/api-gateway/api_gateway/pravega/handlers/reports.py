"""RPCs by which readers and writers report how far they are (controller-grpc-api 5.7, 5.8)."""

from typing import Any

from api_gateway.edge.reads import Reads
from api_gateway.edge.requests import Requests
from api_gateway.pravega.convert import stream_of
from api_gateway.pravega.convert_groups import id_of
from api_gateway.pravega.handlers import Context, Handler
from api_gateway.pravega.handlers.submitting import submit
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.errors import InvalidArgumentError
from sluice.domain.stream.commands import NoteWriterTime, RemoveWriter, UpdateSubscriberCut


class ReportHandlers:
    """Subscribers of a stream with their cuts, writers of a stream with their times."""

    def __init__(self, reads: Reads, requests: Requests) -> None:
        self._reads = reads
        self._requests = requests

    def table(self) -> dict[str, Handler]:
        return {
            "listSubscribers": self.subscribers,
            "updateSubscriberStreamCut": self.update_cut,
            "noteTimestampFromWriter": self.note_time,
            "removeWriter": self.remove_writer,
        }

    async def subscribers(self, request: pb.StreamInfo, _context: Context) -> pb.SubscribersResponse:
        stream = await self._reads.stream_in_scope(stream_of(request))
        if stream is None:
            return pb.SubscribersResponse(status=pb.SubscribersResponse.STREAM_NOT_FOUND)
        return pb.SubscribersResponse(subscribers=sorted(stream.subscribers))

    async def update_cut(self, request: pb.SubscriberStreamCut, context: Context) -> Any:
        """What is malformed matters only once the subscriber was found; a malformed name is never that of one."""
        id = stream_of(request.streamCut.streamInfo)
        stream = await self._reads.stream_in_scope(id)
        if stream is None:
            return pb.UpdateSubscriberStatus(status=pb.UpdateSubscriberStatus.STREAM_NOT_FOUND)
        if request.subscriber not in stream.subscribers:
            return pb.UpdateSubscriberStatus(status=pb.UpdateSubscriberStatus.SUBSCRIBER_NOT_FOUND)
        command = UpdateSubscriberCut(
            *id,
            subscriber=request.subscriber,
            group_id=id_of(request.readerGroupId),
            generation=request.generation,
            cut=dict(request.streamCut.cut),
        )
        response = await submit(self._requests, command, context)
        if not command.cut and response.status == pb.UpdateSubscriberStatus.STREAM_CUT_NOT_VALID:
            raise InvalidArgumentError("the stream cut is empty")
        return response

    async def note_time(self, request: pb.TimestampFromWriter, context: Context) -> Any:
        id = stream_of(request.position.streamInfo)
        command = NoteWriterTime(
            *id,
            writer=request.writer,
            timestamp=request.timestamp,
            position=dict(request.position.cut),
        )
        return await submit(self._requests, command, context)

    async def remove_writer(self, request: pb.RemoveWriterRequest, context: Context) -> Any:
        id = stream_of(request.stream)
        return await submit(self._requests, RemoveWriter(*id, writer=request.writer), context)
