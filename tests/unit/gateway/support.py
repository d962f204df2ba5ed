"""What the tests of handlers have in common."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from support.wait import SOON_S, eventually_async
from unit.gateway.conftest import Gateway

from api_gateway.edge.errors import INTERNAL_TEXT
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import StreamConfig
from sluice.domain.segment import Segment
from sluice.domain.stream.events import StreamCreationStarted

PLAIN = StreamConfig()


async def failure(call: Awaitable[Any]) -> tuple[grpc.StatusCode, str | None]:
    """Code and description of a call that must fail."""
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details()
    raise AssertionError(f"replied {answer}")


async def repeated(gateway: Gateway, call: Callable[[], Any]) -> Any:
    """The answer to a call that its client gives up and makes once more, while segment stores hold the first one up."""
    go, sent = asyncio.Event(), len(gateway.sent)

    async def held() -> None:
        await go.wait()

    gateway.system.store.fault = lambda moment, _request, _segment: held() if moment == "before" else None
    first = call()
    await eventually_async(lambda: len(gateway.sent) == sent + 1, SOON_S, "the first one is requested")
    first.cancel()
    await eventually_async(lambda: not gateway.waiting, SOON_S, "it is given up")
    second = asyncio.ensure_future(call())
    await eventually_async(lambda: len(gateway.sent) == sent + 2, SOON_S, "the second one is requested")
    go.set()
    return await second


SYNC_INTERNAL = (grpc.StatusCode.INTERNAL, INTERNAL_TEXT)


async def create_scope(gateway: Gateway, scope: str = "sc") -> None:
    answer = await gateway.stub.createScope(pb.ScopeInfo(scope=scope))
    assert answer.status == pb.CreateScopeStatus.SUCCESS


async def create_stream(gateway: Gateway, name: str) -> None:
    info = pb.StreamInfo(scope="sc", stream=name)
    answer = await gateway.stub.createStream(pb.StreamConfig(streamInfo=info, scalingPolicy={"minNumSegments": 1}))
    assert answer.status == pb.CreateStreamStatus.SUCCESS


def creation_started(
    stream: str = "st", config: StreamConfig = PLAIN, request: str | None = "r"
) -> StreamCreationStarted:
    """Of a stream of `sc` with one segment."""
    segments = (Segment(0, 0.0, 1.0),)
    return StreamCreationStarted(
        scope="sc",
        stream=stream,
        creation_id="i",
        config=config,
        created_at=1,
        segments=segments,
        request=request,
        at=1,
    )


GROUP_ID = "0f0e0d0c-0b0a-4908-8706-050403020100"
NONE, MANUAL, AUTOMATIC = 0, 1, 2


def group_message(*streams: str, name: str = "rg", **more: Any) -> pb.ReaderGroupConfiguration:
    """A reader group of streams of `sc`, from their heads on."""
    given = {
        "readerGroupId": GROUP_ID,
        "maxOutstandingCheckpointRequest": 3,
        "startingStreamCuts": [cut_message({}, stream) for stream in streams or ("st",)],
    }
    return pb.ReaderGroupConfiguration(scope="sc", readerGroupName=name, **{**given, **more})


def cut_message(cut: dict[int, int], stream: str = "st", scope: str = "sc") -> pb.StreamCut:
    return pb.StreamCut(streamInfo=pb.StreamInfo(scope=scope, stream=stream), cut=cut)


def group_info(name: str = "rg") -> pb.ReaderGroupInfo:
    return pb.ReaderGroupInfo(scope="sc", readerGroup=name, readerGroupId=GROUP_ID)


async def create_group(gateway: Gateway, *streams: str, **more: Any) -> None:
    answer = await gateway.stub.createReaderGroup(group_message(*streams, **more))
    assert answer.status == pb.CreateReaderGroupResponse.SUCCESS


async def subscribers_of(gateway: Gateway, stream: str = "st") -> list[str]:
    answer = await gateway.stub.listSubscribers(pb.StreamInfo(scope="sc", stream=stream))
    assert answer.status == pb.SubscribersResponse.SUCCESS
    return list(answer.subscribers)


def table_message(**more: Any) -> pb.KeyValueTableConfig:
    given = {"partitionCount": 2, "primaryKeyLength": 8}
    return pb.KeyValueTableConfig(scope="sc", kvtName="kv", **{**given, **more})
