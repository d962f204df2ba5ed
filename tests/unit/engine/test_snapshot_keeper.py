"""When markers are due, whose helper does what, and how far the journal and the store are trimmed."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest
from support import virtual_time
from support.snapshots import Adds, SnapshotWorld, count
from support.wait import eventually_async

from sluice.engine import snapshot_keeper
from sluice.engine.journal import Journal
from sluice.engine.partition import partition_keys
from sluice.engine.ports import SnapshotStoreError
from sluice.engine.snapshot_keeper import (
    CONFIRMED_WITHIN_S,
    HELD_S,
    RETRY_S,
    HelperFailedError,
    SnapshotKeeper,
    SnapshotRules,
)
from sluice.memory.broker import MemoryMessage
from sluice.memory.snapshots import CHUNKS, NOTES

JOURNAL = "sluice.journal"
DEADLINE_S = 60.0
RULES = SnapshotRules(records=10, min_records=3, interval_ms=60_000, keep_ms=-60_000)
"""What was appended a moment ago may be trimmed, too."""


class Instance:
    """An instance of the service that keeps snapshots; `helped` has the offsets that its helper was started for."""

    def __init__(self, world: "KeptWorld", journal: Journal, rules: SnapshotRules) -> None:
        self.journal = journal
        self.is_active = True
        self.helped: list[int] = []
        self.failing = ""
        self.archived: Mapping[int, int] = {0: 1_000_000}
        self._world = world
        self.keeper = SnapshotKeeper(
            journal,
            world.store,
            rules,
            lambda: self.is_active,
            lambda: [instance.journal.source for instance in world.instances],
            self._help,
            self._trimmable,
        )

    async def _help(self, _partition: int, offset: int) -> None:
        self.helped.append(offset)
        if self.failing:
            raise HelperFailedError(self.failing)
        await self._world.help(offset, self.journal.source)

    async def _trimmable(self) -> Mapping[int, int]:
        return self.archived


class KeptWorld(SnapshotWorld):
    def __init__(self, partitions: int = 1) -> None:
        super().__init__(partitions)
        self.instances: list[Instance] = []

    async def instance(self, rules: SnapshotRules = RULES) -> Instance:
        made = Instance(self, await self.loaded(f"keeper/{len(self.instances)}"), rules)
        self.instances.append(made)
        return made

    @property
    def begin(self) -> int:
        return self.broker.begin(JOURNAL, 0)


@pytest.fixture
async def world() -> AsyncIterator[KeptWorld]:
    world = KeptWorld()
    yield world
    await world.stop()


async def confirmed(one: Instance) -> int:
    """Have one more snapshot written and confirmed: its offset."""
    await count(one.journal, RULES.records)
    await one.keeper.look()
    await one.keeper.look()
    return one.helped[-1]


async def test_alone_it_writes_and_confirms_by_a_second_run(world: KeptWorld) -> None:
    one = await world.instance()
    await count(one.journal, RULES.records)
    await one.keeper.look()
    assert one.helped == [10] and not (await world.snapshots())[0].is_confirmed
    await one.keeper.look()
    assert one.helped == [10, 10] and (await world.snapshots())[0].is_confirmed
    await one.keeper.look()
    assert one.helped == [10, 10]


def test_a_few_new_records_are_due_once_the_last_marker_is_old() -> None:
    async def scene() -> None:
        world = KeptWorld()
        one = await world.instance()
        await confirmed(one)
        await count(one.journal, RULES.min_records)
        await one.keeper.look()
        assert len(one.helped) == 2
        await asyncio.sleep(RULES.interval_ms / 1000)
        await one.keeper.look()
        assert len(one.helped) == 3
        await one.keeper.look()
        await asyncio.sleep(RULES.interval_ms / 1000)
        await count(one.journal, RULES.min_records - 1)
        await one.keeper.look()
        assert len(one.helped) == 4
        await world.stop()

    virtual_time.run(scene())


async def test_another_instance_confirms(world: KeptWorld) -> None:
    active, other, third = [await world.instance() for _ in range(3)]
    other.is_active = third.is_active = False
    await count(active.journal, RULES.records)
    for one in (third, other, active):
        await one.keeper.look()
    assert (active.helped, other.helped, third.helped) == ([10], [], [])
    for one in (third, active, other):
        await one.keeper.look()
    assert (active.helped, other.helped, third.helped) == ([10], [10], [])
    (snapshot,) = await world.snapshots()
    assert [c.by for c in snapshot.confirmations] == ["keeper/1"]


def test_the_active_one_confirms_itself_what_another_does_not() -> None:
    async def scene() -> None:
        world = KeptWorld()
        active, other = await world.instance(), await world.instance()
        other.is_active, other.failing = False, "out of memory"
        await count(active.journal, RULES.records)
        for _ in range(3):
            await active.keeper.look()
            await other.keeper.look()
        assert active.helped == [10] and not (await world.snapshots())[0].is_confirmed
        await asyncio.sleep(CONFIRMED_WITHIN_S)
        await active.keeper.look()
        assert active.helped == [10, 10] and (await world.snapshots())[0].is_confirmed
        await world.stop()

    virtual_time.run(scene())


async def test_the_next_active_one_goes_on_with_a_marker_that_has_no_snapshot(world: KeptWorld) -> None:
    first = await world.instance()
    first.failing = "it was killed"
    await count(first.journal, RULES.records)
    await first.keeper.look()
    assert first.helped == [10] and first.keeper.failure == "partition 0: it was killed"
    world.instances.clear()
    second = await world.instance()
    await second.keeper.look()
    assert second.helped == [10] and len(await world.snapshots()) == 1


def test_a_partition_whose_helper_failed_is_left_alone_for_a_while() -> None:
    async def scene() -> None:
        world = KeptWorld()
        one = await world.instance()
        one.failing = "away"
        await count(one.journal, RULES.records)
        await one.keeper.look()
        await one.keeper.look()
        assert one.helped == [10]
        one.failing = ""
        await asyncio.sleep(RETRY_S + 1)
        await one.keeper.look()
        assert one.helped == [10, 10] and one.keeper.failure is None
        await world.stop()

    virtual_time.run(scene())


async def test_a_partition_that_has_stopped_does_not_hold_up_the_others() -> None:
    world = KeptWorld(partitions=2)
    one = await world.instance()
    stopped, other = partition_keys(2)
    for key in (stopped, other):
        await count(one.journal, RULES.records, key)
    world.broker.land(JOURNAL, stopped, b"no record")
    await eventually_async(lambda: one.journal.failure, DEADLINE_S, "the partition has stopped")
    one.failing = "away"
    await one.keeper.look()
    assert one.helped == [10] and sorted(one.keeper.failures) == [0, 1]
    assert "cannot be applied" in one.keeper.failures[0]
    await world.stop()


def test_a_partition_that_takes_no_records_does_not_hold_up_the_others() -> None:
    async def scene() -> None:
        world = KeptWorld(partitions=2)
        one = await world.instance()
        for key in partition_keys(2):
            await count(one.journal, RULES.records, key)
        world.broker.unwritable.add((JOURNAL, 0))
        one.failing = "away"
        await one.keeper.look()
        assert one.helped == [10] and sorted(one.keeper.failures) == [0, 1]
        await world.stop()

    virtual_time.run(scene())


async def test_a_difference_shows_until_a_newer_snapshot_agrees(world: KeptWorld) -> None:
    active, other = await world.instance(), await world.instance()
    other.is_active = False
    await count(active.journal, RULES.records)
    await active.keeper.look()
    await world.help(10, other.journal.source, Adds)
    await active.keeper.look()
    await other.keeper.look()
    for one in (active, other):
        assert "by keeper/0 and the second run by keeper/1 differ; first: aggregate k has another value" in str(
            one.keeper.difference
        )
    assert active.helped == [10] and other.helped == []
    await count(active.journal, RULES.records)
    await active.keeper.look()
    await other.keeper.look()
    await active.keeper.look()
    assert active.keeper.difference is other.keeper.difference is None


async def test_the_journal_is_trimmed_behind_the_second_newest_confirmed_snapshot(world: KeptWorld) -> None:
    one = await world.instance()
    first = await confirmed(one)
    assert world.begin == 0
    second = await confirmed(one)
    assert world.begin == first
    await confirmed(one)
    assert world.begin == second
    await count(one.journal, RULES.records)
    await one.keeper.look()
    assert world.begin == second


async def test_snapshots_that_cannot_be_removed_keep_no_journal_from_being_trimmed(
    world: KeptWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: int) -> None:
        raise SnapshotStoreError("its leader is away")

    one = await world.instance()
    with monkeypatch.context() as away:
        away.setattr(world.store, "trim", fail)
        behind = [await confirmed(one) for _ in range(5)]
    assert world.begin == behind[3] and world.broker.begin(NOTES, 0) == 0
    await confirmed(one)
    assert world.broker.begin(NOTES, 0) > 0


async def test_of_a_journal_that_was_made_anew_all_snapshots_stay(world: KeptWorld) -> None:
    before = await world.instance()
    for _ in range(3):
        await confirmed(before)
    await before.journal.stop()
    world.instances.clear()
    world.broker.recreate(JOURNAL)
    stored = await world.snapshots()
    one = await world.instance()
    assert "lost its end" in (one.journal.failure or "")
    await one.keeper.look()
    assert await world.snapshots() == stored and world.begin == 0


async def test_nothing_is_trimmed_that_is_not_archived(world: KeptWorld) -> None:
    one = await world.instance()
    one.archived = {0: 4}
    for _ in range(3):
        await confirmed(one)
    assert world.begin == 4
    one.archived = {}
    await confirmed(one)
    assert world.begin == 4


def test_what_holds_trimming_up_is_said_once_it_stands_still() -> None:
    async def scene() -> None:
        world = KeptWorld()
        one = await world.instance()
        one.archived = {0: 4}
        for _ in range(2):
            await confirmed(one)
        assert one.keeper.held == {}, "it may only lag"
        await asyncio.sleep(HELD_S)
        assert one.keeper.held == {0: 4}
        one.archived = {0: 5}
        await one.keeper.look()
        assert one.keeper.held == {} and world.begin == 5, "it gets on"
        await asyncio.sleep(HELD_S)
        one.archived = {0: 1_000_000}
        await one.keeper.look()
        assert one.keeper.held == {}
        await world.stop()

    virtual_time.run(scene())


def test_nothing_is_trimmed_that_is_younger_than_the_set_age() -> None:
    async def scene() -> None:
        world = KeptWorld()
        one = await world.instance(SnapshotRules(records=10, min_records=3, interval_ms=60_000, keep_ms=1_000_000))
        await confirmed(one)
        await asyncio.sleep(600)
        await confirmed(one)
        await confirmed(one)
        assert world.begin == 0
        await asyncio.sleep(600)
        await one.keeper.look()
        assert world.begin == one.helped[1] + 1
        await world.stop()

    virtual_time.run(scene())


async def test_the_store_has_the_three_newest_snapshots(world: KeptWorld) -> None:
    one = await world.instance()
    offsets = [await confirmed(one) for _ in range(6)]
    assert [s.manifest.offset for s in await world.snapshots()] == offsets[-3:]
    kept = (await world.snapshots())[0].manifest
    assert world.broker.begin(CHUNKS, 0) == kept.first_chunk and world.broker.begin(NOTES, 0) > 0


async def test_confirmed_snapshots_outlive_newer_ones_that_are_not(world: KeptWorld) -> None:
    one = await world.instance()
    offsets = [await confirmed(one) for _ in range(3)]
    for _ in range(4):
        await count(one.journal, RULES.records)
        offset = await one.journal.append_marker(0)
        await world.help(offset, "x")
        await world.help(offset, "y", Adds)
        await one.keeper.look()
    assert [s.manifest.offset for s in await world.snapshots() if s.is_confirmed] == offsets[-2:]
    assert world.begin == offsets[-2]


async def test_an_instance_that_is_not_active_appends_and_trims_nothing(world: KeptWorld) -> None:
    one = await world.instance()
    one.is_active = False
    await count(one.journal, 3 * RULES.records)
    await one.keeper.look()
    assert one.helped == [] and one.journal.markers[0].last == -1


async def test_a_snapshot_of_another_format_is_kept_as_long_as_the_journal_has_what_follows(world: KeptWorld) -> None:
    """So the release before can come back."""
    one = await world.instance()
    first = await confirmed(one)
    for number, note in enumerate(world.broker.log(NOTES, 0)[:]):
        other = note.value().replace(b'"format":1', b'"format":7')
        world.broker.log(NOTES, 0)[number] = MemoryMessage(NOTES, 0, number, "0", other)

    async def offsets() -> list[int]:
        return [s.manifest.offset for s in await world.snapshots()]

    one.archived = {}
    later = [await confirmed(one) for _ in range(5)]
    assert await offsets() == [first, *later]
    one.archived = {0: 1_000_000}
    await one.keeper.look()
    await one.keeper.look()
    assert world.begin == later[-2] and await offsets() == later[-3:]


async def test_not_many_snapshots_are_kept_for_one_of_another_format(
    world: KeptWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_keeper, "KEPT_BESIDE_OTHERS", 4)
    one = await world.instance()
    await confirmed(one)
    note = world.broker.log(NOTES, 0)[0]
    other = note.value().replace(b'"format":1', b'"format":7')
    world.broker.log(NOTES, 0)[0] = MemoryMessage(NOTES, 0, 0, "0", other)
    one.archived = {}
    later = [await confirmed(one) for _ in range(5)]
    assert [s.manifest.offset for s in await world.snapshots()] == later[-3:]


def test_it_says_why_all_snapshots_wait() -> None:
    async def scene() -> None:
        world = KeptWorld()
        one = await world.instance()
        running = asyncio.create_task(one.keeper.run())
        world.broker.go_away(60)
        await eventually_async(lambda: one.keeper.failure == "all wait: the broker is away", DEADLINE_S, "it is said")
        await eventually_async(lambda: one.keeper.failure is None, 60 + DEADLINE_S, "it goes on")
        running.cancel()
        await world.stop()

    virtual_time.run(scene())
