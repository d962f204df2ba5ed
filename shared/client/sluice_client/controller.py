"""The client's calls to the controller, by gRPC.

Segments have their qualified names, as the segment stores know them. A call is repeated until it is answered or its
time is up: an answer that got lost, or was too long in coming for one attempt, is "was there already" the second time.
Concurrency: any number of calls side by side on one event loop.
"""

import asyncio
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

import grpc

from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.segment import KVT_SUFFIX, parse_segment_name, segment_name
from sluice.pravega import Host
from sluice.stream_messages import stream_config_message
from sluice_client.access import OPEN_ACCESS, Access, host_in, is_secured
from sluice_client.attempts import Patience
from sluice_client.channel import Answer, ControllerChannel, Request, Rpc
from sluice_client.errors import AccessRefused, Refused, ScopeMissing, StreamMissing, Unavailable
from sluice_client.names import check_new_stream, check_scope, check_stream

_TRY_AGAIN = frozenset(
    {
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DATA_LOSS,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        # So answers Pravega's controller when two changed the same at once.
        grpc.StatusCode.FAILED_PRECONDITION,
        # So answers a controller that does not know the host of a container yet (controller-grpc-api 5).
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.UNKNOWN,
    }
)
"""What Pravega's clients try again, too (controller-grpc-api 9.2)."""
_NO_ACCESS = frozenset({grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED})
_DEFAULT_PATIENCE = Patience(deadline_s=30.0)
_ATTEMPT_S = 10.0


class ControllerApi(ABC):
    """What users of the client call of a controller, however its answers come.

    Every method may raise Unavailable, ClientClosed, and Refused, which is also what a name that cannot be comes to.
    """

    @abstractmethod
    async def call(self, rpc: Rpc[Request, Answer], request: Request) -> Answer:
        """The answer to a request, for RPCs that have no method here. Raises StreamMissing if something is not found.

        It is sent again until it is answered or the patience is over.
        """

    async def create_scope(self, scope: str) -> bool:
        """Creates a scope; False: it was there already."""
        check_scope(scope)
        status = (await self.call(lambda stub: stub.createScope, pb.ScopeInfo(scope=scope))).status
        if status in (pb.CreateScopeStatus.SUCCESS, pb.CreateScopeStatus.SCOPE_EXISTS):
            return status == pb.CreateScopeStatus.SUCCESS
        raise Refused(f"createScope {scope}: {pb.CreateScopeStatus.Status.Name(status)}")

    async def create_stream(self, scope: str, stream: str, segments: int = 1) -> bool:
        """Creates a stream with a fixed number of segments; False: it was there already, whatever it is like.

        Raises ScopeMissing; Refused also for a number below 1.
        """
        return await self.create_configured(scope, stream, StreamConfig(ScalingPolicy(min_segments=segments)))

    async def create_configured(self, scope: str, stream: str, config: StreamConfig) -> bool:
        """Creates a stream; False: it was there already, whatever it is like. Raises ScopeMissing."""
        check_new_stream(scope, stream, config.scaling.min_segments)
        request = stream_config_message(StreamId(scope, stream), config)
        status = (await self.call(lambda stub: stub.createStream, request)).status
        if status in (pb.CreateStreamStatus.SUCCESS, pb.CreateStreamStatus.STREAM_EXISTS):
            return status == pb.CreateStreamStatus.SUCCESS
        if status == pb.CreateStreamStatus.SCOPE_NOT_FOUND:
            raise ScopeMissing(scope)
        raise Refused(f"createStream {scope}/{stream}: {pb.CreateStreamStatus.Status.Name(status)}")

    async def segments(self, scope: str, stream: str) -> list[str]:
        """The current segments in the order of their key ranges; none if the stream is sealed. Raises StreamMissing."""
        return [segment for _, segment in await self.key_ranges(scope, stream)]

    async def key_ranges(self, scope: str, stream: str) -> list[tuple[float, str]]:
        """The current segments in order, each behind the upper end of its range of routing keys, at most 1.

        None if the stream is sealed. Raises StreamMissing.
        """
        check_stream(scope, stream)
        answer = await self.call(lambda stub: stub.getCurrentSegments, _read_only(scope, stream))
        return sorted((found.maxKey, name_of(found.segmentId)) for found in answer.segmentRanges)

    async def head(self, scope: str, stream: str) -> dict[str, int]:
        """The segments at which reading from the oldest event begins, each with its first offset in bytes.

        Raises StreamMissing.
        """
        check_stream(scope, stream)
        request = pb.GetSegmentsRequest(streamInfo=_read_only(scope, stream))
        answer = await self.call(lambda stub: stub.getSegments, request)
        # A negative offset is that of a segment which is only reached through others (controller-grpc-api 6.3).
        return {name_of(found.segmentId): found.offset for found in answer.segments if found.offset >= 0}

    async def successors(self, segment: str) -> dict[str, list[str]]:
        """The segments that follow a segment which scaling sealed, each with all the segments that it follows.

        None if the segment is not sealed, or if the whole stream is. Raises StreamMissing.
        """
        request = segment_message(segment)
        scope, stream = request.streamInfo.scope, request.streamInfo.stream
        answer = await self.call(lambda stub: stub.getSegmentsImmediatelyFollowing, request)
        return {
            name_of(found.segment.segmentId): [segment_name(scope, stream, before) for before in found.value]
            for found in answer.segments
        }

    async def followers(self, segment: str) -> tuple[dict[str, set[int]], dict[str, tuple[float, float]]]:
        """The same as readers of a group have it: successors with the ids of what they follow, and with their keys."""
        answer = await self.call(lambda stub: stub.getSegmentsImmediatelyFollowing, segment_message(segment))
        found = {name_of(entry.segment.segmentId): entry for entry in answer.segments}
        ranges = {name: (entry.segment.minKey, entry.segment.maxKey) for name, entry in found.items()}
        return {name: set(entry.value) for name, entry in found.items()}, ranges

    async def node_of(self, segment: str) -> Host:
        """The segment store that has a segment, or would have it: it need not exist."""
        answer = await self.call(lambda stub: stub.getURI, segment_message(segment))
        return Host(answer.endpoint, answer.port)

    async def token_for(self, segment: str, writes: bool) -> str:
        """What opens a segment at its segment store, to write or to read it; empty where no tokens are in use."""
        request = segment_message(segment).streamInfo
        # The table's permissions count for its segments.
        request.stream = request.stream.removesuffix(KVT_SUFFIX)
        request.accessOperation = pb.StreamInfo.WRITE if writes else pb.StreamInfo.READ
        return (await self.call(lambda stub: stub.getDelegationToken, request)).delegationToken


