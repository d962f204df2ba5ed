"""The controller's client against a gRPC server of a few lines, and its twin in memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import grpc
import pytest
from support.wait import SOON_S, eventually_async
from unit.pravega.fake_store import fake_store

from sluice.controller_api import controller_pb2 as pb
from sluice.controller_api.controller_pb2_grpc import add_ControllerServiceServicer_to_server
from sluice.pravega import Host
from sluice.pravega.wire.command import Command
from sluice.pravega.wire.segments import GetStreamSegmentInfo, StreamSegmentInfo
from sluice_client import (
    AccessRefused,
    ClientClosed,
    Controller,
    NotASingleSegment,
    Patience,
    Refused,
    ScopeMissing,
    StreamMissing,
    StreamSealed,
    Unavailable,
    open_client,
)
from sluice_client.channel import ControllerChannel

PATIENCE = Patience(deadline_s=20.0)
Answer = Any
INFO = pb.StreamInfo(scope="sc", stream="st")
SCOPE_EXISTS = pb.CreateScopeStatus(status=pb.CreateScopeStatus.SCOPE_EXISTS)


class FakeController:
    """Answers each RPC with its `answers` in turn, the last one for ever; a status code is a refusal.

    What can be awaited is a wait before the answer that a scope was created.
    """

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {"getDelegationToken": [pb.DelegationToken()]}
        self.requests: list[Any] = []
        self.address = ""

    def __getattr__(self, rpc: str) -> Callable[[Any, Any], Any]:
        async def answer(request: Any, context: Any) -> Any:
            self.requests.append(request)
            answers = self.answers[rpc]
            found = answers.pop(0) if len(answers) > 1 else answers[0]
            if isinstance(found, grpc.StatusCode):
                await context.abort(found, "said the test")
            if isinstance(found, Awaitable):
                await found
                return pb.CreateScopeStatus()
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
    async with Controller(f"tcp://{fake.address}", PATIENCE) as controller:
        yield controller


def ranges(*segments: tuple[int, float, float]) -> pb.SegmentRanges:
    found = [
        pb.SegmentRange(segmentId=pb.SegmentId(streamInfo=INFO, segmentId=id), minKey=low, maxKey=high)
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
    assert fake.requests[-1].streamInfo == INFO


@pytest.mark.parametrize("variable", ["http_proxy", "https_proxy", "grpc_proxy"])
async def test_a_controller_is_not_reached_by_a_proxy(
    fake: FakeController, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:1")
    fake.answers["createScope"] = [pb.CreateScopeStatus()]
    async with Controller(fake.address, PATIENCE) as controller:
        assert await controller.create_scope("sc")


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
    located = [
        pb.SegmentsAtTime.SegmentLocation(segmentId=pb.SegmentId(streamInfo=INFO, segmentId=id), offset=offset)
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


@pytest.mark.parametrize(("writes", "access"), [(True, pb.StreamInfo.WRITE), (False, pb.StreamInfo.READ)])
async def test_the_token_for_a_segment_is_that_of_its_stream(
    controller: Controller, fake: FakeController, writes: bool, access: pb.StreamInfo.AccessOperation
) -> None:
    fake.answers["getDelegationToken"] = [pb.DelegationToken(delegationToken="t")]
    assert await controller.token_for("sc/st/7.#epoch.3", writes) == "t"
    assert fake.requests == [pb.StreamInfo(scope="sc", stream="st", accessOperation=access)]


async def test_the_token_for_a_tables_segment_is_that_of_the_table(
    controller: Controller, fake: FakeController
) -> None:
    await controller.token_for("sc/table_kvtable/0.#epoch.0", False)
    assert fake.requests[-1].stream == "table"


async def test_a_client_shows_the_segment_stores_its_tokens(fake: FakeController) -> None:
    fake.answers["getDelegationToken"] = [pb.DelegationToken(delegationToken="t")]

    def answer(command: Command) -> Sequence[Command]:
        assert isinstance(command, GetStreamSegmentInfo)
        return [StreamSegmentInfo(command.request_id, command.segment, True, False, False, 0, 7)]

    async with fake_store(answer) as store, open_client(fake.address, PATIENCE) as client:
        fake.answers["getURI"] = [pb.NodeUri(endpoint=store.host.address, port=store.host.port)]
        assert (await client.store.segment_info("sc/st/0.#epoch.0")).length == 7
        assert [getattr(command, "token", None) for command in store.received] == [None, "t"]


async def test_what_may_pass_is_tried_again(controller: Controller, fake: FakeController) -> None:
    codes = grpc.StatusCode
    passing = [codes.INTERNAL, codes.UNAVAILABLE, codes.CANCELLED, codes.DATA_LOSS, codes.FAILED_PRECONDITION]
    fake.answers["getURI"] = [*passing, pb.NodeUri(endpoint="a", port=1)]
    assert await controller.node_of("sc/st/0.#epoch.0") == Host("a", 1)
    assert len(fake.requests) == 6


@pytest.mark.parametrize("hangs_at_last", [False, True])
async def test_what_does_not_pass_in_time(fake: FakeController, hangs_at_last: bool) -> None:
    fake.answers["createScope"] = [grpc.StatusCode.INTERNAL, *([asyncio.Event().wait()] if hangs_at_last else ())]
    async with Controller(fake.address, Patience(deadline_s=3.0)) as controller:
        with pytest.raises(Unavailable, match="INTERNAL: said the test"):
            await controller.create_scope("sc")


async def test_what_never_passes(controller: Controller, fake: FakeController) -> None:
    codes = grpc.StatusCode
    fake.answers["getCurrentSegments"] = [codes.NOT_FOUND, codes.PERMISSION_DENIED, codes.INVALID_ARGUMENT]
    with pytest.raises(StreamMissing, match="NOT_FOUND"):
        await controller.segments("sc", "st")
    with pytest.raises(AccessRefused, match="PERMISSION_DENIED"):
        await controller.segments("sc", "st")
    with pytest.raises(Refused, match="INVALID_ARGUMENT"):
        await controller.segments("sc", "st")
    assert len(fake.requests) == 3


def test_an_address_of_another_scheme() -> None:
    with pytest.raises(ValueError, match="not the address of a controller"):
        Controller("http://127.0.0.1:9090")


async def test_which_streams_are_revisioned(fake: FakeController) -> None:
    fake.answers["getCurrentSegments"] = [ranges(), ranges((0, 0.0, 0.5), (1, 0.5, 1.0)), ranges((1 << 32, 0.0, 1.0))]
    async with open_client(fake.address, PATIENCE) as client:
        with pytest.raises(StreamSealed, match="sc/st"):
            await client.revisioned_stream("sc", "st")
        with pytest.raises(NotASingleSegment, match="2 segments"):
            await client.revisioned_stream("sc", "st")
        assert (await client.revisioned_stream("sc", "st")).segment == "sc/st/0.#epoch.1"


async def test_a_segment_without_a_location_is_unavailable(fake: FakeController) -> None:
    fake.answers["getCurrentSegments"] = [ranges((0, 0.0, 1.0))]
    fake.answers["getURI"] = [grpc.StatusCode.INTERNAL]
    async with open_client(fake.address, Patience(deadline_s=1.0)) as client:
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


async def test_the_cluster_in_memory_is_closed_at_the_end_of_the_block() -> None:
    async with open_client("memory:") as client:
        await client.controller.create_scope("sc")
        await client.controller.create_stream("sc", "st")
        stream = await client.revisioned_stream("sc", "st")
    controller = client.controller
    for call in (
        controller.create_scope("sc"),
        controller.create_stream("sc", "st"),
        controller.segments("sc", "st"),
        controller.node_of("sc/st/0.#epoch.0"),
        stream.append(b"a"),
    ):
        with pytest.raises(ClientClosed):
            await call


@pytest.mark.parametrize(("scope", "stream"), [("", "st"), ("sc", ""), ("s/c", "st"), ("sc", "s_t"), ("x" * 256, "st")])
@pytest.mark.parametrize("address", ["127.0.0.1:1", "memory:"])
async def test_names_that_cannot_be_are_refused_unasked(address: str, scope: str, stream: str) -> None:
    async with open_client(address, Patience(deadline_s=0.1)) as client:
        controller = client.controller
        calls = [
            controller.create_stream(scope, stream),
            controller.segments(scope, stream),
            controller.key_ranges(scope, stream),
            controller.head(scope, stream),
            client.revisioned_stream(scope, stream),
        ]
        if scope != "sc":
            calls.append(controller.create_scope(scope))
        for call in calls:
            with pytest.raises(Refused, match="INVALID_S"):
                await call


async def test_the_mark_of_a_stream_has_a_longer_name(controller: Controller, fake: FakeController) -> None:
    fake.answers["getCurrentSegments"] = [ranges((0, 0.0, 1.0))]
    assert await controller.segments("sc", "_MARK" + "x" * 255)
    with pytest.raises(Refused):
        await controller.create_stream("sc", "_MARK" + "x" * 255)


class Way:
    """A way to a server, through connections that can be cut off without a word."""

    def __init__(self, target: str) -> None:
        self.address = ""
        self.connections = 0
        self._target = target.split(":")
        self._carriers: set[asyncio.Task[None]] = set()
        # Since Python 3.13 a writer that nothing refers to closes its connection.
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, back = await asyncio.open_connection(*self._target)
        self._writers += [writer, back]
        for source, sink in ((reader, back), (there, writer)):
            carrier = asyncio.create_task(self._carry(source, sink))
            self._carriers.add(carrier)

    def cut_off(self) -> None:
        """Nothing comes through on what is connected now, and neither end sees it."""
        for carrier in self._carriers:
            carrier.cancel()
        self._carriers = set()

    def close(self) -> None:
        self.cut_off()
        for writer in self._writers:
            writer.close()

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            sink.write(data)


@pytest.fixture
async def way(fake: FakeController) -> AsyncIterator[Way]:
    way = Way(fake.address)
    server = await asyncio.start_server(way.serve, "127.0.0.1", 0)
    way.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield way
    way.close()
    server.close()


async def test_a_connection_that_died_without_a_word_is_replaced(fake: FakeController, way: Way) -> None:
    fake.answers["createScope"] = [SCOPE_EXISTS]
    async with Controller(way.address, Patience(deadline_s=60.0), attempt_s=3.0) as controller:
        await controller.create_scope("sc")
        way.cut_off()
        assert await asyncio.gather(*(controller.create_scope("sc") for _ in range(5))) == [False] * 5
        assert way.connections == 2
        assert await controller.create_scope("sc") is False


async def test_a_dead_connection_is_replaced_although_its_callers_give_up_sooner(
    fake: FakeController, way: Way
) -> None:
    fake.answers["createScope"] = [SCOPE_EXISTS]
    async with Controller(way.address, Patience(deadline_s=60.0), attempt_s=2.0) as controller:
        await controller.create_scope("sc")
        way.cut_off()
        calls = [asyncio.create_task(controller.create_scope("sc")) for _ in range(20)]
        await eventually_async(lambda: len(attempts(way)) == 20, SOON_S, "all attempts are under way")
        under_way = attempts(way)
        for call in calls:
            call.cancel()
        await asyncio.wait(under_way, timeout=SOON_S)
        # One goes on until its time is up, to find out that the connection is dead.
        assert sum(not attempt.cancelled() for attempt in under_way) <= 1, "all but one end with their callers"

        async def is_answered_soon() -> bool:
            async with asyncio.timeout(0.5):
                return not await controller.create_scope("sc")

        await eventually_async(is_answered_soon, SOON_S, "another connection has taken the place of the dead one")


def attempts(way: Way) -> list["asyncio.Task[Any]"]:
    return [task for task in asyncio.all_tasks() if task.get_name() == f"call {way.address}"]


async def test_the_channel_that_takes_over_has_a_connection_of_its_own(fake: FakeController, way: Way) -> None:
    fake.answers["createScope"] = [SCOPE_EXISTS]
    channel, request = ControllerChannel(way.address, attempt_s=10.0), pb.ScopeInfo(scope="sc")
    assert await channel.attempt(lambda stub: stub.createScope, request, 10.0) == SCOPE_EXISTS
    way.cut_off()
    keeps_the_old_one = asyncio.create_task(channel.attempt(lambda stub: stub.createScope, request, 10.0))
    with pytest.raises(grpc.aio.AioRpcError, match="DEADLINE_EXCEEDED"):
        await channel.attempt(lambda stub: stub.createScope, request, 0.2)
    assert await channel.attempt(lambda stub: stub.createScope, request, 10.0) == SCOPE_EXISTS
    assert not keeps_the_old_one.done()
    await channel.close()
    with pytest.raises(ClientClosed):
        await keeps_the_old_one


async def test_a_controller_that_never_answers_costs_a_few_connections(fake: FakeController, way: Way) -> None:
    fake.answers["createScope"] = [grpc.StatusCode.DEADLINE_EXCEEDED]
    async with Controller(way.address, Patience(first_pause_s=0.001, longest_pause_s=0.001)) as controller:
        call = asyncio.create_task(controller.create_scope("sc"))
        await eventually_async(lambda: len(fake.requests) > 10, SOON_S, "it was called often")
    with pytest.raises(ClientClosed):
        await call
    assert way.connections == 5


async def test_calls_on_a_channel_that_is_left_are_answered(fake: FakeController) -> None:
    answer = asyncio.Event()
    fake.answers["createScope"] = [SCOPE_EXISTS, asyncio.Event().wait(), answer.wait(), SCOPE_EXISTS]
    channel, request = ControllerChannel(fake.address, attempt_s=10.0), pb.ScopeInfo(scope="sc")
    # Connected, it has all its time for the next request.
    assert await channel.attempt(lambda stub: stub.createScope, request, 10.0) == SCOPE_EXISTS
    first = asyncio.create_task(channel.attempt(lambda stub: stub.createScope, request, 1.0))
    await eventually_async(lambda: len(fake.requests) == 2, SOON_S, "the request that gets no answer arrived")
    second = asyncio.create_task(channel.attempt(lambda stub: stub.createScope, request, 10.0))
    with pytest.raises(grpc.aio.AioRpcError, match="DEADLINE_EXCEEDED"):
        await first
    assert await channel.attempt(lambda stub: stub.createScope, request, 10.0) == SCOPE_EXISTS
    assert not second.done()
    answer.set()
    assert await second == pb.CreateScopeStatus()
    await channel.close()


async def test_after_the_end_every_call_says_that_the_client_is_closed(fake: FakeController) -> None:
    fake.answers["getCurrentSegments"] = [ranges((0, 0.0, 1.0))]
    fake.answers["createScope"] = [asyncio.Event().wait()]
    fake.answers["getURI"] = [pb.NodeUri(endpoint="127.0.0.1", port=1)]
    async with open_client(fake.address, Patience(deadline_s=60.0)) as client:
        stream = await client.revisioned_stream("sc", "st")
        under_way = asyncio.create_task(client.controller.create_scope("sc"))
        appending = asyncio.create_task(stream.append(b"x"))
        await eventually_async(lambda: len(fake.requests) >= 3, SOON_S, "all requests arrived")
    for call in (under_way, appending, client.controller.create_scope("sc"), stream.tail(), stream.append(b"x")):
        with pytest.raises(ClientClosed):
            await call
