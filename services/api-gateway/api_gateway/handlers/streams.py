"""RPCs that create, change and remove streams (controller-grpc-api 5.3)."""

from google.protobuf.message import Message

from api_gateway.convert import config_message, config_of, scope_of, stream_of
from api_gateway.generated import controller_pb2 as pb
from api_gateway.handlers import Context, Handler
from api_gateway.reads import Reads
from api_gateway.requests import Requests
from api_gateway.rpc import trace_of
from api_gateway.statuses import response
from sluice.domain.commands import (
    Command,
    CreateStream,
    DeleteStream,
    SealStream,
    TruncateStream,
    UpdateStream,
)


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

    async def create(self, request: pb.StreamConfig, context: Context) -> Message:
        """An empty name of a stream is the domain's to refuse: it has a status of its own."""
        info = request.streamInfo
        command = CreateStream(scope=scope_of(info.scope), stream=info.stream, config=config_of(request))
        return await self._ask(command, context)

    async def update(self, request: pb.StreamConfig, context: Context) -> Message:
        scope, stream = stream_of(request.streamInfo)
        return await self._ask(UpdateStream(scope=scope, stream=stream, config=config_of(request)), context)

    async def truncate(self, request: pb.StreamCut, context: Context) -> Message:
        scope, stream = stream_of(request.streamInfo)
        return await self._ask(TruncateStream(scope=scope, stream=stream, cut=dict(request.cut)), context)

    async def seal(self, request: pb.StreamInfo, context: Context) -> Message:
        scope, stream = stream_of(request)
        return await self._ask(SealStream(scope=scope, stream=stream), context)

    async def delete(self, request: pb.StreamInfo, context: Context) -> Message:
        scope, stream = stream_of(request)
        return await self._ask(DeleteStream(scope=scope, stream=stream), context)

    async def _ask(self, command: Command, context: Context) -> Message:
        return response(command, await self._requests.ask(command, trace_of(context)))

    async def exists(self, request: pb.StreamInfo, _context: Context) -> pb.ExistsResponse:
        return pb.ExistsResponse(exists=await self._reads.stream_or_none(*stream_of(request)) is not None)

    async def configuration(self, request: pb.StreamInfo, _context: Context) -> pb.StreamConfig:
        stream = await self._reads.stream(*stream_of(request))
        return config_message(stream.scope, stream.name, stream.config)
