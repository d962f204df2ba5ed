"""Events of ordinary streams: pieces of segments, blocks that are written, routing keys."""

import asyncio
from collections.abc import Awaitable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.pravega import ConnectionFailure, Failure, InMemorySegmentStore, RouteStale, SegmentSealed, TryLater
from sluice.pravega.event_frames import MAX_EVENT_BYTES
from sluice.pravega.event_routing import key_position, segment_at
from sluice_client import EntryTooLarge, EventWriter, StreamSealed, read_piece, split_events
from sluice_client.event_writer import Ranges

PATIENCE_S = 5.0


def test_keys_are_hashed_as_other_clients_do() -> None:
    assert key_position("hello") == 0.658716230571337


@given(st.text())
def test_every_key_has_a_segment(key: str) -> None:
    ranges = [(0.25, "a"), (0.5, "b"), (1.0, "c")]
    assert 0 <= key_position(key) < 1
    assert segment_at(key_position(key), ranges) in {"a", "b", "c"}
    assert [segment_at(position, ranges) for position in (0.0, 0.25, 0.3, 0.75)] == ["a", "a", "b", "c"]


async def _store(*segments: str) -> InMemorySegmentStore:
    store = InMemorySegmentStore()
    for name in segments:
        await store.create_segment(name, 0, 0)
    return store


def _stored(store: InMemorySegmentStore, segment: str) -> list[bytes]:
    return [event.data for event in split_events(store.segments[segment].data, 0).events]


async def test_an_event_is_read_however_large_it_is() -> None:
    store = await _store("s")
    writer = _writer(store, [(1.0, "s")])
    large = bytes(5 * 1024 * 1024)
    for event in (b"small", large, b"", b"last"):
        writer.add("key", event)
    await writer.flush()
    read: list[bytes] = []
    offset = 0
    while len(read) < 4:
        piece = await read_piece(store, "s", offset, 64, PATIENCE_S)
        assert piece.events
        read += [event.data for event in piece.events]
        offset = piece.end
    assert read == [b"small", large, b"", b"last"]
    assert await read_piece(store, "s", offset, 64, PATIENCE_S) == piece.__class__("s", [], offset)
    await store.seal_segment("s")
    assert (await read_piece(store, "s", offset, 64, PATIENCE_S)).finished
    assert not (await read_piece(store, "s", 0, 64, PATIENCE_S)).finished


async def test_a_deleted_segment_is_at_its_end() -> None:
    assert (await read_piece(InMemorySegmentStore(), "s", 7, 64, PATIENCE_S)).finished


