"""A target: a controller behind its addresses for gRPC and HTTP, and the segment stores it commands.

Belongs to one event loop; any number of calls side by side.
"""

from typing import Any
from uuid import UUID, uuid4

import grpc
import httpx
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from conformance.answers import Refused
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.host import Host
from sluice.domain.segment import segment_name
from sluice.pravega.client import SegmentStoreClient
from sluice.pravega.errors import SegmentMissing

_INTERFACE = pb.DESCRIPTOR.services_by_name["ControllerService"]
_CALL_DEADLINE_S = 60.0
_CONTAINERS = 4


class Target:
    """One controller at host:port, and at a URL of its REST API, too."""

    def __init__(self, name: str, address: str, rest_url: str) -> None:
        self.name = name
        self.http = httpx.AsyncClient(base_url=rest_url, timeout=_CALL_DEADLINE_S, trust_env=False)
        self._channel = grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        self._calls: dict[str, Any] = {}
        for method in _INTERFACE.methods:
            self._calls[method.name] = self._channel.unary_unary(
                f"/{_INTERFACE.full_name}/{method.name}",
                request_serializer=GetMessageClass(method.input_type).SerializeToString,
                response_deserializer=GetMessageClass(method.output_type).FromString,
            )

    async def ask(self, rpc: str, request: Message) -> Message | Refused:
        """The answer, or the error it was refused with."""
        try:
            answer: Message = await self._calls[rpc](request, timeout=_CALL_DEADLINE_S)
        except grpc.aio.AioRpcError as error:
            return Refused(error.code().name, error.details())
        return answer

    async def close(self) -> None:
        await self._channel.close(None)
        await self.http.aclose()

    async def write(self, scope: str, stream: str, segment: int, length: int) -> int:
        """Append one event that makes a segment longer by `length` bytes, at least 8; return how long it is then."""
        return await self.append(scope, stream, segment, b"x" * (length - 8))

    async def append(self, scope: str, stream: str, segment: int, event: bytes) -> int:
        """Append one event; return how long the segment is then."""
        name = segment_name(scope, stream, segment)
        store = await self.store_of(scope, stream, segment)
        try:
            return await store.append(name, uuid4(), event)
        finally:
            await store.close()

    async def mark(self, scope: str, stream: str, segment: int, attribute: UUID, value: int) -> bool:
        """Set an attribute of a segment, whatever it was."""
        name = segment_name(scope, stream, segment)
        store = await self.store_of(scope, stream, segment)
        try:
            return await store.update_attribute(name, attribute, value, await store.attribute(name, attribute))
        finally:
            await store.close()

    async def fate(self, scope: str, stream: str, segment: int) -> str:
        """What the segment store says about a segment: `open`, `sealed` or `gone`, and where it begins if not at 0."""
        store = await self.store_of(scope, stream, segment)
        try:
            info = await store.segment_info(segment_name(scope, stream, segment))
        except SegmentMissing:
            return "gone"
        finally:
            await store.close()
        begin = f" from {info.start_offset}" if info.start_offset else ""
        return ("sealed" if info.sealed else "open") + begin

    async def store_of(self, scope: str, stream: str, segment: int) -> SegmentStoreClient:
        info = pb.StreamInfo(scope=scope, stream=stream)
        uri = await self.ask("getURI", pb.SegmentId(streamInfo=info, segmentId=segment))
        assert isinstance(uri, pb.NodeUri), f"no address of segment {segment} of {scope}/{stream}: {uri}"
        host = Host(uri.endpoint, uri.port)
        return SegmentStoreClient(lambda _container: host, _CONTAINERS)
