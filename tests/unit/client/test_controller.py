"""The controller's client against a gRPC server of a few lines, and its twin in memory."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest

from sluice.client import (
    Controller,
    ControllerApi,
    NotASingleSegment,
    Patience,
    Refused,
    ScopeMissing,
    StreamMissing,
    StreamSealed,
    Unavailable,
    open_client,
)
from sluice.client.memory import InMemoryController
from sluice.controller_api import controller_pb2 as pb
from sluice.controller_api.controller_pb2_grpc import add_ControllerServiceServicer_to_server
from sluice.segmentstore import Host, InMemorySegmentStore

IMPATIENT = Patience(deadline_s=1.0)
Answer = Any
SCOPE_EXISTS = pb.CreateScopeStatus(status=pb.CreateScopeStatus.SCOPE_EXISTS)


class FakeController:
    """Answers each RPC with its `answers` in turn, the last one for ever; a status code is a refusal."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[Any] = []
        self.address = ""

    def __getattr__(self, rpc: str) -> Callable[[Any, Any], Any]:
        async def answer(request: Any, context: Any) -> Any:
            self.requests.append(request)
            answers = self.answers[rpc]
            found = answers.pop(0) if len(answers) > 1 else answers[0]
            if isinstance(found, grpc.StatusCode):
                await context.abort(found, "said the test")
            return found

        return answer


@pytest.fixture
async def fake() -> AsyncIterator[FakeController]:
    fake = FakeController()
    server = grpc.aio.server()
    add_ControllerServiceServicer_to_server(fake, server)  # type: ignore[arg-type]
    fake.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    yield fake
    await server.stop(0)


@pytest.fixture
async def controller(fake: FakeController) -> AsyncIterator[Controller]:
    async with Controller(f"tcp://{fake.address}", IMPATIENT) as controller:
        yield controller


def ranges(*segments: tuple[int, float, float]) -> pb.SegmentRanges:
    info = pb.StreamInfo(scope="sc", stream="st")
    found = [
        pb.SegmentRange(segmentId=pb.SegmentId(streamInfo=info, segmentId=id), minKey=low, maxKey=high)
        for id, low, high in segments
    ]
    return pb.SegmentRanges(segmentRanges=found)


async def test_scopes_and_streams_are_created_or_there(controller: Controller, fake: FakeController) -> None:
    fake.answers["createScope"] = [pb.CreateScopeStatus(), SCOPE_EXISTS]
    assert [await controller.create_scope("sc") for _ in range(2)] == [True, False]
    exists = pb.CreateStreamStatus(status=pb.CreateStreamStatus.STREAM_EXISTS)
    fake.answers["createStream"] = [pb.CreateStreamStatus(), exists]
    assert [await controller.create_stream("sc", "st", 3) for _ in range(2)] == [True, False]
    assert fake.requests[-1].scalingPolicy.minNumSegments == 3
    assert fake.requests[-1].streamInfo == pb.StreamInfo(scope="sc", stream="st")


async def test_refusals_of_creations(controller: Controller, fake: FakeController) -> None:
    fake.answers["createScope"] = [pb.CreateScopeStatus(status=pb.CreateScopeStatus.INVALID_SCOPE_NAME)]
    with pytest.raises(Refused, match="INVALID_SCOPE_NAME"):
        await controller.create_scope("?")
    fake.answers["createStream"] = [
        pb.CreateStreamStatus(status=pb.CreateStreamStatus.SCOPE_NOT_FOUND),
        pb.CreateStreamStatus(status=pb.CreateStreamStatus.INVALID_STREAM_NAME),
    ]
    with pytest.raises(ScopeMissing, match="sc"):
        await controller.create_stream("sc", "st")
    with pytest.raises(Refused, match="INVALID_STREAM_NAME"):
        await controller.create_stream("sc", "?")
    with pytest.raises(Refused, match="0 segments"):
        await controller.create_stream("sc", "st", 0)


async def test_segments_come_in_the_order_of_their_keys(controller: Controller, fake: FakeController) -> None:
    fake.answers["getCurrentSegments"] = [ranges(((2 << 32) | 5, 0.5, 1.0), (1, 0.0, 0.5))]
    assert await controller.segments("sc", "st") == ["sc/st/1.#epoch.0", "sc/st/5.#epoch.2"]


async def test_the_head_has_no_segments_that_are_only_reached_later(
    controller: Controller, fake: FakeController
) -> None:
    info = pb.StreamInfo(scope="sc", stream="st")
    located = [
        pb.SegmentsAtTime.SegmentLocation(segmentId=pb.SegmentId(streamInfo=info, segmentId=id), offset=offset)
        for id, offset in ((0, 17), (1 << 32 | 1, -1))
    ]
    fake.answers["getSegments"] = [pb.SegmentsAtTime(segments=located)]
    assert await controller.head("sc", "st") == {"sc/st/0.#epoch.0": 17}