class Troubles:
    """Loses an answer or a request now and then, as a real network does."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, _moment: str, request: str, _segment: str) -> None:
        if request == "AppendBlockEnd":
            self.calls += 1
            if self.calls % 3 == 0:
                raise ConnectionFailure(Failure.LOST)


def _writer(
    store: InMemorySegmentStore, *ranges: Ranges, patience_s: float = PATIENCE_S, large_events: bool = False
) -> EventWriter:
    """A writer that is told these ranges, one after the other."""
    answers = iter(ranges)

    async def ask() -> Ranges:
        return next(answers)

    return EventWriter(store, ask, patience_s, large_events=large_events)


async def test_each_event_is_stored_once_although_answers_are_lost() -> None:
    store = await _store("a", "b")
    store.fault = Troubles()
    writer = _writer(store, [(0.5, "a"), (1.0, "b")])
    for number in range(2000):
        writer.add(f"key-{number % 7}", b"%d" % number)
        if number % 250 == 0:
            await writer.flush()
    await writer.flush()
    assert sorted(map(int, [*_stored(store, "a"), *_stored(store, "b")])) == list(range(2000))


async def test_what_waits_is_stored_when_it_is_much_and_at_the_end_of_the_block() -> None:
    store, event = await _store("a"), bytes(1024 * 1024)
    async with _writer(store, [(1.0, "a")]) as writer:
        for count in (0, 0, 0, 4, 4):
            await writer.write("hello", event)
            assert len(_stored(store, "a")) == count
    assert _stored(store, "a") == [event] * 5


async def test_a_writer_is_set_up_once_and_anew_only_after_a_failure() -> None:
    store, requests = await _store("a"), list[str]()

    def record(moment: str, request: str, _segment: str) -> None:
        if moment == "before":
            requests.append(request)
            if request == "AppendBlockEnd" and requests.count(request) == 3:
                raise ConnectionFailure(Failure.LOST)

    store.fault = record
    writer = _writer(store, [(1.0, "a")])
    for number in range(3):
        writer.add("hello", b"%d" % number)
        await writer.flush()
    assert _stored(store, "a") == [b"0", b"1", b"2"]
    assert requests == ["SetupAppend", *["AppendBlockEnd"] * 3, "SetupAppend", "AppendBlockEnd"]


async def test_an_event_that_cannot_be_stored_is_refused_and_stops_no_other() -> None:
    store = await _store("a")
    writer = _writer(store, [(1.0, "a")])
    with pytest.raises(EntryTooLarge):
        writer.add("hello", bytes(MAX_EVENT_BYTES + 1))
    writer.add("hello", bytes(MAX_EVENT_BYTES))
    await writer.flush()
    assert [len(event) for event in _stored(store, "a")] == [MAX_EVENT_BYTES]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("request_", ["CreateTransientSegment", "AppendBlockEnd", "MergeSegments"])
async def test_a_large_event_is_stored_once_and_in_its_place_although_an_answer_is_lost(
    moment: str, request_: str
) -> None:
    store, large, lost = await _store("a", "b"), bytes(2 * MAX_EVENT_BYTES + 1), list[str]()

    def lose_one(when: str, request: str, segment: str) -> None:
        if (when, request, segment == "a") == (moment, request_, request != "AppendBlockEnd") and not lost:
            lost.append(segment)
            raise ConnectionFailure(Failure.LOST)

    store.fault = lose_one
    writer = _writer(store, [(1.0, "a")], [(1.0, "b")], large_events=True)
    for event in (b"1", large, b"2", large):
        await writer.write("hello", event)
    await writer.flush()
    assert lost and _stored(store, "a") == [b"1", large, b"2", large]
    await store.seal_segment("a")
    await writer.write("hello", large)
    assert _stored(store, "b") == [large]


async def test_events_for_a_sealed_segment_go_to_those_that_follow() -> None:
    store = await _store("a", "b", "c")
    writer = _writer(store, [(1.0, "a")], [(1.0, "a")], [(0.5, "b"), (1.0, "c")], [])
    writer.add("hello", b"1")
    await writer.flush()
    await store.seal_segment("a")
    writer.add("hello", b"2")
    await writer.flush()
    assert _stored(store, "a") == [b"1"]
    assert _stored(store, "c") == [b"2"]
    for name in ("b", "c"):
        await store.seal_segment(name)
    writer.add("hello", b"3")
    with pytest.raises(StreamSealed):
        await writer.flush()


async def test_events_for_a_segment_that_is_gone_go_to_those_that_follow() -> None:
    """One that was scaled away and truncated before the writer came back to it."""
    store = await _store("a", "b")
    writer = _writer(store, [(1.0, "a")], [(1.0, "b")])
    writer.add("hello", b"1")
    await writer.flush()
    await store.delete_segment("a")
    writer.add("hello", b"2")
    await writer.flush()
    assert _stored(store, "b") == [b"2"]


async def test_what_was_stored_by_a_flush_that_failed_is_not_stored_again() -> None:
    """Events that were added since do not change the block whose answer was lost."""
    store = await _store("a")
    writer = _writer(store, [(1.0, "a")], patience_s=0.05)

    def lost(moment: str, request: str, _segment: str) -> None:
        if request == "AppendBlockEnd" and moment == "after":
            store.fault = away
            raise ConnectionFailure(Failure.LOST)

    def away(_moment: str, _request: str, _segment: str) -> None:
        raise ConnectionFailure(Failure.CONNECT_FAILED)

    store.fault = lost
    for event in (b"1", b"2", b"3"):
        writer.add("hello", event)
    with pytest.raises(RouteStale):
        await writer.flush()
    store.fault = None
    for event in (b"4", b"5"):
        writer.add("hello", event)
    await writer.flush()
    assert _stored(store, "a") == [b"1", b"2", b"3", b"4", b"5"]


async def test_a_scaling_that_does_not_end_ends_the_patience() -> None:
    store = await _store("a", "b")
    writer = _writer(store, *[[(1.0, "a")]] * 1000, patience_s=0.2)
    await store.seal_segment("a")
    writer.add("hello", b"1")
    async with asyncio.timeout(5.0):
        with pytest.raises(SegmentSealed):
            await writer.flush()
    goes_on = _writer(store, [(1.0, "a")], [(1.0, "b")], patience_s=0.2)
    goes_on.add("hello", b"1")
    await goes_on.flush()
    assert _stored(store, "b") == [b"1"]


async def test_patience_ends() -> None:
    def away(_moment: str, _request: str, _segment: str) -> Awaitable[None]:
        raise ConnectionFailure(Failure.CLOSED_BY_PEER)

    with pytest.raises(TryLater):
        await read_piece(InMemorySegmentStore(away), "s", 0, 64, patience_s=0.05)
