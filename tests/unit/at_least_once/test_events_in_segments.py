"""Events as bytes, and segments that are read side by side."""

import asyncio
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at_least_once.events import BadEvent, Event
from at_least_once.reading import Reads
from sluice.pravega import InMemorySegmentStore

PATIENCE_S = 30.0


@given(st.text(), st.integers(0), st.text(), st.text())
def test_an_event_comes_back_and_a_changed_one_is_bad(source: str, sequence: int, key: str, text: str) -> None:
    event = Event.of(source, sequence, key, text)
    assert Event.decode(event.encode()) == event
    with pytest.raises(BadEvent):
        Event.decode(Event(source, sequence, key, text + "!", event.checksum).encode())


async def _store(*segments: str) -> InMemorySegmentStore:
    store = InMemorySegmentStore()
    for name in segments:
        await store.create_segment(name, 0, 0)
    return store


async def test_a_segment_that_cannot_be_read_keeps_no_other_back() -> None:
    store, gate = await _store("a", "b"), asyncio.Event()
    for name in ("a", "b"):
        await store.append(name, UUID(int=1), name.encode())

    async def wait() -> None:
        await gate.wait()

    store.fault = lambda moment, _, segment: wait() if (moment, segment) == ("before", "a") else None
    reads = Reads(store, 64, PATIENCE_S)
    for _ in range(3):
        assert await reads.ready({"a": 0, "b": 0}) == ["b"]
        assert [event.data for event in reads.take("b").events] == [b"b"]
    gate.set()
    async with asyncio.timeout(PATIENCE_S):
        while (ready := await reads.ready({"a": 0, "b": 9})) != ["a", "b"]:
            assert ready == ["b"]
    assert [event.data for event in reads.take("a").events] == [b"a"]
    # What was ready and not taken comes before what is read now.
    assert await reads.ready({"a": 9, "b": 9}) == ["b", "a"]
    assert await reads.ready({"a": 9}) == ["a"]
    await reads.close()
