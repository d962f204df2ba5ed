"""Events written to a stream and read from it, on the client library's twin of a cluster."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
from support import virtual_time
from unit.cli.conftest import Cli
from unit.cli.shown import ONE, items

from sluice.pravega import ConnectionFailure, Failure, InMemorySegmentStore, SegmentData
from sluice_cli import session
from sluice_cli.events import reading, writing
from sluice_cli.events.printing import as_line
from sluice_cli.events.reading import Reading
from sluice_client import AccessRefused, Client, Patience, Start, Unavailable
from sluice_client.memory import InMemoryController

FIRST, SECOND, MERGED = (f"demo/orders/{name}" for name in ("0.#epoch.0", "1.#epoch.0", "2.#epoch.1"))
RANGES = items(
    {"id": 0, "number": 0, "epoch": 0, "low": 0.0, "high": 0.5},
    {"id": 1, "number": 1, "epoch": 0, "low": 0.5, "high": 1.0},
)
WRITERS = (UUID(int=number) for number in itertools.count(1))
EARLY, LATE = "c", "hello"
"""Keys of the first and of the second half of the ranges."""


class Controller(InMemoryController):
    """Its segments can be merged into one."""

    merged = False

    async def successors(self, segment: str) -> dict[str, list[str]]:
        return {MERGED: [FIRST, SECOND]} if self.merged and segment in (FIRST, SECOND) else {}

    async def key_ranges(self, scope: str, stream: str) -> list[tuple[float, str]]:
        return [(1.0, MERGED)] if self.merged else await super().key_ranges(scope, stream)


class Cluster:
    """`demo/orders` with two segments."""

    def __init__(self) -> None:
        self.store = InMemorySegmentStore()
        self.controller = Controller(self.store)
        asyncio.run(self.controller.create_scope("demo"))
        asyncio.run(self.controller.create_stream("demo", "orders", 2))
        self.client = Client(self.controller, self.store, Patience(deadline_s=0.05))

    def merge(self) -> None:
        async def do() -> None:
            await self.store.create_segment(MERGED, 0, 0)
            for segment in (FIRST, SECOND):
                await self.store.seal_segment(segment)

        asyncio.run(do())
        self.controller.merged = True


@pytest.fixture
def cluster(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    found = Cluster()

    @asynccontextmanager
    async def opened(_controller: str) -> AsyncIterator[Client]:
        yield found.client

    monkeypatch.setattr(session, "open_client", opened)
    monkeypatch.setattr(reading, "POLL_S", 0.001)
    cli.answers[f"GET {ONE}/segments?limit=1000&epoch=0"] = RANGES
    return found


def write(cli: Cli, key: str, *events: str) -> None:
    assert cli("stream", "write", "demo/orders", *events, "--key", key).code == 0


@pytest.mark.usefixtures("cluster")
def test_what_is_written_is_read_in_the_order_of_its_key(cli: Cli) -> None:
    said = cli("stream", "write", "demo/orders", "one", "two", "--key", EARLY)
    assert said.code == 0 and said.out == "2 events written to demo/orders\n"
    found = cli("stream", "write", "demo/orders", "--key", EARLY, "--json", typed=b"three\n\n\xff\nlast")
    assert found.document == {"stream": "demo/orders", "events": 4}
    assert cli("stream", "read", "demo/orders", "--json").lines == [
        {"segment": "0.#epoch.0", "offset": 0, "next": 11, "text": "one"},
        {"segment": "0.#epoch.0", "offset": 11, "next": 22, "text": "two"},
        {"segment": "0.#epoch.0", "offset": 22, "next": 35, "text": "three"},
        {"segment": "0.#epoch.0", "offset": 35, "next": 43, "text": ""},
        {"segment": "0.#epoch.0", "offset": 43, "next": 52, "base64": "/w=="},
        {"segment": "0.#epoch.0", "offset": 52, "next": 64, "text": "last"},
    ]
    assert cli("stream", "read", "demo/orders", "--count", "2").out == "one\ntwo\n"


@pytest.mark.usefixtures("cluster")
def test_events_without_a_key_are_spread(cli: Cli) -> None:
    cli("stream", "write", "demo/orders", *map(str, range(200)))
    segments = [line["segment"] for line in cli("stream", "read", "demo/orders", "--json").lines]
    assert len(segments) == 200 and set(segments) == {"0.#epoch.0", "1.#epoch.0"}


@pytest.mark.usefixtures("cluster")
def test_reading_begins_where_it_is_said(cli: Cli) -> None:
    write(cli, EARLY, "a", "b")
    write(cli, LATE, "x", "y")
    assert sorted(cli("stream", "read", "demo/orders", "--from", "head").out.split()) == ["a", "b", "x", "y"]
    assert cli("stream", "read", "demo/orders", "--from", "tail").out == ""
    assert sorted(cli("stream", "read", "demo/orders", "--from", "0=9,1=0").out.split()) == ["b", "x", "y"]
    assert cli("stream", "read", "demo/orders", "--from", "0=9,1=-1").out == "b\n"
    assert cli("stream", "read", "demo/orders", "--key", LATE).out == "x\ny\n"
    missing = cli("stream", "read", "demo/orders", "--from", "7=0")
    assert missing.code == 2 and "has no segment 7.#epoch.0" in missing.err
    assert cli("stream", "read", "demo/orders", "--from", "middle").code == 2


@pytest.mark.parametrize("options", [[], ["--follow", "--count", "3"]])
def test_a_merged_segment_is_read_when_both_before_it_are(cli: Cli, cluster: Cluster, options: list[str]) -> None:
    write(cli, EARLY, "a")
    write(cli, LATE, "x")
    cluster.merge()
    write(cli, EARLY, "after")
    events = cli("stream", "read", "demo/orders", *options).out.split()
    assert sorted(events[:2]) == ["a", "x"] and events[2:] == ["after"]
    cli.answers[f"GET {ONE}/segments?limit=1000&epoch=1"] = items({"id": 4294967298, "low": 0.0, "high": 1.0})
    assert cli("stream", "read", "demo/orders", "--key", EARLY).out.split() == ["a", "after"]


async def test_what_comes_is_followed() -> None:
    store = InMemorySegmentStore()
    controller = InMemoryController(store)
    await controller.create_scope("demo")
    await controller.create_stream("demo", "orders")
    client = Client(controller, store)
    await store.append(FIRST, next(WRITERS), b"first")
    events = Reading(client, Start({FIRST: 0}, {}), lambda _: True, follow=True).events()
    async with asyncio.timeout(30):
        assert (await anext(events)).event.data == b"first"
        following = asyncio.ensure_future(anext(events))
        await store.append(FIRST, next(WRITERS), b"second")
        assert (await following).event.data == b"second"
        await store.seal_segment(FIRST)
        assert [event async for event in events] == [], "a sealed stream has an end"


async def test_without_follow_a_stream_that_is_written_on_has_an_end() -> None:
    store = InMemorySegmentStore()
    await store.create_segment(FIRST, 0, 0)
    for event in (b"1", b"2"):
        await store.append(FIRST, next(WRITERS), event)
    client = Client(InMemoryController(store), store)
    found = []
    async for one in Reading(client, Start({FIRST: 0}, {}), lambda _: True, follow=False).events():
        found.append(one.event.data)
        await store.append(FIRST, next(WRITERS), b"more")
    assert found == [b"1", b"2"]


def test_a_segment_that_answers_with_nothing_for_a_while_is_read_at_a_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container that is about to move does so, also before the end of the segment."""
    store, reads, answer = InMemorySegmentStore(), 0, InMemorySegmentStore.read_segment

    async def nothing_yet(self: InMemorySegmentStore, segment: str, offset: int, length: int) -> SegmentData:
        nonlocal reads
        reads += 1
        return await answer(self, segment, offset, length if reads > 5 else 0)

    monkeypatch.setattr(InMemorySegmentStore, "read_segment", nothing_yet)

    async def read() -> None:
        await store.create_segment(FIRST, 0, 0)
        await store.append(FIRST, next(WRITERS), b"1")
        client, began = Client(InMemoryController(store), store), asyncio.get_running_loop().time()
        reading_on = Reading(client, Start({FIRST: 0}, {}), lambda _: True, follow=False)
        assert [one.event.data async for one in reading_on.events()] == [b"1"]
        assert asyncio.get_running_loop().time() - began == 5 * reading.POLL_S

    virtual_time.run(read())