async def test_successors_come_with_all_that_they_follow(controller: Controller, fake: FakeController) -> None:
    (merged,) = ranges((1 << 32 | 2, 0.0, 1.0)).segmentRanges
    entry = pb.SuccessorResponse.SegmentEntry(segment=merged, value=[0, 1])
    fake.answers["getSegmentsImmediatelyFollowing"] = [pb.SuccessorResponse(segments=[entry])]
    assert await controller.successors("sc/st/0.#epoch.0") == {
        "sc/st/2.#epoch.1": ["sc/st/0.#epoch.0", "sc/st/1.#epoch.0"]
    }


async def test_where_a_segment_is(controller: Controller, fake: FakeController) -> None:
    fake.answers["getURI"] = [pb.NodeUri(endpoint="ss.example", port=12345)]
    assert await controller.node_of("sc/st/7.#epoch.3") == Host("ss.example", 12345)
    assert fake.requests[-1].segmentId == (3 << 32) | 7


async def test_what_may_pass_is_tried_again(controller: Controller, fake: FakeController) -> None:
    fake.answers["getURI"] = [grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE, pb.NodeUri(endpoint="a", port=1)]
    assert await controller.node_of("sc/st/0.#epoch.0") == Host("a", 1)
    assert len(fake.requests) == 3


async def test_what_does_not_pass_in_time(controller: Controller, fake: FakeController) -> None:
    fake.answers["createScope"] = [grpc.StatusCode.INTERNAL]
    with pytest.raises(Unavailable, match="INTERNAL: said the test"):
        await controller.create_scope("sc")


async def test_what_never_passes(controller: Controller, fake: FakeController) -> None:
    fake.answers["getCurrentSegments"] = [grpc.StatusCode.NOT_FOUND, grpc.StatusCode.PERMISSION_DENIED]
    with pytest.raises(StreamMissing, match="NOT_FOUND"):
        await controller.segments("sc", "st")
    with pytest.raises(Refused, match="PERMISSION_DENIED"):
        await controller.segments("sc", "st")
    assert len(fake.requests) == 2


async def test_nobody_at_the_address() -> None:
    async with open_client("127.0.0.1:1", Patience(deadline_s=0.3)) as client:
        with pytest.raises(Unavailable):
            await client.controller.create_scope("sc")


def test_an_address_of_another_scheme() -> None:
    with pytest.raises(ValueError, match="not the address of a controller"):
        Controller("tls://127.0.0.1:9090")


async def test_which_streams_are_revisioned(fake: FakeController) -> None:
    fake.answers["getCurrentSegments"] = [ranges(), ranges((0, 0.0, 0.5), (1, 0.5, 1.0)), ranges((1 << 32, 0.0, 1.0))]
    async with open_client(fake.address, IMPATIENT) as client:
        with pytest.raises(StreamSealed, match="sc/st"):
            await client.revisioned_stream("sc", "st")
        with pytest.raises(NotASingleSegment, match="2 segments"):
            await client.revisioned_stream("sc", "st")
        assert (await client.revisioned_stream("sc", "st")).segment == "sc/st/0.#epoch.1"


async def test_a_segment_that_nobody_can_locate(fake: FakeController) -> None:
    fake.answers["getCurrentSegments"] = [ranges((0, 0.0, 1.0))]
    fake.answers["getURI"] = [grpc.StatusCode.INTERNAL]
    async with open_client(fake.address, Patience(deadline_s=0.3)) as client:
        stream = await client.revisioned_stream("sc", "st")
        with pytest.raises(Unavailable):
            await stream.tail()


async def test_the_cluster_in_memory() -> None:
    async with open_client("memory:") as client:
        controller = client.controller
        with pytest.raises(ScopeMissing):
            await controller.create_stream("sc", "st")
        assert [await controller.create_scope("sc") for _ in range(2)] == [True, False]
        assert [await controller.create_stream("sc", "st") for _ in range(2)] == [True, False]
        assert await controller.create_stream("sc", "two", 2)
        assert await controller.segments("sc", "two") == ["sc/two/0.#epoch.0", "sc/two/1.#epoch.0"]
        assert await controller.head("sc", "st") == {"sc/st/0.#epoch.0": 0}
        assert await controller.successors("sc/st/0.#epoch.0") == {}
        assert await controller.node_of("sc/st/0.#epoch.0") == Host("memory", 0)
        stream = await client.revisioned_stream("sc", "st")
        await stream.append(b"a")
        assert [entry async for _, entry in stream.read(await stream.head())] == [b"a"]
        for refused in (controller.create_scope("a/b"), controller.create_stream("sc", "a/b")):
            with pytest.raises(Refused):
                await refused
        with pytest.raises(StreamMissing):
            await client.revisioned_stream("sc", "none")
        with pytest.raises(NotASingleSegment):
            await client.revisioned_stream("sc", "two")


def test_both_have_the_interface() -> None:
    real: type[ControllerApi] = Controller
    twin: ControllerApi = InMemoryController(InMemorySegmentStore())
    assert real is Controller and isinstance(twin, InMemoryController)
