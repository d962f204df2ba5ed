"""What the tests of handlers have in common."""

from collections.abc import Awaitable
from typing import Any

import grpc
from unit.gateway.conftest import Gateway

from api_gateway.errors import INTERNAL_TEXT
from sluice.controller_api import controller_pb2 as pb


async def failure(call: Awaitable[Any]) -> tuple[grpc.StatusCode, str | None]:
    """Code and description of a call that must fail."""
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details()
    raise AssertionError(f"answered {answer}")


SYNC_INTERNAL = (grpc.StatusCode.INTERNAL, INTERNAL_TEXT)


async def create_scope(gateway: Gateway, scope: str = "sc") -> None:
    answer = await gateway.stub.createScope(pb.ScopeInfo(scope=scope))
    assert answer.status == pb.CreateScopeStatus.SUCCESS


def stream_message(name: str = "st", scope: str = "sc", segments: int = 2, tag: str = "") -> pb.StreamConfig:
    return pb.StreamConfig(
        streamInfo=pb.StreamInfo(scope=scope, stream=name),
        scalingPolicy=pb.ScalingPolicy(minNumSegments=segments),
        tags=pb.Tags(tag=[tag] if tag else []),
    )


async def create_stream(
    gateway: Gateway, name: str = "st", scope: str = "sc", segments: int = 2, tag: str = ""
) -> None:
    answer = await gateway.stub.createStream(stream_message(name, scope, segments, tag))
    assert answer.status == pb.CreateStreamStatus.SUCCESS


GROUP_ID = "0f0e0d0c-0b0a-4908-8706-050403020100"
NONE, MANUAL, AUTOMATIC = 0, 1, 2


def group_message(*streams: str, name: str = "rg", scope: str = "sc", **more: Any) -> pb.ReaderGroupConfiguration:
    """A reader group of streams of its scope, from their heads on."""
    given = {
        "readerGroupId": GROUP_ID,
        "maxOutstandingCheckpointRequest": 3,
        "startingStreamCuts": [cut_message({}, stream, scope) for stream in streams or ("st",)],
    }
    return pb.ReaderGroupConfiguration(scope=scope, readerGroupName=name, **{**given, **more})


def cut_message(cut: dict[int, int], stream: str = "st", scope: str = "sc") -> pb.StreamCut:
    return pb.StreamCut(streamInfo=pb.StreamInfo(scope=scope, stream=stream), cut=cut)


def group_info(name: str = "rg", scope: str = "sc", id: str = GROUP_ID) -> pb.ReaderGroupInfo:
    return pb.ReaderGroupInfo(scope=scope, readerGroup=name, readerGroupId=id)


async def create_group(gateway: Gateway, *streams: str, **more: Any) -> None:
    answer = await gateway.stub.createReaderGroup(group_message(*streams, **more))
    assert answer.status == pb.CreateReaderGroupResponse.SUCCESS


async def subscribers_of(gateway: Gateway, stream: str = "st") -> list[str]:
    answer = await gateway.stub.listSubscribers(pb.StreamInfo(scope="sc", stream=stream))
    assert answer.status == pb.SubscribersResponse.SUCCESS
    return list(answer.subscribers)


def table_message(name: str = "kv", scope: str = "sc", **more: Any) -> pb.KeyValueTableConfig:
    given = {"partitionCount": 2, "primaryKeyLength": 8}
    return pb.KeyValueTableConfig(scope=scope, kvtName=name, **{**given, **more})


async def create_table(gateway: Gateway, name: str = "kv", **more: Any) -> None:
    answer = await gateway.stub.createKeyValueTable(table_message(name, **more))
    assert answer.status == pb.CreateKeyValueTableStatus.SUCCESS
