"""Lines over real sockets: listening and connecting, and a stream that is slow."""

import asyncio
import errno
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from support.ports import free_port
from unit.ingest.world import SOON_S, World

from distributed_ingest import tcp
from distributed_ingest.options import address_of
from distributed_ingest.receiver import Receiver
from harness import eventually_async
from sluice_cli.errors import UsageError


@pytest.fixture
def world() -> World:
    return World(kind="tcp", key="source", options={"listen": "yes"})


@asynccontextmanager
async def listening(world: World) -> AsyncIterator[int]:
    """The port that a node listens on."""
    async with world.node(Receiver(world.scene(), "127.0.0.1", 0, tcp.receive)):
        await world.until(lambda: bool(world.said), "it listens")
        found = re.search(r"listening on 127.0.0.1:(\d+)", world.said[0])
        assert found
        yield int(found[1])


async def test_many_may_send_and_each_ones_lines_stay_in_order(world: World) -> None:
    async with listening(world) as port:

        async def send(name: str) -> None:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write("".join(f"{name} {number}\r\n" for number in range(1000)).encode() + f"{name} last".encode())
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        await asyncio.gather(send("a"), send("b"))
        await world.until(lambda: len(world.sink.events) == 2002, "all lines are there")
    for name in ("a", "b"):
        own = [text for text in world.sink.texts if text.startswith(name)]
        assert own == [*(f"{name} {number}" for number in range(1000)), f"{name} last"]
    assert {event.key for event in world.sink.events} == {"127.0.0.1"}


async def test_it_can_be_stopped_while_a_sender_is_connected(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As from Python 3.12 on, where a server's `wait_closed` waits until all connections have ended."""

    async def wait_closed(_self: asyncio.Server) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.base_events.Server, "wait_closed", wait_closed)

    async def listen_and_stop() -> None:
        async with listening(world) as port:
            _, sender = await asyncio.open_connection("127.0.0.1", port)
            sender.write(b"one\n")
            await world.until(lambda: world.sink.texts == ["one"], "it is read")
        sender.close()

    await asyncio.wait_for(listen_and_stop(), SOON_S)


async def test_while_the_stream_is_slow_the_sender_waits(world: World) -> None:
    world.sink.open.clear()
    async with listening(world) as port:
        with socket.create_connection(("127.0.0.1", port)) as sender:
            sender.setblocking(False)
            line = b"x" * 1023 + b"\n"
            await world.until(lambda: _send(sender, line) == 0 and world.sink.writes > 0, "the sender cannot send on")
            assert world.sink.writes == 1 and world.sink.events == []
            world.sink.open.set()
            await world.until(lambda: len(world.sink.events) > 1000, "it goes on")


def _send(sender: socket.socket, line: bytes) -> int:
    """Send what goes; return how many bytes went."""
    sent = 0
    try:
        while True:
            sent += sender.send(line * 64)
    except BlockingIOError:
        return sent


async def test_a_stream_that_is_away_loses_no_line(world: World) -> None:
    world.sink.fails = 10
    async with listening(world) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"one\ntwo\n")
        await world.until(lambda: world.sink.texts == ["one", "two"], "they are there after all")
        writer.close()


async def test_a_stream_that_has_ended_ends_the_connections(world: World) -> None:
    world.sink.ended = True
    async with listening(world) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"one\n")
        assert await asyncio.wait_for(reader.read(), SOON_S) == b"", "the sender is not listened to any more"
        writer.close()
    assert world.sink.writes == 1


async def test_of_too_many_connections_the_last_is_turned_away(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "MAX_CONNECTIONS", 1)
    async with listening(world) as port:
        _, first = await asyncio.open_connection("127.0.0.1", port)
        first.write(b"one\n")
        await world.until(lambda: world.sink.texts == ["one"], "the first is read")
        reader, second = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(reader.read(), 20) == b"", "the second one is closed"
        second.close()
        assert "127.0.0.1 is turned away: there are 1 connections" in world.tally.problems[0]
        first.close()
        await first.wait_closed()

        async def again() -> bool:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"two\n")
            writer.write_eof()
            await reader.read()
            writer.close()
            return "two" in world.sink.texts

        await eventually_async(again, SOON_S, "when it has gone there is room")


async def test_a_connection_that_breaks_off_ends_alone_and_is_watched(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the kernel gives a vanished peer up: that is an OSError, and no ConnectionError."""
    read = asyncio.StreamReader.read
    options: list[tuple[int, int]] = []

    async def broken(self: asyncio.StreamReader, count: int = -1) -> bytes:
        data = await read(self, count)
        if data.startswith(b"break"):
            raise OSError(errno.EHOSTUNREACH, "No route to host")
        return data

    def recorded(writer: asyncio.StreamWriter) -> None:
        probe(writer)
        connection = writer.get_extra_info("socket")
        options.append(
            (
                connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
            )
        )

    probe = tcp.probe
    monkeypatch.setattr(tcp, "probe", recorded)
    async with listening(world) as port:
        _, lasting = await asyncio.open_connection("127.0.0.1", port)
        lasting.write(b"one\n")
        await world.until(lambda: world.sink.texts == ["one"], "the first is read")
        monkeypatch.setattr(asyncio.StreamReader, "read", broken)
        _, breaking = await asyncio.open_connection("127.0.0.1", port)
        breaking.write(b"break\n")
        await world.until(lambda: bool(world.tally.problems), "it is reported")
        lasting.write(b"two\n")
        await world.until(lambda: world.sink.texts == ["one", "two"], "the other one goes on")
        breaking.close()
        lasting.close()
    assert "127.0.0.1: [Errno 113] No route to host" in world.tally.problems[0]
    assert options == [(1, tcp.PROBE_AFTER_S)] * 2 and len(world.said) == 1


async def test_it_connects_and_connects_again(world: World) -> None:
    sent = 0

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        sent += 1
        writer.write(f"hello {sent}\n".encode())
        await writer.drain()
        writer.close()

    port = free_port()
    world.options = {}
    feed = Receiver(world.scene(), "127.0.0.1", port, tcp.receive)
    async with world.node(feed):
        await world.until(lambda: bool(world.tally.problems), "no one listens yet, and that is reported")
        server = await asyncio.start_server(serve, "127.0.0.1", port)
        async with server:
            await world.until(lambda: world.sink.texts[:2] == ["hello 1", "hello 2"], "it connects again and again")
    assert ": ConnectionRefusedError: [Errno 111]" in world.tally.problems[0]


async def test_an_address_in_use_is_reported(world: World) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        feed = Receiver(world.scene(), "127.0.0.1", taken.getsockname()[1], tcp.receive)
        async with world.node(feed):
            await world.until(lambda: bool(world.tally.problems), "it is reported")
    assert "address already in use" in world.tally.problems[0]


@pytest.mark.parametrize("text", ["", "host", "host:", "host:x", "host:99999", "::1:80"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match="no address"):
        address_of(text)


def test_addresses() -> None:
    assert address_of("host:1") == ("host", 1)
    assert address_of("tcp://[::1]:80") == ("::1", 80)
