"""The twin of the segment store over sockets: the common suite, and what clients of others send it."""

import asyncio
import time
from collections.abc import AsyncIterator
from math import ceil
from typing import Any
from uuid import UUID

import pytest
from unit.pravega.suite import SegmentStoreSuite
from unit.pravega.test_wire_examples import TWO_EVENTS, WRITER

from sluice.domain.host import Host
from sluice.pravega import InMemorySegmentStore, SegmentStoreClient
from sluice.pravega.event_frames import frame_event
from sluice.pravega.memory_server import MemoryStoreServer
from sluice.pravega.memory_tokens import TOKEN_CHECK_FAILED, TokenVerifier
from sluice.pravega.wire import appends, others, refusals, segments, tables
from sluice.pravega.wire.command import Command
from sluice.pravega.wire.fields import NOT_EXISTS, TableEntry, TableKey
from sluice.pravega.wire.frame import HEADER, decode, encode, payload_size
from sluice.pravega.wire.hello import Hello, KeepAlive
from sluice.pravega.wire.refusals import TOKEN_EXPIRED
from sluice.security.tokens import signed

NAME = "s/t/0.#epoch.0"
NOTHING = segments.NULL_ATTRIBUTE_VALUE
SOON_S = 30.0


@pytest.fixture
async def server() -> AsyncIterator[MemoryStoreServer]:
    server = MemoryStoreServer(InMemorySegmentStore())
    await server.start("127.0.0.1")
    yield server
    await server.stop()


@pytest.fixture
async def store(server: MemoryStoreServer) -> AsyncIterator[SegmentStoreClient]:
    client = SegmentStoreClient(lambda _container: server.host, 4)
    yield client
    await client.close()


@pytest.fixture
def scope() -> str:
    return "scope"


class TestServedSegmentStore(SegmentStoreSuite):
    """The suite, over the twin behind its server."""