def test_what_is_stored_of_a_failed_write_is_said(cli: Cli, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "READ_BYTES", 4)
    monkeypatch.setattr(writing, "PATIENCE_S", 0.01)
    cluster.store.fault = failing_append(3)
    found = cli("stream", "write", "demo/orders", "--key", EARLY, typed="a\nb\nc\nd\ne\nf\n")
    assert found.code == 3 and "4 events are stored; of the 2 after them it is not known" in found.err


def failing_append(first: int) -> Callable[[str, str, str], None]:
    """A fault: the append of that number and all after it are lost."""
    seen = 0

    def fault(moment: str, request: str, _segment: str) -> None:
        nonlocal seen
        if (moment, request) == ("before", "AppendBlockEnd"):
            seen += 1
            if seen >= first:
                raise ConnectionFailure(Failure.LOST)

    return fault


def test_a_line_that_is_too_long_for_an_event_is_refused(
    cli: Cli, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MAX_EVENT_BYTES", 3)
    found = cli("stream", "write", "demo/orders", "--key", EARLY, typed="a\nb\nlong\nc\n")
    assert found.code == 2 and "longer than 3 bytes" in found.err and "2 events before it are stored" in found.err
    assert cli("stream", "read", "demo/orders", "--key", EARLY).out.split() == ["a", "b"]


@pytest.mark.usefixtures("cluster")
def test_what_is_not_there_sealed_or_not_permitted_is_refused(
    cli: Cli, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in (["read", "demo/nothing"], ["write", "demo/nothing", "a"]):
        found = cli("stream", *command)
        assert found.code == 1 and "stream demo/nothing does not exist" in found.err
    assert cli("stream", "read", "demo/orders", "--controller", "http://h:1").code == 2

    async def none(_scope: str, _stream: str) -> list[tuple[float, str]]:
        return []

    monkeypatch.setattr(cluster.controller, "key_ranges", none)
    sealed = cli("stream", "write", "demo/orders", "a")
    assert sealed.code == 1 and "demo/orders is sealed" in sealed.err

    async def refused(_scope: str, _stream: str) -> list[tuple[float, str]]:
        raise AccessRefused("PERMISSION_DENIED")

    monkeypatch.setattr(cluster.controller, "key_ranges", refused)
    forbidden = cli("stream", "write", "demo/orders", "a")
    assert forbidden.code == 1 and "PERMISSION_DENIED" in forbidden.err and "SLUICE_USER" in forbidden.err

    async def away(_scope: str, _stream: str) -> dict[str, int]:
        raise Unavailable("15 s")

    monkeypatch.setattr(cluster.controller, "head", away)
    found = cli("stream", "read", "demo/orders", "--controller", "tcp://h:1")
    assert found.code == 3 and "tcp://h:1" in found.err and "SLUICE_CONTROLLER" in found.err


def test_a_terminal_is_not_commanded_by_an_event() -> None:
    assert as_line(b"a\tb\n \x1b[2J\xff \xc3\xa9") == "a\tb\\n \\x1b[2J\\xff é".encode()


def test_last_events_are_shown_by_segment_with_what_was_not_read(cli: Cli) -> None:
    found = {
        "items": [
            {"segment": 1, "offset": 8, "next": 22, "data": {"value": "a\nb\x1b[2J", "encoding": "text", "size": 6}},
        ],
        "segments": [{"id": 1, "length": 22}, {"id": 4294967298, "problem": "no answer within 5 s"}],
        "moreSegments": 3,
        "next": {"1": 22},
    }
    cli.answers[f"GET {ONE}/events?limit=20"] = found
    shown = cli("stream", "events", "demo/orders").out
    for part in ("1.#epoch.0", "8", "a\\nb\\x1b[2J", "segment 2.#epoch.1: no answer within 5 s", "3 more segments"):
        assert part in shown
    cli.answers[f"GET {ONE}/events?limit=5&segment=1&from=1%3D8"] = found
    command = ("stream", "events", "demo/orders", "--segment", "1.#epoch.0", "--from", "1=8", "--limit", "5", "--json")
    assert cli(*command).document == found
