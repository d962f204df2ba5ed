"""Connections that keep an HTTP server waiting are cut, and leave room for others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from support.certificates import Authority

from sluice.security.contexts import ClientTls, client_context
from sluice.security.tls import PROTOCOLS, Identity, watched_identity
from sluice.security.watched import Watched
from sluice.telemetry import http_connections
from sluice.telemetry.health import HttpServer
from sluice.telemetry.http_connections import HttpBounds

DEADLINE_S = 60.0
GET = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = 32 * 1024 * 1024
PIECE = 1024 * 1024
SPAN_S = 1.2
"""For as long a machine may stand still in the middle of an answer that is read."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def serving(
    port: int, bounds: HttpBounds | None = None, identity: Watched[Identity] | None = None
) -> AsyncIterator[asyncio.Event]:
    """A server of a short and a large answer, which sets the event when it is over, and of one that waits for it."""
    going = asyncio.Event()

    async def short(_request: Request) -> Response:
        return PlainTextResponse("ok")

    async def large(_request: Request) -> Response:
        return StreamingResponse(pieces(), headers={"Content-Length": str(LARGE)})

    async def whole(_request: Request) -> Response:
        return Response(b"x" * LARGE)

    async def pieces() -> AsyncIterator[bytes]:
        try:
            for _ in range(LARGE // PIECE):
                yield b"x" * PIECE
        finally:
            going.set()

    async def held(_request: Request) -> Response:
        await going.wait()
        return PlainTextResponse("held")

    routes = [Route("/short", short), Route("/large", large), Route("/whole", whole), Route("/held", held)]
    server = HttpServer(Starlette(routes=routes), "127.0.0.1", port, bounds=bounds, identity=identity)
    await server.start()
    try:
        yield going
    finally:
        going.set()
        await server.stop()


async def connect(port: int, authority: Authority | None = None) -> Streams:
    context = None if authority is None else client_context(ClientTls("test", str(authority.file)))
    return await asyncio.open_connection("127.0.0.1", port, ssl=context)


@pytest.fixture(params=["plain", "tls"])
def authority(request: pytest.FixtureRequest, tmp_path: Path) -> Authority | None:
    """That of the server's certificate; None without TLS."""
    return Authority(tmp_path) if request.param == "tls" else None


def identity_of(authority: Authority | None) -> Watched[Identity] | None:
    if authority is None:
        return None
    pair = authority.issue("server")
    return watched_identity(str(pair.certificate), str(pair.key), PROTOCOLS[0])


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What comes until the server ends the connection."""
    found = b""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while chunk := await reader.read(1 << 20):
                found += chunk
    except ConnectionError:
        pass
    return found


async def answer(streams: Streams, path: str) -> bytes:
    reader, writer = streams
    writer.write(GET % path.encode())
    async with asyncio.timeout(DEADLINE_S):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return await reader.readexactly(length)


@pytest.mark.parametrize("begun", [b"", b"GET /short HTTP/1.1\r\nHost:"])
async def test_who_does_not_send_the_head_of_a_request_is_cut(
    begun: bytes, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    monkeypatch.setattr(http_connections, "HEAD_S", 0.05)
    async with serving(unused_tcp_port):
        reader, writer = await connect(unused_tcp_port)
        writer.write(begun)
        assert await ended(reader) == b""


async def test_a_head_in_small_pieces_after_an_answer_is_cut(
    monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    monkeypatch.setattr(http_connections, "READ_S", 0.2)
    async with serving(unused_tcp_port):
        reader, writer = await connect(unused_tcp_port)
        assert await answer((reader, writer), "short") == b"ok"

        async def trickle() -> None:
            while not writer.is_closing():
                writer.write(b"G")
                await asyncio.sleep(0.02)

        trickling = asyncio.create_task(trickle())
        assert await ended(reader) == b""
        trickling.cancel()


async def test_a_request_may_take_longer_than_its_head(monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int) -> None:
    monkeypatch.setattr(http_connections, "HEAD_S", 0.5)
    async with serving(unused_tcp_port) as going:
        loop = asyncio.get_running_loop()
        loop.call_later(1.0, going.set)
        assert await answer(await connect(unused_tcp_port), "held") == b"held"


async def test_who_does_not_read_an_answer_is_cut(
    authority: Authority | None, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    monkeypatch.setattr(http_connections, "READ_S", 0.1)
    async with serving(unused_tcp_port, identity=identity_of(authority)) as over:
        _reader, writer = await connect(unused_tcp_port, authority)
        writer.write(GET % b"large")
        await asyncio.wait_for(over.wait(), DEADLINE_S)
        writer.transport.abort()


@pytest.mark.parametrize("path", [b"large", b"whole"])
async def test_who_reads_steadily_gets_all_however_long_it_takes(
    path: bytes, authority: Authority | None, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    monkeypatch.setattr(http_connections, "READ_S", SPAN_S)
    monkeypatch.setattr(http_connections, "HEAD_S", SPAN_S)
    async with serving(unused_tcp_port, identity=identity_of(authority)):
        loop = asyncio.get_running_loop()
        reader, writer = await connect(unused_tcp_port, authority)
        writer.write(GET % path)
        began, left = loop.time(), LARGE
        async with asyncio.timeout(DEADLINE_S):
            await reader.readuntil(b"\r\n\r\n")
            while left:
                piece = await reader.read(PIECE)
                assert piece, f"it was cut {left} bytes before the end"
                left -= len(piece)
                # As over a slow line: longer than the span in which some of it must leave.
                await asyncio.sleep(max(0.0, began + 1.5 * SPAN_S * (1 - left / LARGE) - loop.time()))


async def test_one_connection_too_many_cuts_the_one_that_is_idle_longest(unused_tcp_port: int) -> None:
    async with serving(unused_tcp_port, HttpBounds(connections=3)) as going:
        busy = await connect(unused_tcp_port)
        held = asyncio.create_task(answer(busy, "held"))
        idle = [await connect(unused_tcp_port) for _ in range(2)]
        assert [await answer(each, "short") for each in idle] == [b"ok", b"ok"]
        newcomer = await connect(unused_tcp_port)
        assert await ended(idle[0][0]) == b""
        assert [await answer(each, "short") for each in (idle[1], newcomer)] == [b"ok", b"ok"]
        going.set()
        assert await held == b"held"


async def test_one_that_closes_and_is_not_read_gives_way_to_a_new_one(tmp_path: Path, unused_tcp_port: int) -> None:
    authority = Authority(tmp_path)
    async with serving(unused_tcp_port, HttpBounds(connections=1), identity_of(authority)):
        _reader, writer = await connect(unused_tcp_port, authority)
        writer.write(b"GET /short HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        # So it does not take part in the end of TLS, for which the server waits.
        transport = writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        found = b""
        async with asyncio.timeout(DEADLINE_S):
            while not found:
                with suppress(ConnectionError, asyncio.IncompleteReadError):
                    found = await answer(await connect(unused_tcp_port, authority), "short")
        assert found == b"ok"
        transport.abort()


async def test_one_too_many_is_cut_where_all_others_are_busy(unused_tcp_port: int) -> None:
    async with serving(unused_tcp_port, HttpBounds(connections=2)) as going:
        held = [asyncio.create_task(answer(await connect(unused_tcp_port), "held")) for _ in range(2)]
        assert await ended((await connect(unused_tcp_port))[0]) == b""
        going.set()
        assert [await each for each in held] == [b"held", b"held"]


async def test_a_head_that_is_too_large_is_refused(unused_tcp_port: int) -> None:
    async with serving(unused_tcp_port, HttpBounds(head_bytes=2000)):
        reader, writer = await connect(unused_tcp_port)
        writer.write(b"GET /short HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 3000)
        assert (await ended(reader)).startswith(b"HTTP/1.1 400 ")
