"""Events in segments: segment-store-wire-protocol 2.1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.pravega.event_frames import (
    HEADER_BYTES,
    EventSplitter,
    MalformedEvents,
    SplitEvents,
    StoredEvent,
    find_event,
    frame_event,
    split_events,
)

MALFORMED = [b"\x00\x00\x00\x01\x00\x00\x00\x01x", b"\x00\x00\x00\x00\xff\xff\xff\xff", b"12345678"]

some_events = st.lists(st.binary(max_size=20), max_size=8)


def framed(*events: bytes) -> bytes:
    return b"".join(map(frame_event, events))


def test_a_frame_is_type_0_length_and_event() -> None:
    assert frame_event(b"hello") == bytes.fromhex("00000000 00000005") + b"hello"
    assert frame_event(b"") == bytes(HEADER_BYTES)


@given(some_events, st.integers(0, 200), st.integers(0, 10**12))
def test_whole_events_are_split_off_wherever_the_bytes_end(events: list[bytes], cut: int, offset: int) -> None:
    data = framed(*events)[:cut]
    found = split_events(data, offset)
    whole = [event.data for event in found.events]
    assert whole == events[: len(whole)] and found.end == offset + len(framed(*whole))
    assert [event.start for event in found.events] == [offset, *(event.end for event in found.events)][: len(whole)]
    rest = len(data) - (found.end - offset)
    if rest == 0:
        assert found.next_bytes == 0
    elif rest < HEADER_BYTES:
        assert found.next_bytes == HEADER_BYTES
    else:
        assert found.next_bytes == len(framed(events[len(whole)])) > rest


@pytest.mark.parametrize("garbage", MALFORMED)
def test_bytes_that_begin_no_event_are_malformed_at_their_offset(garbage: bytes) -> None:
    found = split_events(framed(b"a") + garbage, 100)
    assert found == SplitEvents([StoredEvent(b"a", 100, 109)], 109, HEADER_BYTES)
    with pytest.raises(MalformedEvents) as error:
        split_events(garbage, 109)
    assert error.value.offset == 109


def test_an_event_that_is_too_large_is_malformed_before_all_of_it_is_there() -> None:
    assert split_events(framed(b"123"), 0, max_event_bytes=3).events == [StoredEvent(b"123", 0, 11)]
    with pytest.raises(MalformedEvents, match="event of 4 bytes at 7"):
        split_events(framed(b"1234")[:HEADER_BYTES], 7, max_event_bytes=3)
    assert split_events(framed(bytes(9_000_000))[:HEADER_BYTES], 0).next_bytes == 9_000_008, "no limit of its own"


words = st.text("abc", min_size=1, max_size=20).map(str.encode)


@given(st.lists(words, max_size=8), st.integers(0, 200))
def test_an_event_is_found_behind_the_first_whole_one_wherever_the_bytes_begin(events: list[bytes], cut: int) -> None:
    whole = [event.start for event in split_events(framed(*events), 0).events if event.start >= cut]
    found = find_event(framed(*events)[cut:])
    assert found == (whole[1] - cut if len(whole) > 1 else None)


def test_an_event_that_holds_events_is_found_as_a_whole() -> None:
    outer = framed(framed(b"one", b"two", b"three"))
    rest = b"rest of an event"
    assert find_event(rest + framed(b"a") + outer) == len(rest + framed(b"a"))
    assert find_event(rest + outer) is None, "nor are those within it events"


@pytest.mark.parametrize("size", [1, 7, 256, 994])
def test_zeros_are_no_events(size: int) -> None:
    data = framed(bytes(size), bytes(size), b"a", b"b")
    starts = {event.start for event in split_events(data, 0).events}
    for cut in range(HEADER_BYTES, size + HEADER_BYTES):
        found = find_event(data[cut:])
        assert found is not None and found + cut in starts
    # Time in proportion to the square of the bytes would be hours.
    assert find_event(bytes(2**18)) is find_event(bytes(2**18) + b"a") is None


@pytest.mark.parametrize(
    "data", [b"", b"no frames at all" * 9, framed(b"a", b"b") + b"raw", framed(b"a", b"b")[:-1], bytes(8)]
)
def test_bytes_that_do_not_end_with_two_events_tell_of_none(data: bytes) -> None:
    assert find_event(data) is None


@given(some_events, st.lists(st.integers(1, 30)), st.integers(0, 10**12))
def test_a_splitter_finds_all_events_in_pieces_of_any_size(events: list[bytes], sizes: list[int], start: int) -> None:
    data, splitter, found, at = framed(*events), EventSplitter(start), list[StoredEvent](), 0
    for size in [*sizes, len(data)]:
        for whole in splitter.feed(data[at : at + size]):
            found += whole.events
        at = min(at + size, len(data))
        assert splitter.offset + splitter.pending_bytes == start + at
    assert found == split_events(data, start).events and splitter.pending_bytes == 0


@pytest.mark.parametrize("garbage", MALFORMED)
def test_a_splitter_gives_the_events_before_it_raises(garbage: bytes) -> None:
    found = EventSplitter(100).feed(framed(b"a") + garbage)
    assert next(found).events == [StoredEvent(b"a", 100, 109)]
    with pytest.raises(MalformedEvents, match="at 109"):
        next(found)
