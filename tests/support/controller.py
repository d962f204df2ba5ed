"""A user of the gateway's gRPC interface without any client library: the stub, and messages in one line each.

To a secured system it is the user of the environment, as the command line is. Channels connect again quickly, so that a
gateway that was started anew is met as soon as it is there. Channels may be shared by threads.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import grpc

from sluice.addresses import address_of
from sluice.controller_api import controller_pb2 as pb
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub
from sluice_client import Access, is_secured

QUICK = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_send_message_length", -1),
)
"""So that a gateway that was started anew is met as soon as it is there."""


def unique(prefix: str) -> str:
    return f"{prefix}{uuid4().hex[:10]}"


class Controller:
    """One gateway, as its clients see it; every call has a deadline and waits for a connection."""

    def __init__(self, address: str, deadline_s: float = 60.0) -> None:
        self.channel = _channel(address)
        self.stub = ControllerServiceStub(self.channel)
        self.deadline_s = deadline_s

    def close(self) -> None:
        self.channel.close()

    def call(self, rpc: str, request: Any, deadline_s: float | None = None) -> Any:
        """The response. Raises grpc.RpcError."""
        return self.begin(rpc, request, deadline_s).result()

    def begin(self, rpc: str, request: Any, deadline_s: float | None = None) -> Any:
        """The call, under way."""
        method = getattr(self.stub, rpc)
        return method.future(request, timeout=deadline_s or self.deadline_s, wait_for_ready=True)

    def status(self, rpc: str, request: Any, deadline_s: float | None = None) -> str:
        """The name of the status that the call ends with: the response's own, or else gRPC's."""
        return outcome(self.begin(rpc, request, deadline_s))

    # What most tests need.

    def create_scope(self, name: str) -> str:
        return self.status("createScope", pb.ScopeInfo(scope=name))

    def create_stream(self, scope: str, name: str, segments: int = 1) -> str:
        return self.status("createStream", config(scope, name, segments))

    def seal(self, scope: str, name: str) -> str:
        return self.status("sealStream", info(scope, name))

    def delete(self, scope: str, name: str) -> str:
        return self.status("deleteStream", info(scope, name))

    def scopes(self) -> list[str]:
        """All scopes; one page is enough for a test."""
        return sorted(self.call("listScopes", pb.ScopesRequest()).scopes)

    def streams(self, scope: str) -> list[str]:
        request = pb.StreamsInScopeRequest(scope=pb.ScopeInfo(scope=scope))
        return sorted(found.stream for found in self.call("listStreamsInScope", request).streams)

    def segments(self, scope: str, name: str) -> list[tuple[int, float, float]]:
        """Id and key range of every current segment, in order."""
        ranges = self.call("getCurrentSegments", info(scope, name)).segmentRanges
        return [(r.segmentId.segmentId, r.minKey, r.maxKey) for r in ranges]

    def store_of(self, scope: str, stream: str, segment: int = 0) -> str:
        """`host:port` of the segment store that a segment is, or would be, on."""
        uri = self.call("getURI", segment_id(scope, stream, segment))
        return address_of(uri.endpoint, uri.port)


class _Password(grpc.AuthMetadataPlugin):
    def __init__(self, access: Access) -> None:
        self._access = access

    def __call__(self, context: grpc.AuthMetadataContext, callback: grpc.AuthMetadataPluginCallback) -> None:
        callback(self._access.metadata, None)


def _channel(address: str) -> grpc.Channel:
    access = Access.of_environment()
    if not is_secured(address):
        return grpc.insecure_channel(address.removeprefix("tcp://"), options=QUICK)
    caller = grpc.metadata_call_credentials(_Password(access))
    credentials = grpc.composite_channel_credentials(access.to_controller(), caller)
    return grpc.secure_channel(address.removeprefix("tls://"), credentials, options=QUICK)


@contextmanager
def controller(address: str, deadline_s: float = 60.0) -> Iterator[Controller]:
    client = Controller(address, deadline_s)
    try:
        yield client
    finally:
        client.close()


def outcome(call: Any) -> str:
    """The name of the status of a call under way, once it ended: the response's own, or else gRPC's."""
    try:
        response = call.result()
    except grpc.RpcError as error:
        return str(error.code().name)
    status = response.DESCRIPTOR.fields_by_name.get("status")
    return str(status.enum_type.values_by_number[response.status].name) if status is not None else "OK"


def info(scope: str, stream: str) -> pb.StreamInfo:
    return pb.StreamInfo(scope=scope, stream=stream)


def segment_id(scope: str, stream: str, segment: int) -> pb.SegmentId:
    return pb.SegmentId(streamInfo=info(scope, stream), segmentId=segment)


def cut(scope: str, stream: str, offsets: Mapping[int, int]) -> pb.StreamCut:
    return pb.StreamCut(streamInfo=info(scope, stream), cut=dict(offsets))


def config(scope: str, stream: str, segments: int = 1, **more: Any) -> pb.StreamConfig:
    """A stream with a fixed number of segments."""
    policy = pb.ScalingPolicy(minNumSegments=segments)
    return pb.StreamConfig(streamInfo=info(scope, stream), scalingPolicy=policy, **more)
