"""What one caller can take of the gRPC server, with credentials or without."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import grpc
import pytest
from support.fuzzing import converse, grpc_call
from support.wait import SOON_S, eventually_async
from unit.gateway.support import failure

from api_gateway.pravega import bounds
from api_gateway.pravega.bounds import channel_options
from api_gateway.pravega.server import ControllerServer
from api_gateway.settings import GatewaySettings
from sluice.controller_api import controller_pb2 as pb
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub

CLONE = Path(__file__).parents[3]
DEADLINE_S = 60.0
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
PING = b"\x00\x00\x08\x06\x00\x00\x00\x00\x00" + b"12345678"
PING_FRAME, GOAWAY = 6, 7


class Held:
    """A handler that answers when the test lets it; `begun` counts the calls."""

    def __init__(self) -> None:
        self.begun = 0
        self.going = asyncio.Event()

    async def answer(self, _request: Any, _context: Any) -> Any:
        self.begun += 1
        await self.going.wait()
        return pb.ServerResponse()


@asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[tuple[int, Held]]:
    held = Held()
    options = channel_options(GatewaySettings(instance="test", **settings))
    server = ControllerServer(
        dict.fromkeys(("getControllerServerList", "createScope"), held.answer), 100, options=options
    )
    port = await server.start("127.0.0.1", 0)
    try:
        yield port, held
    finally:
        held.going.set()
        await server.stop(0)


def stub_at(port: int, channels: list[grpc.aio.Channel]) -> Any:
    channels.append(grpc.aio.insecure_channel(f"127.0.0.1:{port}", [("grpc.use_local_subchannel_pool", 1)]))
    return ControllerServiceStub(channels[-1])


@pytest.fixture
async def channels() -> AsyncIterator[list[grpc.aio.Channel]]:
    found: list[grpc.aio.Channel] = []
    yield found
    for channel in found:
        await channel.close(None)


async def begun(held: Held, count: int) -> None:
    await eventually_async(lambda: held.begun == count, SOON_S, f"{count} calls are in progress")


async def test_a_message_that_is_too_large_is_refused(channels: list[grpc.aio.Channel]) -> None:
    async with serving(max_message_bytes=64 * 1024) as (port, _):
        code, _ = await failure(stub_at(port, channels).createScope(pb.ScopeInfo(scope="x" * 70_000)))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_headers_that_are_too_large_are_refused_and_those_of_long_tokens_are_not(
    channels: list[grpc.aio.Channel],
) -> None:
    async with serving() as (port, held):
        held.going.set()
        stub = stub_at(port, channels)
        await stub.getControllerServerList(pb.ServerRequest(), metadata=[("authorization", "Bearer " + "x" * 12_000)])
        call = stub.getControllerServerList(pb.ServerRequest(), metadata=[("authorization", "Bearer " + "x" * 20_000)])
        code, _ = await failure(call)
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED and held.begun == 1


async def test_calls_beyond_those_of_a_connection_wait_and_another_connection_is_served(
    channels: list[grpc.aio.Channel],
) -> None:
    async with serving(max_calls_per_connection=2) as (port, held):
        greedy = stub_at(port, channels)
        calls = [asyncio.ensure_future(greedy.getControllerServerList(pb.ServerRequest())) for _ in range(5)]
        await begun(held, 2)
        other = asyncio.ensure_future(stub_at(port, channels).getControllerServerList(pb.ServerRequest()))
        await begun(held, 3)
        held.going.set()
        assert await asyncio.gather(*calls, other) == [pb.ServerResponse()] * 6


async def test_a_connection_too_many_is_closed(channels: list[grpc.aio.Channel]) -> None:
    async with serving(max_connections=2) as (port, _):
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for reader, writer in held:
            writer.write(PREFACE + SETTINGS)
            assert await asyncio.wait_for(reader.read(1), DEADLINE_S)
        reader, _ = await asyncio.open_connection("127.0.0.1", port)
        assert await ended(reader) == b""
        for _, writer in held:
            writer.close()


async def ended(reader: asyncio.StreamReader) -> bytes:
    try:
        return await asyncio.wait_for(reader.read(), DEADLINE_S)
    except ConnectionError:
        return b""


@pytest.mark.parametrize("begun", [b"", PREFACE[:11], PREFACE], ids=["nothing", "half a preface", "no settings"])
async def test_who_does_not_begin_to_speak_is_cut(begun: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "HANDSHAKE_S", 1)
    async with serving() as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(begun)
        await ended(reader)


async def test_who_does_not_answer_a_ping_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a client that is gone, or whose receive buffer is full because it reads nothing."""
    monkeypatch.setattr(bounds, "PING_S", 1)
    monkeypatch.setattr(bounds, "PING_ANSWER_S", 1)
    async with serving() as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(PREFACE + SETTINGS)
        assert PING_FRAME in kinds_of_frames(await ended(reader))


