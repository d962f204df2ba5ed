"""The feed of events over HTTP: how it is counted, and that no server waits for it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import REGISTRY
from support.wait import eventually_async
from unit.gateway.rest.test_sluice_streams import problem
from unit.gateway.rest.world import MAX_FEEDS, World

from api_gateway.console import rates
from api_gateway.console.feed import feeds
from api_gateway.console.feed.feeds import Feeds
from api_gateway.console.rest.events import resource_of_subject
from api_gateway.edge.shares import Shares
from sluice.telemetry import health
from sluice.telemetry.health import HttpServer

PATH = "/sluice/v1/events"
DEADLINE_S = 60.0
PAGES = 50
GRACE_S = 60.0
"""A server that waits for its feeds takes all of that."""

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def serving(world: World, port: int) -> AsyncIterator[HttpServer]:
    server = HttpServer(world.app, "127.0.0.1", port)
    await server.start()
    yield server
    await server.stop()


async def follow(port: int, query: str = "") -> Connection:
    """A connection on which the feed has begun."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {PATH}{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    async with asyncio.timeout(DEADLINE_S):
        head = await reader.readuntil(b"event: hello\n")
    assert head.startswith(b"HTTP/1.1 200") and b"text/event-stream" in head and b"no-store" in head
    return reader, writer


def sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


async def test_a_gateway_with_fifty_pages_stops_at_once_and_says_goodbye(
    world: World, unused_tcp_port: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "STOP_GRACE_S", GRACE_S)
    loop = asyncio.get_running_loop()
    async with serving(world, unused_tcp_port) as server:
        pages = [await follow(unused_tcp_port) for _ in range(PAGES)]
        assert sample("sluice_feeds") == PAGES
        began = loop.time()
        await world.parts[Feeds].stop()
        await server.stop()
        assert loop.time() - began < GRACE_S / 2
    for reader, writer in pages:
        assert b'event: bye\ndata: {"reason":"stopping"}' in await reader.read()
        writer.close()
    assert sample("sluice_feeds") == 0
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_feed_is_no_call_in_progress(world: World, unused_tcp_port: int) -> None:
    world.app.state.capacity.calls = Shares(1, "calls")
    count = sample("sluice_http_seconds_count", method="GET", path=PATH, status="200")
    async with serving(world, unused_tcp_port):
        _reader, writer = await follow(unused_tcp_port, "?of=cluster")
        assert sample("sluice_http_seconds_count", method="GET", path=PATH, status="200") == count + 1
        assert (await world.call("GET", "/sluice/v1/scopes")).status_code == 200
        writer.close()
        await eventually_async(lambda: not sample("sluice_feeds"), DEADLINE_S, "the feed is closed")
        assert sample("sluice_http_seconds_count", method="GET", path=PATH, status="200") == count + 1


async def test_a_feed_of_a_stream_has_the_changes_of_its_transactions(
    world: World, stream: str, unused_tcp_port: int
) -> None:
    async with serving(world, unused_tcp_port):
        reader, writer = await follow(unused_tcp_port, "?of=stream:sc/st")
        assert (await world.call("POST", f"{stream}/transactions", {"leaseMs": 30_000})).status_code == 201
        async with asyncio.timeout(DEADLINE_S):
            await reader.readuntil(b"event: changed\n")
            line = await reader.readline()
        assert b'"aggregate":"txn:sc/st","types":["TransactionOpened"' in line
        writer.close()


async def test_the_head_of_a_feed_holds_no_connection(world: World) -> None:
    answer = await world.call("HEAD", PATH)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")


@pytest.mark.parametrize(
    "query", ["of=", "of=txn:a/b", "of=stream:a", f"of={','.join(['cluster'] * 51)}", "since=1..2"]
)
async def test_what_is_no_feed_is_refused(world: World, query: str) -> None:
    assert problem(await world.call("GET", f"{PATH}?{query}")) == (400, None)


async def test_a_feed_too_many_is_refused_and_counted(world: World) -> None:
    opened = [world.parts[Feeds].open(("*",)) for _ in range(MAX_FEEDS)]
    refused = sample("sluice_feeds_refused_total")
    answer = await world.call("GET", PATH)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert sample("sluice_feeds_refused_total") == refused + 1
    for feed in opened:
        feed.close()


async def test_a_feed_of_rates_has_what_is_written_to_each_segment(
    world: World, stream: str, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "RATES_S", 0.01)
    async with serving(world, unused_tcp_port):
        reader, writer = await follow(unused_tcp_port, "?of=rates:sc/st")
        async with asyncio.timeout(DEADLINE_S):
            await reader.readuntil(b'event: rates\ndata: {"stream":"sc/st","segments":[{"id":0')
            await reader.readuntil(b'"length":0')
        writer.close()
    names = ",".join(f"rates:sc/{n}" for n in range(6))
    assert problem(await world.call("GET", f"{PATH}?of={names}")) == (400, None)


async def test_a_feed_whose_rates_cannot_be_measured_has_all_the_rest(
    world: World, stream: str, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "MAX_STREAMS", 0)
    async with serving(world, unused_tcp_port):
        reader, writer = await follow(unused_tcp_port, "?of=rates:sc/st,stream:sc/st")
        assert (await world.call("POST", f"{stream}/seal")).status_code == 200
        async with asyncio.timeout(DEADLINE_S):
            await reader.readuntil(b"event: changed\n")
        writer.close()


@pytest.mark.parametrize(
    ("subject", "resource"),
    [
        ("cluster", "prn::/sluice:cluster"),
        ("scope:sc", "prn::/scope:sc"),
        ("stream:sc/st", "prn::/scope:sc/stream:st"),
        ("txn:sc/st", "prn::/scope:sc/stream:st"),
        ("commits:sc/_MARKst", "prn::/scope:sc/stream:st"),
        ("stream:sc/_RGrg", "prn::/scope:sc/reader-group:rg"),
        ("group:sc/rg", "prn::/scope:sc/reader-group:rg"),
        ("table:sc/kv", "prn::/scope:sc/key-value-table:kv"),
        ("rates:sc/st", "prn::/scope:sc/stream:st"),
    ],
)
def test_a_change_is_seen_by_who_may_read_what_it_is_about(subject: str, resource: str) -> None:
    assert resource_of_subject(subject) == resource
