"""Events as bytes: frames, pieces of segments, blocks that are written, routing keys."""

from collections.abc import Awaitable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at_least_once.events import BadEvent, Event
from at_least_once.frames import NotAnEvent, split
from at_least_once.reading import read_piece
from at_least_once.routing import key_position, segment_at
from at_least_once.writing import EventWriter, NoSegments, Ranges
from sluice.segmentstore import ConnectionFailure, Failure, InMemorySegmentStore, TryLater

PATIENCE_S = 5.0


def framed(event: bytes) -> bytes:
    return len(event).to_bytes(8, "big") + event


@given(st.lists(st.binary(max_size=20), max_size=8), st.integers(0, 200), st.integers(0, 10**12))
def test_whole_events_are_split_off_wherever_the_bytes_end(events: list[bytes], cut: int, offset: int) -> None:
    whole = b"".join(map(framed, events))
    data = whole[:cut]
    found, wanted = split(data, offset)
    assert [event.data for event in found] == events[: len(found)]
    end = found[-1].end if found else offset
    assert [event.start for event in found] == [offset, *(event.end for event in found)][: len(found)]
    rest = len(data) - (end - offset)
    if rest == 0:
        assert wanted == 0
    else:
        assert wanted > rest
        assert wanted == (8 if rest < 8 else len(framed(events[len(found)])))


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(NotAnEvent):
        split(b"plain text", 0)


@given(st.text(), st.integers(0), st.text(), st.text())
def test_an_event_comes_back_and_a_changed_one_is_bad(source: str, sequence: int, key: str, text: str) -> None:
    event = Event.of(source, sequence, key, text)
    assert Event.decode(event.encode()) == event
    with pytest.raises(BadEvent):
        Event.decode(Event(source, sequence, key, text + "!", event.checksum).encode())


def test_keys_are_hashed_as_other_clients_do() -> None:
    assert key_position("hello") == 0.658716230571337


@given(st.text())
def test_every_key_has_a_segment(key: str) -> None:
    ranges = [(0.25, "a"), (0.5, "b"), (1.0, "c")]
    assert 0 <= key_position(key) < 1
    assert segment_at(key_position(key), ranges) in {"a", "b", "c"}
    assert [segment_at(position, ranges) for position in (0.0, 0.25, 0.3, 0.75)] == ["a", "a", "b", "c"]


async def test_an_event_is_read_however_large_it_is() -> None:
    store = InMemorySegmentStore()
    await store.create_segment("s", 0, 0)
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


def _writer(store: InMemorySegmentStore, *ranges: Ranges) -> EventWriter:
    """A writer that is told these ranges, one after the other."""
    answers = iter(ranges)

    async def ask() -> Ranges:
        return next(answers)

    return EventWriter(store, ask, PATIENCE_S)


async def test_each_event_is_stored_once_although_answers_are_lost() -> None:
    store = InMemorySegmentStore(Troubles())
    for name in ("a", "b"):
        await store.create_segment(name, 0, 0)
    writer = _writer(store, [(0.5, "a"), (1.0, "b")])
    for number in range(2000):
        writer.add(f"key-{number % 7}", b"%d" % number)
        if number % 250 == 0:
            await writer.flush()
    await writer.flush()
    stored = [event.data for name in ("a", "b") for event in split(store.segments[name].data, 0)[0]]
    assert sorted(map(int, stored)) == list(range(2000))


async def test_events_for_a_sealed_segment_go_to_those_that_follow() -> None:
    store = InMemorySegmentStore()
    for name in ("a", "b", "c"):
        await store.create_segment(name, 0, 0)
    writer = _writer(store, [(1.0, "a")], [(1.0, "a")], [(0.5, "b"), (1.0, "c")], [])
    writer.add("hello", b"1")
    await writer.flush()
    await store.seal_segment("a")
    writer.add("hello", b"2")
    await writer.flush()
    assert split(store.segments["a"].data, 0)[0][0].data == b"1"
    assert split(store.segments["c"].data, 0)[0][0].data == b"2"
    for name in ("b", "c"):
        await store.seal_segment(name)
    writer.add("hello", b"3")
    with pytest.raises(NoSegments):
        await writer.flush()


async def test_patience_ends() -> None:
    def away(_moment: str, _request: str, _segment: str) -> Awaitable[None]:
        raise ConnectionFailure(Failure.CLOSED_BY_PEER)

    with pytest.raises(TryLater):
        await read_piece(InMemorySegmentStore(away), "s", 0, 64, patience_s=0.05)
