"""Where a journal begins: behind its newest snapshot, of this journal and of no other, even while that is trimmed."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from support import virtual_time
from support.counters import CounterModel, record
from support.snapshots import KEY, SnapshotWorld, captured, count
from support.wait import eventually_async

from sluice.engine.errors import PartitionFailedError
from sluice.engine.fold import PartitionView
from sluice.engine.journal import Journal
from sluice.engine.loading import SIDE_BY_SIDE
from sluice.engine.markers import FOLD_FORMAT
from sluice.engine.partition import partition_keys
from sluice.engine.ports import SnapshotStoreError
from sluice.engine.record import HELD, Marker
from sluice.memory.snapshots import MemorySnapshotStore

JOURNAL = "sluice.journal"
DEADLINE_S = 60.0


@pytest.fixture
async def world(request: pytest.FixtureRequest) -> AsyncIterator[SnapshotWorld]:
    world = SnapshotWorld(getattr(request, "param", 1))
    yield world
    await world.stop()


def fold_begins(journal: Journal, folded: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `folded` get the offsets that a follower folds."""
    fold = PartitionView.fold

    def recorded(view: PartitionView, record: Any, offset: int, at_ms: int) -> Any:
        if view in journal.views():
            folded.append(offset)
        return fold(view, record, offset, at_ms)

    monkeypatch.setattr(PartitionView, "fold", recorded)


