"""Reading a segment ahead: whole events, the end, what was truncated, stores that are away. In virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.virtual_time import run
from unit.client.late_store import LateStore

from sluice.pravega import ConnectionFailure, Failure, InMemorySegmentStore
from sluice_client import Event, MalformedEvents, Patience, SegmentInput, Skipped, Unavailable

SEGMENT = "sc/st/0.#epoch.0"
IMPATIENT = Patience(deadline_s=3.0)
Write = Callable[..., Awaitable[None]]


@pytest.fixture
async def store() -> InMemorySegmentStore:
    store = InMemorySegmentStore()
    await store.create_segment(SEGMENT, 0, 0)
    return store


@pytest.fixture
def write(store: InMemorySegmentStore) -> Write:
    async def write(*events: bytes) -> None:
        await store.append_events(SEGMENT, uuid4(), events, len(events))

    return write


async def _rest(source: SegmentInput) -> list[bytes | Skipped]:
    rest: list[bytes | Skipped] = []
    while (found := await source.next()) is not None:
        rest += [found] if isinstance(found, Skipped) else [event.data for event in found]
    return rest


def _event(data: bytes, start: int, end: int) -> list[Event]:
    return [Event(data, SEGMENT, start, end)]


async def test_events_of_any_size_are_read_to_the_end(store: InMemorySegmentStore, write: Write) -> None:
    events = [b"small", bytes(5 * 1024 * 1024), b"", b"last"]
    await write(*events)
    await store.seal_segment(SEGMENT)
    async with SegmentInput(store, SEGMENT) as source:
        assert await _rest(source) == events
        assert source.ended and source.offset == store.segments[SEGMENT].length


async def test_reading_begins_at_an_offset_and_waits_for_what_is_written_later(
    store: InMemorySegmentStore, write: Write
) -> None:
    await write(b"before", b"at")
    async with SegmentInput(store, SEGMENT, 14) as source:
        assert await source.next() == _event(b"at", 14, 24)
        later = asyncio.create_task(source.next())
        await asyncio.sleep(1800.0)
        assert not later.done() and source.take() is None
        await write(b"later")
        assert await later == _event(b"later", 24, 37)
        end = asyncio.create_task(source.next())
        await asyncio.sleep(0)
        await store.seal_segment(SEGMENT)
        assert await end is None and source.ended


async def test_no_more_is_read_than_the_buffer_may_hold(store: InMemorySegmentStore, write: Write) -> None:
    for _ in range(10):
        await write(bytes(1000))
    reads: list[str] = []
    store.fault = lambda moment, _request, _segment: reads.append(moment)
    async with SegmentInput(store, SEGMENT, read_bytes=2016) as source:
        for turns in range(1, 6):
            await asyncio.sleep(10.0)
            assert reads == ["before", "after"] * turns
            found = source.take()
            assert isinstance(found, list) and len(found) == 2


async def test_a_large_event_of_which_a_part_fills_the_buffer_is_read(
    store: InMemorySegmentStore, write: Write
) -> None:
    small, large = bytes(82), bytes(300)
    async with SegmentInput(store, SEGMENT, read_bytes=100) as source:
        await write(small)
        await asyncio.sleep(1.0)
        await write(large)
        await asyncio.sleep(1.0)
        assert [await source.next(), await source.next()] == [_event(small, 0, 90), _event(large, 90, 398)]


async def test_what_was_truncated_is_skipped_and_said(store: InMemorySegmentStore, write: Write) -> None:
    await write(b"one", b"two", b"three")
    await store.truncate_segment(SEGMENT, 22)
    async with SegmentInput(store, SEGMENT) as source:
        assert await source.next() == Skipped(SEGMENT, 0, 22)
        assert source.offset == 22
        assert await source.next() == _event(b"three", 22, 35)
        store.fault = _no_reads
        await write(b"four", b"five")
        await store.truncate_segment(SEGMENT, 47)
        await store.seal_segment(SEGMENT)
        store.fault = None
        assert await _rest(source) == [Skipped(SEGMENT, 35, 47), b"five"]


async def test_a_segment_that_is_gone_has_ended(store: InMemorySegmentStore, write: Write) -> None:
    await write(b"one")
    async with SegmentInput(store, SEGMENT) as source:
        assert await source.next() == _event(b"one", 0, 11)
        await store.delete_segment(SEGMENT)
        assert await _rest(source) == [Skipped(SEGMENT, 11, None)]


@pytest.mark.parametrize(("limit", "expected"), [(0, []), (11, [b"one"]), (14, [b"one"]), (22, [b"one", b"two"])])
async def test_reading_ends_at_the_last_event_before_the_limit(
    store: InMemorySegmentStore, write: Write, limit: int, expected: list[bytes]
) -> None:
    await write(b"one", b"two", b"three")
    async with SegmentInput(store, SEGMENT, limit=limit) as source:
        assert await _rest(source) == expected


async def test_a_limit_within_a_sealed_segment_is_not_its_end(store: InMemorySegmentStore, write: Write) -> None:
    await write(b"one", b"two")
    await store.seal_segment(SEGMENT)
    for limit, is_limit in ((14, True), (30, False)):
        async with SegmentInput(store, SEGMENT, limit=limit) as source:
            await _rest(source)
            assert source.at_limit is is_limit


async def test_an_outage_within_the_patience_is_not_noticed(store: InMemorySegmentStore, write: Write) -> None:
    """However long the read before it was held, and whatever failed before that."""
    store.fault = _no_reads
    async with SegmentInput(store, SEGMENT, patience=IMPATIENT) as source:
        await asyncio.sleep(2.0)
        store.fault = None
        await asyncio.sleep(1000.0)
        store.fault = _break_after
        await store.append_events(SEGMENT, uuid4(), [b"one"], 1)
        await asyncio.sleep(2.0)
        store.fault = None
        assert await source.next() == _event(b"one", 0, 11)


async def test_an_outage_beyond_the_patience_is_an_error_and_reading_goes_on(
    store: InMemorySegmentStore, write: Write
) -> None:
    await write(b"one")
    store.fault = _away
    async with SegmentInput(store, SEGMENT, patience=IMPATIENT) as source:
        for _ in range(2):
            with pytest.raises(Unavailable, match=SEGMENT):
                await source.next()
        store.fault = None
        assert await source.next() == _event(b"one", 0, 11)


async def test_what_is_no_event_is_an_error_behind_the_events_before_it(
    store: InMemorySegmentStore, write: Write
) -> None:
    await write(b"one")
    store.segments[SEGMENT].data += b"\x00\x00\x00\x07garbage"
    async with SegmentInput(store, SEGMENT) as source:
        assert await source.next() == _event(b"one", 0, 11)
        for _ in range(2):
            with pytest.raises(MalformedEvents, match="at 11"):
                await source.next()


async def test_a_caller_that_gives_up_loses_nothing(store: InMemorySegmentStore, write: Write) -> None:
    got: list[list[Event] | Skipped | None] = []
    async with SegmentInput(store, SEGMENT) as source:
        for turns in range(8):
            caller = asyncio.create_task(source.next())
            await asyncio.sleep(1.0)
            await write(b"%d" % turns)
            for _ in range(turns):
                await asyncio.sleep(0)
            caller.cancel()
            await asyncio.wait([caller])
            got += [] if caller.cancelled() else [caller.result()]
        await store.seal_segment(SEGMENT)
        rest = await _rest(source)
    assert 0 < len(rest) < 8
    assert [event.data for found in got if isinstance(found, list) for event in found] + rest == [
        b"%d" % turns for turns in range(8)
    ]


@given(st.integers(0, 2**32), st.lists(st.integers(0, 3000), min_size=1, max_size=40))
def test_each_event_comes_once_and_in_order_while_connections_break(seed: int, sizes: list[int]) -> None:
    async def read() -> None:
        store = LateStore(Random(seed), broken=0.0)
        await store.create_segment(SEGMENT, 0, 0)
        events = [bytes([number]) * size for number, size in enumerate(sizes)]
        await store.append_events(SEGMENT, uuid4(), events, len(events))
        await store.seal_segment(SEGMENT)
        store.broken = 0.4
        async with SegmentInput(store, SEGMENT, read_bytes=1500) as source:
            assert await _rest(source) == events
        await store.settle()

    run(read())


def _away(_moment: str, _request: str, _segment: str) -> None:
    raise ConnectionFailure(Failure.CONNECT_FAILED)


def _break_after(moment: str, request: str, _segment: str) -> None:
    """Of a read that is held, too."""
    if (moment, request) == ("after", "ReadSegment"):
        raise ConnectionFailure(Failure.LOST)


def _no_reads(_moment: str, request: str, _segment: str) -> None:
    if request == "ReadSegment":
        raise ConnectionFailure(Failure.LOST)