class Peer:
    """A connection on which frames are sent as they are."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    @classmethod
    async def of(cls, host: Host) -> "Peer":
        return cls(*await asyncio.open_connection(host.address, host.port))

    def send(self, *requests: Command | bytes) -> None:
        self.writer.writelines(r if isinstance(r, bytes) else encode(r) for r in requests)

    async def reply(self) -> Command:
        async with asyncio.timeout(SOON_S):
            code, size = payload_size(await self._reader.readexactly(HEADER.size))
            return decode(code, await self._reader.readexactly(size))

    async def ask(self, request: Command | bytes) -> Command:
        self.send(request)
        return await self.reply()

    async def is_closed(self) -> bool:
        async with asyncio.timeout(SOON_S):
            return await self._reader.read(1) == b""


@pytest.fixture
async def peer(server: MemoryStoreServer) -> AsyncIterator[Peer]:
    peer = await Peer.of(server.host)
    yield peer
    peer.writer.close()


async def test_a_client_of_the_oldest_protocol_is_greeted_and_one_before_it_is_hung_up_on(peer: Peer) -> None:
    assert await peer.ask(Hello(5, 5)) == Hello(17, 5)
    assert await peer.ask(KeepAlive()) == KeepAlive()
    assert await peer.ask(Hello(4, 1)) == Hello(17, 5)
    assert await peer.is_closed()


async def test_a_block_in_two_frames_is_appended_as_one(server: MemoryStoreServer, peer: Peer) -> None:
    """The blocks of the reference (wire protocol 2.4): exact, padded, and with an event cut in two."""
    end = "00000004 {} " + WRITER.hex + " 0000000b {} {} 0000000100000000"
    blocks = [
        f"00000003 0000001b {WRITER.hex} 0000000000000003616263",
        end.format("0000002c", "00000000", "00000001 0000000000000001"),
        f"00000003 00000038 {WRITER.hex} 0000000000000003616263 ffffffff 00000015 {'00' * 21}",
        end.format("0000002c", "00000000", "00000001 0000000000000002"),
        f"00000003 00000028 {WRITER.hex} 0000000000000003616263 fffffffe 00000005 0000000000",
        end.format("00000034", "00000008 00000568656c6c6f", "00000002 0000000000000004"),
    ]
    await peer.ask(segments.CreateSegment(1, NAME, 0, 0, ""))
    assert await peer.ask(appends.SetupAppend(2, WRITER, NAME, "")) == appends.AppendSetup(2, NAME, WRITER, NOTHING)
    peer.send(*map(bytes.fromhex, blocks))
    request = 1 << 32
    assert [await peer.reply() for _ in range(3)] == [
        appends.DataAppended(WRITER, 1, NOTHING, request, 11),
        appends.DataAppended(WRITER, 2, 1, request, 22),
        appends.DataAppended(WRITER, 4, 2, request, 46),
    ]
    assert server.store.segments[NAME].data == frame_event(b"abc") * 2 + TWO_EVENTS
    count = segments.GetSegmentAttribute(3, NAME, UUID("80000000-0000-0000-0000-000000000001"), "")
    assert await peer.ask(count) == segments.SegmentAttribute(3, 4)


async def test_what_does_not_follow_a_block_ends_the_connection(server: MemoryStoreServer, peer: Peer) -> None:
    await peer.ask(segments.CreateSegment(1, NAME, 0, 0, ""))
    await peer.ask(appends.SetupAppend(2, WRITER, NAME, ""))
    peer.send(others.AppendBlock(WRITER, b"x"), appends.ConditionalAppend(WRITER, 1, 0, b"x", 3))
    assert await peer.is_closed()
    assert server.store.segments[NAME].length == 0


async def test_a_writer_is_set_up_on_its_connection_alone(server: MemoryStoreServer, peer: Peer) -> None:
    await peer.ask(segments.CreateSegment(1, NAME, 0, 0, ""))
    await peer.ask(appends.SetupAppend(2, WRITER, NAME, ""))
    other = await Peer.of(server.host)
    other.send(appends.AppendBlockEnd(WRITER, 1, b"x", 1, 1, 3))
    assert await other.is_closed()
    other = await Peer.of(server.host)
    await other.ask(appends.SetupAppend(4, WRITER, NAME, ""))
    assert isinstance(await other.ask(appends.AppendBlockEnd(WRITER, 1, b"x", 1, 1, 5)), appends.DataAppended)
    stale = await peer.ask(appends.AppendBlockEnd(WRITER, 1, b"x", 1, 2, 6))
    assert stale == refusals.InvalidEventNumber(WRITER, 6, "", 2)
    assert await peer.is_closed()
    other.writer.close()


async def test_a_read_at_the_tail_waits_while_the_connection_goes_on(peer: Peer) -> None:
    await peer.ask(segments.CreateSegment(1, NAME, 0, 0, ""))
    await peer.ask(appends.SetupAppend(2, WRITER, NAME, ""))
    peer.send(appends.ReadSegment(NAME, 0, 100, "", 3))
    assert await peer.ask(KeepAlive()) == KeepAlive()
    peer.send(others.ConditionalBlockEnd(WRITER, 1, 0, b"raw", 4))
    replies = [await peer.reply() for _ in range(2)]
    assert appends.SegmentRead(NAME, 0, True, False, b"raw", 3) in replies
    assert appends.DataAppended(WRITER, 1, NOTHING, 4, 3) in replies
    late = others.ConditionalBlockEnd(WRITER, 2, 0, b"raw", 5)
    assert await peer.ask(late) == appends.ConditionalCheckFailed(WRITER, 2, 5)
    assert await peer.ask(others.LocateOffset(6, NAME, 1, "")) == others.OffsetLocated(6, NAME, 3)


async def test_a_request_that_takes_long_holds_up_no_other(server: MemoryStoreServer, peer: Peer) -> None:
    goes_on = asyncio.get_running_loop().create_future()
    server.store.fault = lambda _, request, _name: goes_on if request == "GetStreamSegmentInfo" else None
    await peer.ask(segments.CreateSegment(1, NAME, 0, 0, ""))
    peer.send(segments.GetStreamSegmentInfo(2, NAME, ""))
    assert isinstance(await peer.ask(others.LocateOffset(3, NAME, 1, "")), others.OffsetLocated)
    goes_on.set_result(None)
    assert isinstance(await peer.reply(), segments.StreamSegmentInfo)


async def test_an_append_that_takes_long_comes_before_the_next(server: MemoryStoreServer, peer: Peer) -> None:
    await peer.ask(segments.CreateSegment(1, NAME, 0, 0, ""))
    await peer.ask(appends.SetupAppend(2, WRITER, NAME, ""))
    takes_s = iter((0.05, 0, 0, 0))
    server.store.fault = lambda _moment, _request, _name: asyncio.sleep(next(takes_s))
    peer.send(*(appends.AppendBlockEnd(WRITER, 1, b"x", 1, number, 3) for number in (1, 2)))
    assert [await peer.reply() for _ in range(2)] == [
        appends.DataAppended(WRITER, 1, NOTHING, 3, 1),
        appends.DataAppended(WRITER, 2, 1, 3, 2),
    ]


async def test_transient_segments_go_with_their_connection(server: MemoryStoreServer, peer: Peer) -> None:
    await peer.ask(segments.CreateSegment(1, NAME, 0, 0, ""))
    created = await peer.ask(segments.CreateTransientSegment(2, WRITER, NAME, ""))
    assert isinstance(created, segments.SegmentCreated)
    assert created.segment in server.store.segments
    peer.send(others.PartialEvent(b"out of place"))
    assert await peer.is_closed()
    assert list(server.store.segments) == [NAME]


def _entry(key: bytes, version: int, value: bytes = b"v") -> TableEntry:
    return TableEntry(TableKey(key, version), value)


async def test_what_a_table_was_written_is_read_on_from_a_position(peer: Peer) -> None:
    def delta(begin: int, count: int) -> others.ReadTableEntriesDelta:
        return others.ReadTableEntriesDelta(9, NAME, "", begin, count)

    def read(entries: tuple[TableEntry, ...], end: int, *, reached: bool = True) -> others.TableEntriesDeltaRead:
        return others.TableEntriesDeltaRead(9, NAME, entries, False, reached, end)

    await peer.ask(tables.CreateTableSegment(1, NAME, ""))
    assert await peer.ask(delta(0, 10)) == read((), 0)
    first = tables.UpdateTableEntries(2, NAME, "", (_entry(b"a", NOT_EXISTS), _entry(b"b", NOT_EXISTS)))
    assert await peer.ask(first) == tables.TableEntriesUpdated(2, (0, 19))
    assert await peer.ask(delta(0, 1)) == read((_entry(b"a", 0),), 19, reached=False)
    assert await peer.ask(delta(19, 10)) == read((_entry(b"b", 19),), 38)
    await peer.ask(tables.UpdateTableEntries(3, NAME, "", (_entry(b"a", 0, b"w"),)))
    await peer.ask(tables.RemoveTableKeys(4, NAME, "", (TableKey(b"b", 19),)))
    assert await peer.ask(delta(0, 10)) == read((_entry(b"a", 38, b"w"),), 75)
    assert await peer.ask(delta(75, 10)) == read((), 0)
    assert isinstance(await peer.ask(delta(76, 10)), refusals.ErrorMessage)


async def test_a_long_log_of_a_table_keeps_what_is_live_at_its_position(peer: Peer) -> None:
    await peer.ask(tables.CreateTableSegment(1, NAME, ""))
    await peer.ask(tables.UpdateTableEntries(2, NAME, "", (_entry(b"kept", NOT_EXISTS),)))
    often = tables.UpdateTableEntries(3, NAME, "", tuple(TableEntry(TableKey(b"k"), b"v") for _ in range(500)))
    for _ in range(5):
        await peer.ask(often)
    page = await peer.ask(others.ReadTableEntriesDelta(4, NAME, "", 0, 1))
    assert isinstance(page, others.TableEntriesDeltaRead)
    assert page.entries == (_entry(b"kept", 0),)


async def test_keys_of_one_length_are_read_from_one_to_another(peer: Peer) -> None:
    await peer.ask(tables.CreateTableSegment(1, NAME, "", key_length=1))
    await peer.ask(tables.UpdateTableEntries(2, NAME, "", tuple(_entry(k, NOT_EXISTS) for k in (b"c", b"a", b"b"))))
    keys = others.ReadTableKeys(3, NAME, "", 10, from_key=b"a", to_key=b"b")
    assert await peer.ask(keys) == others.TableKeysRead(3, NAME, (TableKey(b"a", 19), TableKey(b"b", 38)), b"b")
    token = others.ReadTableKeys(4, NAME, "", 10, continuation=b"a")
    assert isinstance(await peer.ask(token), refusals.ErrorMessage)


async def test_a_page_of_a_table_ends_at_its_size(peer: Peer) -> None:
    await peer.ask(tables.CreateTableSegment(1, NAME, ""))
    await peer.ask(tables.UpdateTableEntries(2, NAME, "", tuple(_large(key) for key in (b"a", b"b", b"c"))))
    first = await peer.ask(tables.ReadTableEntries(3, NAME, "", 10))
    assert isinstance(first, tables.TableEntriesRead)
    assert [entry.key.key for entry in first.entries] == [b"a", b"b"]
    second = await peer.ask(tables.ReadTableEntries(4, NAME, "", 10, continuation=first.continuation))
    assert isinstance(second, tables.TableEntriesRead)
    assert [entry.key.key for entry in second.entries] == [b"c"]
    delta = await peer.ask(others.ReadTableEntriesDelta(5, NAME, "", 0, 10))
    assert isinstance(delta, others.TableEntriesDeltaRead)
    assert ([entry.key.key for entry in delta.entries], delta.reached_end) == ([b"a", b"b"], False)
    delta = await peer.ask(others.ReadTableEntriesDelta(6, NAME, "", delta.last_position, 10))
    assert isinstance(delta, others.TableEntriesDeltaRead)
    assert ([entry.key.key for entry in delta.entries], delta.reached_end) == ([b"c"], True)


async def test_a_reply_that_no_frame_takes_ends_the_connection_and_is_logged(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    await peer.ask(tables.CreateTableSegment(1, NAME, ""))
    await peer.ask(tables.UpdateTableEntries(2, NAME, "", (_large(b"a"),)))
    peer.send(tables.ReadTable(3, NAME, "", (TableKey(b"a"),) * 16))
    assert await peer.is_closed()
    assert "connection ended" in caplog.messages


def _large(key: bytes) -> TableEntry:
    return _entry(key, NOT_EXISTS, bytes(1024 * 1024))


KEY = b"key of the store"
SCOPE, STREAM = "prn::/scope:s", "prn::/scope:s/stream:t"


@pytest.fixture
async def guarded(server: MemoryStoreServer) -> AsyncIterator[Peer]:
    """A connection to a server of the same store that verifies tokens."""
    guard = MemoryStoreServer(server.store)
    await guard.start("127.0.0.1", verifier=TokenVerifier(KEY))
    yield await Peer.of(guard.host)
    await guard.stop()


def token(*opened: str, permission: str = "READ", key: bytes = KEY, **claims: int) -> str:
    return signed(key, {**dict.fromkeys(opened, permission), **claims})


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        (token(STREAM), None),
        (token(SCOPE), None),
        (token("s/", NAME), None),
        (token("*", exp=1 << 40), None),
        (token("prn::/scope:s/stream:other", f"{STREAM}/0"), TOKEN_CHECK_FAILED),
        (token(STREAM, permission="NONE"), TOKEN_CHECK_FAILED),
        (token(STREAM, key=b"another key"), TOKEN_CHECK_FAILED),
        (token(STREAM, exp=1_000_000), TOKEN_EXPIRED),
        (token(STREAM) + "A", TOKEN_CHECK_FAILED),
        ("", TOKEN_CHECK_FAILED),
        ("no.to.ken", TOKEN_CHECK_FAILED),
    ],
)
async def test_a_token_opens_what_it_names_until_it_ends(guarded: Peer, given: str, refusal: int | None) -> None:
    refused = None if refusal is None else refusals.AuthTokenCheckFailed(1, "", refusal)
    reply = await guarded.ask(segments.GetStreamSegmentInfo(1, NAME, given))
    assert reply == (refused or refusals.NoSuchSegment(1, NAME))


@pytest.mark.parametrize(
    ("request_", "is_refused"),
    [
        (appends.SetupAppend(1, WRITER, NAME, token(STREAM)), True),
        (appends.SetupAppend(1, WRITER, NAME, token(STREAM, permission="READ_UPDATE")), False),
        (segments.MergeSegments(1, "a/b/0", NAME, token(STREAM), ()), False),
        (segments.MergeSegmentsBatch(1, "a/b/0", (NAME,), token("a/b", permission="READ_UPDATE")), True),
        (segments.MergeSegmentsBatch(1, NAME, ("a/b/0",), token("*")), True),
        (segments.CreateTransientSegment(1, WRITER, NAME, ""), False),
        (tables.GetTableSegmentInfo(1, NAME, token("a/b")), True),
    ],
)
async def test_each_command_needs_its_permission(guarded: Peer, request_: Any, is_refused: bool) -> None:
    assert isinstance(await guarded.ask(request_), refusals.AuthTokenCheckFailed) == is_refused


async def test_a_connection_ends_with_the_token_of_a_writer(server: MemoryStoreServer, guarded: Peer) -> None:
    await server.store.create_segment(NAME, 0, 0)
    # In whole seconds, rounded down, it could have ended before it is looked at.
    ends = token(STREAM, permission="READ_UPDATE", exp=ceil(time.time()) + 1)
    assert isinstance(await guarded.ask(appends.SetupAppend(1, WRITER, NAME, ends)), appends.AppendSetup)
    assert await guarded.is_closed()


async def test_a_writer_with_a_token_that_has_ended_is_hung_up_on(guarded: Peer) -> None:
    ended = token(STREAM, permission="READ_UPDATE", exp=1_000_000)
    reply = await guarded.ask(appends.SetupAppend(1, WRITER, NAME, ended))
    assert reply == refusals.AuthTokenCheckFailed(1, "", TOKEN_EXPIRED)
    assert await guarded.is_closed()