async def test_a_journal_begins_behind_its_newest_snapshot(
    world: SnapshotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await world.loaded()
    await count(first, 5)
    offset = await world.snapshot(first)
    await count(first, 3)
    second, folded = world.journal(), list[int]()
    fold_begins(second, folded, monkeypatch)
    await second.loaded.wait()
    assert folded == [offset + 1, offset + 2, offset + 3]
    assert captured(second) == captured(first) and second.failure is None
    await count(second)
    assert captured(second) == captured(first)


async def test_a_journal_that_is_trimmed_behind_its_snapshot_is_loaded(world: SnapshotWorld) -> None:
    first = await world.loaded()
    await count(first, 5)
    offset = await world.snapshot(first)
    await count(first, 3)
    world.broker.trim(JOURNAL, 0, offset)
    assert captured(await world.loaded()) == captured(first)


async def test_a_trimmed_journal_without_a_snapshot_stops(world: SnapshotWorld) -> None:
    await count(await world.loaded(), 5)
    world.broker.trim(JOURNAL, 0, 3)
    journal = await world.loaded()
    assert "record at offset 3" in (journal.failure or "")


@pytest.mark.parametrize("world", [1, 3], indirect=True)
async def test_a_journal_that_was_made_anew_stops(world: SnapshotWorld) -> None:
    first = await world.loaded()
    await count(first, 5)
    offset = await world.snapshot(first)
    await first.stop()
    world.broker.recreate(JOURNAL)
    second = await world.loaded()
    lost = f"partition 0: it has lost its end: it had a record at offset {offset}, and goes on at 0"
    assert second.failure == f"{lost}; a confirmed snapshot was made there"
    with pytest.raises(PartitionFailedError, match="lost its end"):
        await second.barrier([0])


async def test_a_journal_that_lost_its_end_and_grew_stops(world: SnapshotWorld) -> None:
    """Another record stands where a confirmed snapshot has its marker."""
    first = await world.loaded()
    await count(first, 5)
    good = await world.snapshot(first)
    await count(first, 5)
    offset = await world.snapshot(first)
    await first.stop()
    world.broker.lose_end(JOURNAL, 0, good + 2)
    for _ in range(20):
        world.broker.land_in(JOURNAL, 0, KEY, CounterModel().encode(record()))
    journal = await world.loaded()
    assert (
        journal.failure
        == f"partition 0: it has lost its end: it had a record at offset {offset}, and goes on at {offset}"
    )


async def test_a_follower_that_runs_stops_where_the_journal_lost_its_end(world: SnapshotWorld) -> None:
    journal = await world.loaded()
    await count(journal, 5)
    world.broker.lose_end(JOURNAL, 0, 3)
    await eventually_async(lambda: journal.failure, DEADLINE_S, "it sees that records are gone")
    assert journal.failure == "partition 0: it has lost its end: it had a record at offset 4, and goes on at 0"
    assert not journal.overtaken.is_set(), "begun anew, it would know of nothing"


async def test_a_snapshot_that_none_has_confirmed_says_nothing_of_the_journal(world: SnapshotWorld) -> None:
    first = await world.loaded()
    await count(first, 5)
    await world.help(await first.append_marker(0))
    await first.stop()
    world.broker.recreate(JOURNAL)
    journal = await world.loaded()
    assert journal.failure is None and journal.views()[0].next_offset == 0


async def test_a_journal_trimmed_while_it_is_loaded_is_loaded_from_a_newer_snapshot(
    world: SnapshotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await world.loaded()
    await count(first, 5)
    await world.snapshot(first)
    notes, looked = MemorySnapshotStore.notes, list[int]()

    async def trimmed_behind(store: MemorySnapshotStore, partitions: Sequence[int]) -> Any:
        """Once the newest snapshot was looked for, there is a newer one, and the journal begins with it."""
        found = await notes(store, partitions)
        if store is not world.store and not looked:
            looked.append(1)
            await count(first, 5)
            world.broker.trim(JOURNAL, 0, await world.snapshot(first))
        return found

    monkeypatch.setattr(MemorySnapshotStore, "notes", trimmed_behind)
    second = await world.loaded()
    assert looked and captured(second) == captured(first) and second.failure is None


async def test_a_journal_trimmed_before_a_follower_that_runs_stops_it(world: SnapshotWorld) -> None:
    first, second = await world.loaded(), await world.loaded()
    world.logs[second].freeze()
    await count(first, 5)
    world.broker.trim(JOURNAL, 0, await world.snapshot(first))
    world.logs[second].thaw()
    await eventually_async(lambda: second.failure, DEADLINE_S, "it sees what is missing")
    assert "MissingRecordsError" in (second.failure or "")


async def test_a_store_that_is_away_is_waited_for(world: SnapshotWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await world.loaded()
    await count(first, 5)
    await world.snapshot(first)
    notes, failures = MemorySnapshotStore.notes, [SnapshotStoreError("away")] * 3

    async def failing(store: MemorySnapshotStore, partitions: Sequence[int]) -> Any:
        if failures:
            raise failures.pop()
        return await notes(store, partitions)

    monkeypatch.setattr(MemorySnapshotStore, "notes", failing)
    assert captured(await world.loaded()) == captured(first) and not failures


def test_a_load_that_fails_leaves_no_other_running(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        world = SnapshotWorld(partitions=2 * SIDE_BY_SIDE)
        first = await world.loaded()
        for partition, key in enumerate(partition_keys(first.partitions)):
            await count(first, key=key)
            marker = await first.append_marker(partition)
            for by in ("helper/a", "helper/b"):
                await world.help(marker, by, partition=partition)
        chunks, failures, running = MemorySnapshotStore.chunks, [SnapshotStoreError("away")] * 3, [0, 0]

        async def slow(store: MemorySnapshotStore, partition: int, begin: int, last: int) -> Any:
            if partition == 0 and failures:
                raise failures.pop()
            running[:] = running[0] + 1, max(running[1], running[0] + 1)
            await asyncio.sleep(60)
            running[0] -= 1
            return await chunks(store, partition, begin, last)

        monkeypatch.setattr(MemorySnapshotStore, "chunks", slow)
        assert captured(await world.loaded()) == captured(first) and not failures
        assert running == [0, SIDE_BY_SIDE]
        await world.stop()

    virtual_time.run(scene())


async def test_what_a_journal_cannot_be_loaded_for_shows(world: SnapshotWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(_store: MemorySnapshotStore, _partitions: Sequence[int]) -> Any:
        raise ValueError("no such thing")

    monkeypatch.setattr(MemorySnapshotStore, "notes", failing)
    journal = world.journal()
    await asyncio.sleep(1)
    assert not journal.loaded.is_set() and "no such thing" in (journal.failure or "")


async def test_a_journal_is_not_loaded_before_each_partition_has_all_of_a_restore() -> None:
    world = SnapshotWorld(2)
    model, keys = CounterModel(), partition_keys(2)

    def write(partition: int, id: str, whole_at: int = 0) -> None:
        value = model.encode(record(id=id, whole_at=whole_at))
        world.broker.land_in(JOURNAL, partition, keys[partition], value)

    async def waits_for(partitions: str) -> None:
        problem = f"a restore is not complete: partitions {partitions} lack records"
        await eventually_async(lambda: journal.loading == problem, DEADLINE_S, problem)

    try:
        write(0, "first", whole_at=2)
        journal = world.journal()
        await waits_for("0, 1")
        write(0, "second")
        await waits_for("1")
        write(1, "first", whole_at=2)
        await journal.barrier([1])
        await waits_for("1")
        write(1, "second")
        await journal.loaded.wait()
        assert journal.loading is None
    finally:
        await world.stop()


async def test_a_held_journal_is_caught_up_but_not_loaded_before_each_partition_is_released() -> None:
    world = SnapshotWorld(2)
    model, keys = CounterModel(), partition_keys(2)

    def write(partition: int, id: str, whole_at: int) -> None:
        value = model.encode(record(id=id, whole_at=whole_at))
        world.broker.land_in(JOURNAL, partition, keys[partition], value)

    try:
        for partition in range(2):
            write(partition, f"held-{partition}", HELD)
        journal = world.journal()
        await journal.caught_up.wait()
        assert not journal.loaded.is_set() and "held" in (journal.loading or "")
        write(0, "released-0", 1)
        await journal.barrier([0])
        assert not journal.loaded.is_set() and "held" in (journal.loading or "")
        write(1, "released-1", 1)
        await journal.loaded.wait()
        assert journal.loading is None
    finally:
        await world.stop()


# Markers.


class Miscounts(CounterModel):
    """Forgets a counter when it is dropped, although others do so later: its version begins anew."""

    def project(self, projections: dict[str, Any], event: Any, state: Any, offset: int) -> Any:
        super().project(projections, event, state, offset)
        return [event.aggregate]


async def test_followers_that_judge_alike_agree_at_each_marker(world: SnapshotWorld) -> None:
    one, other = await world.loaded(), await world.loaded()
    for journal in (one, other, one):
        await count(journal, 3)
        await journal.append_marker(0)
        await other.barrier([0])
        await one.barrier([0])
    assert one.difference is other.difference is None


async def test_a_follower_that_judges_otherwise_finds_it_at_the_next_marker_but_one(world: SnapshotWorld) -> None:
    one = await world.loaded("a/1")
    await count(one)
    first = await one.append_marker(0)
    broken = world.journal("a/2", Miscounts())
    await broken.loaded.wait()
    await count(one, 3)
    second = await one.append_marker(0)
    await broken.barrier([0])
    assert broken.difference is None
    await one.append_marker(0)
    await broken.barrier([0])
    assert f"a/1 judged a record differently, behind offset {first} and up to the marker at {second}" in str(
        broken.difference
    )


async def test_a_difference_ends_when_a_marker_agrees(world: SnapshotWorld) -> None:
    """What was broken is replaced; those who were right before are ready once the next one agrees."""
    right = await world.loaded("a/1")
    broken = world.journal("a/2", Miscounts())
    await broken.loaded.wait()
    await count(right, 3)
    await broken.append_marker(0)
    await broken.append_marker(0)
    await right.barrier([0])
    assert right.difference is not None
    await broken.stop()
    replaced = await world.loaded("a/3")
    await replaced.append_marker(0)
    await right.barrier([0])
    assert right.difference is None


async def test_a_loaded_follower_compares_from_the_marker_of_its_snapshot_on(world: SnapshotWorld) -> None:
    first = await world.loaded("a/1")
    await count(first, 3)
    offset = await world.snapshot(first)
    second = await world.loaded("a/2")
    assert second.markers[0].last == offset
    await count(first, 2, KEY)
    await first.append_marker(0)
    await second.barrier([0])
    assert second.difference is None and second.markers[0].agreed == offset


async def test_followers_of_other_formats_do_not_compare(world: SnapshotWorld) -> None:
    journal = await world.loaded("a/1")
    await count(journal, 3)
    offset = await journal.append_marker(0)
    for format, differs in ((FOLD_FORMAT + 1, False), (FOLD_FORMAT, True)):
        marker = record(id=f"other-{format}", marker=Marker(format, offset, "0" * 16))
        world.broker.land(JOURNAL, KEY, CounterModel().encode(marker))
        await journal.barrier([0])
        assert (journal.difference is not None) is differs
