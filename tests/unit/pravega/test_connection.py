"""One connection against a store that behaves, misbehaves, or says nothing."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
from support.wait import SOON_S
from unit.pravega.fake_store import CLOSE, FakeStore, fake_store, set_up_or_appended

from harness import eventually_async
from sluice.domain.host import Host
from sluice.pravega.connection import Connection, ConnectionLimits, next_request_id
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.wire.appends import AppendBlockEnd, AppendSetup, DataAppended, ReadSegment, SetupAppend
from sluice.pravega.wire.command import Command, Numbered
from sluice.pravega.wire.frame import encode
from sluice.pravega.wire.hello import Hello, KeepAlive
from sluice.pravega.wire.refusals import AuthTokenCheckFailed, InvalidEventNumber
from sluice.pravega.wire.segments import SealSegment, SegmentDeleted, SegmentSealed

LIMITS = ConnectionLimits()
WRITER = UUID(int=7)


def seal(name: str = "s/t/0.#epoch.0") -> SealSegment:
    return SealSegment(next_request_id(), name, "")


def sealed(command: Command) -> Sequence[Command]:
    assert isinstance(command, SealSegment)
    return [SegmentSealed(command.request_id, command.segment)]


def silent(command: Command) -> Sequence[Command]:
    return []


@asynccontextmanager
async def connect(store: FakeStore, limits: ConnectionLimits = LIMITS) -> AsyncIterator[Connection]:
    connection = await Connection.open(store.host, limits, lambda _: None)
    try:
        yield connection
    finally:
        await connection.close()


async def failure_to_open(host: Host, limits: ConnectionLimits = LIMITS) -> Failure:
    with pytest.raises(ConnectionFailure) as caught:
        await Connection.open(host, limits, lambda _: None)
    return caught.value.failure


async def failure_of(connection: Connection, request: Numbered, timeout_s: float = 5.0) -> Failure:
    with pytest.raises(ConnectionFailure) as caught:
        await connection.call(request, timeout_s)
    return caught.value.failure


@pytest.mark.parametrize("hello", [Hello(20, 18), Hello(4, 1)])
async def test_versions_without_overlap_are_refused(hello: Hello) -> None:
    async with fake_store(sealed, hello) as store:
        assert await failure_to_open(store.host) is Failure.INCOMPATIBLE


@pytest.mark.parametrize("hello", [Hello(15, 5), Hello(99, 17), Hello(5, 1)])
async def test_versions_with_overlap_are_taken_and_17_to_5_offered(hello: Hello) -> None:
    async with fake_store(sealed, hello) as store, connect(store) as connection:
        assert not connection.lost and store.received == [Hello(17, 5)]


async def test_a_store_that_does_not_listen_or_greet_is_no_connection() -> None:
    async with fake_store(sealed, None) as store:
        for host in (store.host, Host("127.0.0.1", 1)):
            assert await failure_to_open(host, ConnectionLimits(connect_timeout_s=0.05)) is Failure.CONNECT_FAILED
        await eventually_async(lambda: store.open_connections == 0, SOON_S, "the socket is closed")


@pytest.mark.parametrize(
    "host",
    [Host("store..svc", 1), Host("x" * 64, 1), Host("a\0b", 1), Host("127.0.0.1", 70_000), Host("127.0.0.1", -1)],
    ids=["empty label", "long label", "no text", "large port", "negative port"],
)
async def test_what_is_no_address_is_no_connection(host: Host) -> None:
    assert await failure_to_open(host) is Failure.CONNECT_FAILED


async def test_a_store_that_published_brackets_is_reached() -> None:
    async with fake_store(sealed) as store:
        store.host = Host(f"[{store.host.address}]", store.host.port)
        async with connect(store) as connection:
            assert connection.host is store.host


async def test_replies_out_of_order_find_their_calls() -> None:
    kept: list[SealSegment] = []

    def backwards(command: Command) -> Sequence[Command]:
        assert isinstance(command, SealSegment)
        kept.append(command)
        return [SegmentSealed(c.request_id, c.segment) for c in reversed(kept)] if len(kept) == 100 else []

    async with fake_store(backwards) as store, connect(store) as connection:
        replies = await asyncio.gather(*(connection.call(seal(f"s/t/{n}"), 5.0) for n in range(100)))
        assert [getattr(reply, "segment", None) for reply in replies] == [f"s/t/{n}" for n in range(100)]


async def test_frames_may_come_in_any_pieces() -> None:
    def piecewise(command: Command) -> Sequence[bytes]:
        assert isinstance(command, SealSegment)
        return [bytes((byte,)) for byte in encode(SegmentSealed(command.request_id, command.segment * 100))]

    async with fake_store(piecewise) as store, connect(store) as connection:
        for _ in range(3):
            reply = await connection.call(seal("x"), 5.0)
            assert isinstance(reply, SegmentSealed)
            assert reply.segment == "x" * 100


async def test_a_call_ends_at_its_deadline_and_a_late_reply_is_dropped() -> None:
    async with fake_store(silent) as store, connect(store) as connection:
        late = seal()
        assert await failure_of(connection, late, 0.02) is Failure.TIMED_OUT
        store.send(SegmentSealed(late.request_id, late.segment))
        await eventually_async(lambda: connection.dropped_replies == 1, SOON_S, "the late reply is dropped")
        store.answer = sealed
        assert isinstance(await connection.call(seal(), 5.0), SegmentSealed)


async def test_each_call_ends_at_its_own_deadline() -> None:
    async with fake_store(silent) as store, connect(store) as connection:
        patient = asyncio.ensure_future(failure_of(connection, seal(), 2.0))
        ended = await asyncio.gather(*(failure_of(connection, seal(), seconds) for seconds in (0.05, 0.01)))
        assert ended == [Failure.TIMED_OUT] * 2 and not patient.done()
        assert await patient is Failure.TIMED_OUT


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (CLOSE, Failure.CLOSED_BY_PEER),
        (bytes.fromhex("0000006300000000"), Failure.MALFORMED),
        (bytes.fromhex("0000001501000000"), Failure.MALFORMED),
        (bytes.fromhex("000000150000000100"), Failure.MALFORMED),
    ],
)
async def test_the_end_of_the_connection_ends_every_call(answer: bytes, failure: Failure) -> None:
    gone: list[Connection] = []

    def after_three(_: Command) -> Sequence[bytes]:
        return [answer] if len(store.received) == 4 else []

    async with fake_store(after_three) as store:
        connection = await Connection.open(store.host, LIMITS, gone.append)
        failures = await asyncio.gather(*(failure_of(connection, seal()) for _ in range(3)))
        assert failures == [failure] * 3
        assert connection.lost
        assert gone == [connection]
        assert await failure_of(connection, seal()) is failure


async def test_no_more_calls_are_under_way_or_wait_than_allowed() -> None:
    limits = ConnectionLimits(max_in_flight=2, max_waiting=1)
    async with fake_store(silent) as store, connect(store, limits) as connection:
        calls = [asyncio.ensure_future(connection.call(seal(), 5.0)) for _ in range(3)]
        await eventually_async(lambda: len(store.received) == 3, SOON_S, "two requests are sent")
        assert await failure_of(connection, seal()) is Failure.OVERLOADED
        store.answer = sealed
        for request in store.received[1:]:
            store.send(sealed(request)[0])
        assert all(isinstance(reply, SegmentSealed) for reply in await asyncio.gather(*calls))


async def test_a_call_without_a_turn_ends_at_its_deadline() -> None:
    async with fake_store(silent) as store, connect(store, ConnectionLimits(max_in_flight=1)) as connection:
        first = asyncio.ensure_future(connection.call(seal(), 5.0))
        await eventually_async(lambda: len(store.received) == 2, SOON_S, "the first request is sent")
        assert await failure_of(connection, seal(), 0.02) is Failure.OVERLOADED
        await connection.close()
        with pytest.raises(ConnectionFailure, match=Failure.CLOSED.value):
            await first


async def test_a_cancelled_call_frees_its_slot() -> None:
    async with fake_store(silent) as store, connect(store, ConnectionLimits(max_in_flight=1)) as connection:
        first = asyncio.ensure_future(connection.call(seal(), 5.0))
        await eventually_async(lambda: len(store.received) == 2, SOON_S, "the first request is sent")
        first.cancel()
        await asyncio.wait([first])
        store.answer = sealed
        assert isinstance(await connection.call(seal(), 5.0), SegmentSealed)


async def test_keep_alive_is_sent_when_idle_and_silence_ends_the_connection() -> None:
    limits = ConnectionLimits(keep_alive_s=0.1, silence_limit_s=2.0, idle_limit_s=60.0)
    async with fake_store(silent) as store, connect(store, limits) as connection:
        call = asyncio.ensure_future(failure_of(connection, seal(), 60.0))
        await eventually_async(lambda: store.received.count(KeepAlive()) >= 25, SOON_S, "KeepAlive is sent and echoed")
        assert not connection.lost
        store.echo = False
        assert await call is Failure.SILENT


async def test_an_unused_connection_is_closed() -> None:
    limits = ConnectionLimits(keep_alive_s=0.01, idle_limit_s=0.05)
    async with fake_store(sealed) as store, connect(store, limits) as connection:
        await connection.call(seal(), 5.0)
        await eventually_async(lambda: connection.lost, SOON_S, "the connection is closed")
        await eventually_async(lambda: store.open_connections == 0, SOON_S, "the socket is closed")


def set_up() -> SetupAppend:
    return SetupAppend(next_request_id(), WRITER, "s", "")


def append(number: int = 1) -> AppendBlockEnd:
    return AppendBlockEnd(WRITER, 1, b"x", 1, number, next_request_id())


async def test_a_worn_out_connection_waits_for_those_that_wait_for_their_turn() -> None:
    limits = ConnectionLimits(max_setups=1, max_in_flight=1)
    async with fake_store(set_up_or_appended) as store, connect(store, limits) as connection:
        requests: list[Numbered] = [set_up(), *(append(number) for number in (1, 2, 3))]
        replies = await asyncio.gather(*(connection.call(request, 5.0) for request in requests))
        assert [type(reply) for reply in replies] == [AppendSetup, *[DataAppended] * 3]
        assert connection.lost


async def test_a_worn_out_connection_without_an_append_ends_when_it_is_idle() -> None:
    limits = ConnectionLimits(max_setups=1, keep_alive_s=0.01, idle_limit_s=0.05)
    async with fake_store(set_up_or_appended) as store, connect(store, limits) as connection:
        await connection.call(set_up(), 5.0)
        await eventually_async(lambda: connection.lost, SOON_S, "the connection is closed")


@pytest.mark.parametrize("old", [False, True])
async def test_an_append_is_matched_by_writer_and_request(old: bool) -> None:
    def appended(command: Command) -> Sequence[Command]:
        assert isinstance(command, AppendBlockEnd)
        number, request_id = command.last_event_number, command.request_id
        return [
            DataAppended(UUID(int=8), number, 0, request_id, 98),
            SegmentDeleted(-1, "not requested"),
            DataAppended(command.writer_id, number, 0, -1 if old else request_id, 99),
        ]

    async with fake_store(appended) as store, connect(store) as connection:
        reply = await connection.call(append(), 5.0)
        assert isinstance(reply, DataAppended)
        assert reply.segment_length == 99
        assert connection.dropped_replies == 2


async def test_invalid_event_number_reaches_its_append_before_the_close() -> None:
    def invalid(command: Command) -> Sequence[Command | bytes]:
        assert isinstance(command, AppendBlockEnd)
        return [InvalidEventNumber(command.writer_id, command.request_id, "", 1), CLOSE]

    async with fake_store(invalid) as store, connect(store) as connection:
        assert isinstance(await connection.call(append(), 5.0), InvalidEventNumber)


async def test_a_read_refused_for_its_token_is_matched_by_offset() -> None:
    def refused(command: Command) -> Sequence[Command]:
        assert isinstance(command, ReadSegment)
        return [AuthTokenCheckFailed(command.offset, "", 0)]

    async with fake_store(refused) as store, connect(store) as connection:
        read = ReadSegment("s", 42, 8, "", next_request_id())
        assert isinstance(await connection.call(read, 5.0), AuthTokenCheckFailed)


async def test_a_request_that_cannot_be_encoded_fails_alone() -> None:
    async with fake_store(sealed) as store, connect(store) as connection:
        assert await failure_of(connection, seal("x" * 70000)) is Failure.UNENCODABLE
        assert isinstance(await connection.call(seal(), 5.0), SegmentSealed)