async def test_a_client_goes_on_over_the_end_of_its_connection(channels: list[grpc.aio.Channel]) -> None:
    """Each connection lives half a second: calls meet the end of several, and one in progress outlives its own."""
    async with serving(connection_age_s=0.5) as (port, held):
        stub = stub_at(port, channels)
        long = asyncio.ensure_future(stub.getControllerServerList(pb.ServerRequest()))
        await begun(held, 1)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(PREFACE + SETTINGS)
        async with asyncio.timeout(DEADLINE_S):
            found = b""
            while GOAWAY not in kinds_of_frames(found):
                found += await reader.read(1000)
        writer.close()
        held.going.set()
        assert await long == pb.ServerResponse()
        for _ in range(3):
            ended = asyncio.ensure_future(channels[-1].wait_for_state_change(grpc.ChannelConnectivity.READY))
            async with asyncio.timeout(DEADLINE_S):
                while not ended.done():
                    assert await stub.getControllerServerList(pb.ServerRequest()) == pb.ServerResponse()


async def test_a_client_may_ping_about_as_often_as_is_said_and_one_that_floods_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before its first call and after its last, too; its timer may be early, and a ping late on its way."""
    monkeypatch.setattr(bounds, "MIN_PING_S", 0.2)
    async with serving(connection_age_s=0) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(PREFACE + SETTINGS)
        async with asyncio.timeout(DEADLINE_S):
            for early in (1, 0.6, 1, 0.6, 0.6, 0.6, 0.6):
                await asyncio.sleep(bounds.MIN_PING_S * early)
                writer.write(PING)
                found = b""
                while b"12345678" not in found:
                    found += await reader.readexactly(1)
                assert b"too_many_pings" not in found
            writer.write(PING * 4)
            assert b"too_many_pings" in await ended(reader)
        writer.close()


def test_every_option_of_grpc_is_one_that_the_library_knows() -> None:
    """It takes any other in silence. Those of the clients and of the tests, too."""
    library = Path(str(import_module("grpc._cython.cygrpc").__file__)).read_bytes()
    folders = ("bench", "cli", "examples", "services", "shared", "tests")
    sources = [file.read_text() for folder in folders for file in (CLONE / folder).rglob("*.py")]
    options = {name for source in sources for name in re.findall(r'\("(grpc\.[\w.]+)",', source)}
    assert options >= {name for name, _ in channel_options(GatewaySettings(instance="test"))}
    assert [name for name in sorted(options) if name.encode() + b"\0" not in library] == []


async def test_a_path_that_is_no_text_ends_its_call_alone(channels: list[grpc.aio.Channel]) -> None:
    async with serving() as (port, held):
        held.going.set()
        stub = stub_at(port, channels)
        await stub.getControllerServerList(pb.ServerRequest())
        await asyncio.to_thread(converse, ("127.0.0.1", port), grpc_call(b"create\xffScope"))
        await stub.getControllerServerList(pb.ServerRequest())


async def test_a_server_that_ends_by_itself_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    make = grpc.aio.server

    def making(*given: Any, **named: Any) -> Any:
        made.append(make(*given, **named))
        return made[-1]

    monkeypatch.setattr(grpc.aio, "server", making)
    server = ControllerServer({}, 100)
    await server.start("127.0.0.1", 0)
    assert server.problem() is None
    await made[0].stop(0)
    await eventually_async(lambda: "has ended" in (server.problem() or ""), SOON_S, "the server has a problem")
    await server.stop(0)
    assert server.problem() == "does not listen"


def kinds_of_frames(sent: bytes) -> list[int]:
    kinds = []
    while len(sent) >= 9:
        kinds.append(sent[3])
        sent = sent[9 + int.from_bytes(sent[:3], "big") :]
    return kinds
