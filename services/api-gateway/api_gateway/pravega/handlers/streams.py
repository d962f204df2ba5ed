"""RPCs that create, change and remove streams (controller-grpc-api 5.3)."""

from typing import Any

from api_gateway.edge.reads import Reads
from api_gateway.edge.requests import Requests
from api_gateway.pravega.convert import config_of, name_of, scope_of, stream_of
from api_gateway.pravega.handlers import Context, Handler
from api_gateway.pravega.handlers.submitting import submit
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.stream.commands import CreateStream, DeleteStream, SealStream, TruncateStream, UpdateStream
from sluice.stream_messages import stream_config_message


class StreamHandlers:
    """What concerns a stream as a whole."""

    def __init__(self, reads: Reads, requests: Requests) -> None:
        self._reads = reads
        self._requests = requests

    def table(self) -> dict[str, Handler]:
        return {
            "createStream": self.create,
            "checkStreamExists": self.exists,
            "getStreamConfiguration": self.configuration,
            "updateStream": self.update,
            "truncateStream": self.truncate,
            "sealStream": self.seal,
            "deleteStream": self.delete,
        }

    async def create(self, request: pb.StreamConfig, context: Context) -> Any:
        """An empty name of a stream is the domain's to refuse: it has a status of its own."""
        info = request.streamInfo
        command = CreateStream(scope=scope_of(info.scope), stream=name_of(info.stream), config=config_of(request))
        return await submit(self._requests, command, context)

    async def update(self, request: pb.StreamConfig, context: Context) -> Any:
        id = stream_of(request.streamInfo)
        return await submit(self._requests, UpdateStream(*id, config=config_of(request)), context)

    async def truncate(self, request: pb.StreamCut, context: Context) -> Any:
        id = stream_of(request.streamInfo)
        return await submit(self._requests, TruncateStream(*id, cut=dict(request.cut)), context)

    async def seal(self, request: pb.StreamInfo, context: Context) -> Any:
        id = stream_of(request)
        return await submit(self._requests, SealStream(*id), context)

    async def delete(self, request: pb.StreamInfo, context: Context) -> Any:
        id = stream_of(request)
        command = DeleteStream(*id, await self._reads.creation_id(id.aggregate))
        return await submit(self._requests, command, context)

    async def exists(self, request: pb.StreamInfo, _context: Context) -> pb.ExistsResponse:
        return pb.ExistsResponse(exists=await self._reads.stream_or_none(stream_of(request)) is not None)

    async def configuration(self, request: pb.StreamInfo, _context: Context) -> pb.StreamConfig:
        stream = await self._reads.stream(stream_of(request))
        return stream_config_message(stream.id, stream.config)
