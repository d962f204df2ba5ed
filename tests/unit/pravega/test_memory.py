"""The in-memory twin: the common suite, and its faults."""

import asyncio
from uuid import UUID

import pytest
from unit.pravega.suite import SegmentStoreSuite

from sluice.pravega import ConnectionFailure, InMemorySegmentStore, TryLater
from sluice.pravega.wire.appends import AppendBlockEnd
from sluice.pravega.wire.refusals import InvalidEventNumber

NAME = "s/t/0.#epoch.0"


@pytest.fixture
def store() -> InMemorySegmentStore:
    return InMemorySegmentStore()


@pytest.fixture
def scope() -> str:
    return "scope"


class TestInMemorySegmentStore(SegmentStoreSuite):
    """The suite, over the twin."""


async def test_event_numbers_of_a_writer_rise_and_are_its_own(store: InMemorySegmentStore) -> None:
    await store.create_segment(NAME, 0, 0)
    writer = UUID(int=1)
    await store.append(NAME, writer, b"x", event_number=5)
    with pytest.raises(ConnectionFailure, match="event number 4 after 5"):
        await store.call(AppendBlockEnd(writer, 1, b"x", 1, 4, 1), 5.0)
    store.segments[NAME].attributes[writer] = 6
    assert isinstance(await store.call(AppendBlockEnd(writer, 1, b"x", 1, 7, 2), 5.0), InvalidEventNumber)
    assert store.segments[NAME].length == 9


async def test_one_writer_appends_one_event_at_a_time() -> None:
    store = InMemorySegmentStore()
    await store.create_segment(NAME, 0, 0)
    calls = (store.append(NAME, UUID(int=1), b"x") for _ in range(2))
    first, second = await asyncio.gather(*calls, return_exceptions=True)
    assert first == 9
    assert isinstance(second, TryLater)


async def test_a_merge_of_a_truncated_source_is_answered_by_closing_the_connection() -> None:
    store = InMemorySegmentStore()
    for name in (NAME, "s/t/0.#epoch.1"):
        await store.create_segment(name, 0, 0)
        await store.append(name, UUID(int=1), b"x")
    await store.truncate_segment("s/t/0.#epoch.1", 9)
    with pytest.raises(TryLater):
        await store.merge_batch(NAME, ["s/t/0.#epoch.1"])