class Controller(ControllerApi):
    """The controller at an address. An async context manager that closes it."""

    def __init__(
        self,
        address: str,
        patience: Patience = _DEFAULT_PATIENCE,
        *,
        attempt_s: float = _ATTEMPT_S,
        access: Access = OPEN_ACCESS,
    ) -> None:
        """`address` is `host:port`, `tcp://host:port`, or `tls://host:port`.

        One attempt of a call takes `attempt_s` at most. Raises ValueError for any other scheme, and for a file of
        authorities that cannot be read.
        """
        self._patience = patience
        self._channel = ControllerChannel(
            host_in(address), attempt_s, access.to_controller() if is_secured(address) else None, access.metadata
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the channel; calls under way end with ClientClosed."""
        await self._channel.close()

    async def call(self, rpc: Rpc[Request, Answer], request: Request) -> Answer:
        """See ControllerApi."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._patience.deadline_s
        last = ""
        for pause in self._patience.pauses():
            try:
                return await self._channel.attempt(rpc, request, deadline - clock())
            except grpc.aio.AioRpcError as error:
                detail = f"{error.code().name}: {error.details()}"
                if error.code() is grpc.StatusCode.NOT_FOUND:
                    raise StreamMissing(detail) from error
                if error.code() in _NO_ACCESS:
                    raise AccessRefused(detail) from error
                if error.code() not in _TRY_AGAIN:
                    raise Refused(detail) from error
                if clock() + pause >= deadline:
                    # What came before may say more: this attempt may have had no time left for an answer.
                    raise Unavailable(detail if last in ("", detail) else f"{detail}; before: {last}") from error
                last = detail
            await asyncio.sleep(pause)
        raise AssertionError("the pauses never end")


def stream_message(scope: str, stream: str) -> pb.StreamInfo:
    """A stream in a message."""
    return pb.StreamInfo(scope=scope, stream=stream)


def _read_only(scope: str, stream: str) -> pb.StreamInfo:
    """For calls of which no token is wanted: so READ is enough for them."""
    return pb.StreamInfo(scope=scope, stream=stream, accessOperation=pb.StreamInfo.NONE)


def segment_message(name: str) -> pb.SegmentId:
    """The id of a segment in a message; ValueError for what is no segment's name."""
    scope, stream, segment, _ = parse_segment_name(name)
    return pb.SegmentId(streamInfo=stream_message(scope, stream), segmentId=segment)


def name_of(segment: pb.SegmentId) -> str:
    """The qualified name of a segment."""
    return segment_name(segment.streamInfo.scope, segment.streamInfo.stream, segment.segmentId)
