"""What comes by itself: datagrams, messages of syslog and HTTP over real sockets, messages of a queue."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.ingest.world import World

from distributed_ingest import http_listener, syslog, udp
from distributed_ingest.rabbitmq import Queue, QueueError, RabbitMq, Received
from distributed_ingest.receiver import Receive, Receiver
from distributed_ingest.records import MAX_EVENT_BYTES, SyslogSplitter
from sluice_cli.errors import UnreachableError

HERE = "127.0.0.1"


@pytest.fixture
def world() -> World:
    return World(key="source")


@asynccontextmanager
async def listening(world: World, receive: Receive, listeners: int = 1) -> AsyncIterator[list[int]]:
    """The ports that a node listens on."""
    async with world.node(Receiver(world.scene(), HERE, 0, receive)):
        await world.until(lambda: len(world.said) == listeners, "it listens")
        found = [re.search(rf"listening on {HERE}:(\d+)", said) for said in sorted(world.said, key=len)]
        yield [int(each[1]) for each in found if each]


def datagrams(port: int, *texts: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for text in texts:
            sender.sendto(text.encode(), (HERE, port))


async def test_a_datagram_is_a_record_with_its_sender_as_key(world: World) -> None:
    async with listening(world, udp.receive) as (port,):
        datagrams(port, "one\n", "two\nlines", "\n", "three")
        await world.until(lambda: len(world.sink.events) == 3, "they are written")
    assert world.sink.texts == ["one", "two\nlines", "three"] and {event.key for event in world.sink.events} == {HERE}


async def test_datagrams_that_come_faster_than_they_are_written_are_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(udp, "MAX_HELD_BYTES", 10)
    world.sink.open.clear()
    async with listening(world, udp.receive) as (port,):
        datagrams(port, "first")
        await world.until(lambda: world.sink.writes == 1, "it writes")
        datagrams(port, *["12345"] * 5)
        await world.until(lambda: world.tally.total.skipped == 3, "the others are dropped")
        world.sink.open.set()
        await world.until(lambda: world.sink.texts == ["first", "12345", "12345"], "what was held is written")
    assert list(world.tally.problems) == ["datagrams come faster than the stream takes them"]


async def test_an_address_that_is_taken_is_reported(world: World) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind((HERE, 0))
        port = taken.getsockname()[1]
        async with world.node(Receiver(world.scene(), HERE, port, udp.receive)):
            await world.until(lambda: bool(world.tally.problems), "it is reported")
    assert f"{HERE}:{port}" in world.tally.problems[0]


async def test_syslog_comes_over_udp_and_tcp_framed_by_lines_and_by_lengths(world: World) -> None:
    async with listening(world, syslog.receive, 2) as (tcp_port, udp_port):
        datagrams(udp_port, "<34>Oct 11 22:14:15 host su: by UDP")
        _, writer = await asyncio.open_connection(HERE, tcp_port)
        writer.write(b"<13>1 - - a line\n27 <14>1 - - a length\nof lines14 <15>1 - - last<16>end")
        writer.close()
        await world.until(lambda: len(world.sink.events) == 5, "all are written")
    assert sorted(world.sink.texts) == [
        "<13>1 - - a line",
        "<14>1 - - a length\nof lines",
        "<15>1 - - last",
        "<16>end",
        "<34>Oct 11 22:14:15 host su: by UDP",
    ]


MESSAGES = st.lists(st.tuples(st.booleans(), st.text(alphabet="a1 <>", max_size=12)), max_size=6)


@given(MESSAGES, st.lists(st.integers(1, 9), min_size=1))
def test_messages_of_syslog_are_the_same_however_they_are_cut(
    messages: list[tuple[bool, str]], pieces: list[int]
) -> None:
    sent, wanted = b"", []
    for framed, text in messages:
        message = f"<1>{text}".encode()
        sent += b"%d %b" % (len(message), message) if framed else message + b"\n"
        wanted.append(message)
    splitter, found, at = SyslogSplitter(), list[bytes](), 0
    for number in range(len(sent)):
        step = pieces[number % len(pieces)]
        found += splitter.feed(sent[at : at + step])
        at += step
    assert [*found, *splitter.finish()] == wanted


async def test_lines_that_begin_with_digits_and_have_no_length_are_lines() -> None:
    splitter = SyslogSplitter()
    assert splitter.feed(b"2026-11-29 no frame\n1234567890\n12 no frame\n<1>x\n") == [
        b"2026-11-29 no frame", b"1234567890", b"12 no frame", b"<1>x",
    ]  # fmt: skip
    assert splitter.feed(b"77") == [] and splitter.finish() == [b"77"]


async def test_a_request_is_answered_when_its_records_are_stored(world: World) -> None:
    world.records = "items"
    async with (
        listening(world, http_listener.receive) as (port,),
        httpx.AsyncClient(base_url=f"http://{HERE}:{port}", trust_env=False) as client,
    ):
        world.sink.open.clear()
        sending = asyncio.create_task(client.post("/anywhere", content=b'[{"a": 1}, 2]'))
        await world.until(lambda: world.sink.writes == 1, "it writes")
        assert not sending.done()
        world.sink.open.set()
        assert (await sending).status_code == 204 and world.sink.texts == ['{"a": 1}', "2"]
        assert (await client.put("/", content=b"[]")).status_code == 204
        refused = await client.post("/", content=b"no array")
        assert (refused.status_code, "not a JSON array" in refused.text) == (400, True)
        assert (await client.get("/")).status_code == 405
        large = b'["%b"]' % (b"x" * MAX_EVENT_BYTES)
        assert (await client.post("/", content=large)).status_code == 413
        assert (await client.post("/", content=b"x" * (http_listener.MAX_BODY_BYTES + 1))).status_code == 413
        world.sink.fails = 3
        away = await client.post("/", content=b"[3]")
        assert (away.status_code, away.headers["Retry-After"]) == (503, "5")
        assert (await client.post("/", content=b"[3]")).status_code == 204
    assert world.sink.texts == ['{"a": 1}', "2", "3"] and {event.key for event in world.sink.events} == {HERE}


class MemoryQueue:
    """Twin of a queue: what a connection has not acknowledged goes back when it ends. `breaks`: the next call fails."""

    def __init__(self, *texts: str) -> None:
        self.ready = [text.encode() for text in texts]
        self.breaks = False
        self.there = True
        self.connections = 0
        self.changed = asyncio.Event()

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Queue]:
        if not self.there:
            raise QueueError("NOT_FOUND")
        self.connections += 1
        connection = MemoryConnection(self)
        try:
            yield connection
        finally:
            self.ready = connection.taken + self.ready
            self.changed.set()


class MemoryConnection:
    def __init__(self, queue: MemoryQueue) -> None:
        self._queue = queue
        self._acknowledged = 0
        self.taken: list[bytes] = []

    async def receive(self) -> Sequence[Received]:
        while not self._queue.ready:
            self._queue.changed.clear()
            await self._queue.changed.wait()
        batch, self._queue.ready = self._queue.ready[:2], self._queue.ready[2:]
        first = self._acknowledged + len(self.taken) + 1
        self.taken += batch
        return [Received(tag, data, f"key-{len(data)}") for tag, data in enumerate(batch, first)]

    async def acknowledge(self, tag: int) -> None:
        if self._queue.breaks:
            self._queue.breaks = False
            raise QueueError("the connection has ended")
        self.taken = self.taken[tag - self._acknowledged :]
        self._acknowledged = tag

    async def waiting(self) -> int:
        return len(self._queue.ready)


async def test_messages_are_acknowledged_when_they_are_stored_and_shared_by_all_workers() -> None:
    world, queue = World(kind="rabbitmq", key="record"), MemoryQueue(*(str(number) for number in range(50)))
    one, two = (RabbitMq(world.scene(), "amqp://me:secret@h/", "orders", queue.connect) for _ in range(2))
    async with world.node(one), world.node(two):
        await world.until(lambda: len(world.sink.events) == 50, "all are written")
        await world.until(lambda: queue.connections == 2 + 4, "each worker has a connection")
    assert sorted(map(int, world.sink.texts)) == list(range(50)) and queue.ready == []
    assert {event.key for event in world.sink.events} == {"key-1", "key-2"}
    assert list(world.tally.by_origin) == ["amqp://***@h/ orders"]


async def test_what_was_not_acknowledged_is_written_again_after_the_connection_has_ended() -> None:
    world, queue = World(kind="rabbitmq", key="none"), MemoryQueue("a", "b", "c", "")
    queue.breaks = True
    async with world.node(RabbitMq(world.scene(), "amqp://h/", "orders", queue.connect)):
        await world.until(lambda: not queue.ready and world.sink.texts.count("c") == 1, "all are written")
        await world.until(lambda: world.tally.total.skipped == 1, "the empty one is left out")
    assert sorted(world.sink.texts) == ["a", "a", "b", "b", "c"]
    assert "amqp://h/ orders: the connection has ended" in world.tally.problems


async def test_a_queue_that_is_not_there_is_refused() -> None:
    world, queue = World(kind="rabbitmq"), MemoryQueue()
    queue.there = False
    with pytest.raises(UnreachableError, match="cannot read amqp://h/ orders: NOT_FOUND"):
        await RabbitMq(world.scene(), "amqp://h/", "orders", queue.connect).open()
