"""A system that is restored from a back-up finds out what its segment stores have carried out since, in memory.

A writer puts numbered events of 16 keys into the segments that hold the keys. A reader that is restored with the system
reads everything from the head on, in any order that the successors allow.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

import pytest
from support.backups import NOW, back_up
from support.memory_world import MemoryWorld, settle, until

from sluice.backup.files import read_manifest
from sluice.backup.restoring import restoration
from sluice.backup.states import read_states
from sluice.backup.target import Folder
from sluice.domain.commands import Command
from sluice.domain.config import ScalingPolicy, StreamConfig, TableConfig
from sluice.domain.decision import Reply
from sluice.domain.errors import StreamRestoringError
from sluice.domain.ids import StreamId, TableId
from sluice.domain.model import encode_record
from sluice.domain.restoring.base import base_at
from sluice.domain.scope.events import ScopeCreated
from sluice.domain.segment import Segment, epoch_of, kvt_segment_name, number_of, segment_id, segment_name
from sluice.domain.stream.commands import CreateStream, ScaleStream, SealStream, TruncateStream
from sluice.domain.stream.events import StreamEpochsRolled, StreamRolled
from sluice.domain.stream.queries import head, successors_with_predecessors
from sluice.domain.stream.restore import MAX_NUMBERS_APART, check_restored
from sluice.domain.stream.scale import equal_ranges
from sluice.domain.stream.state import Stream, StreamState, find_stream
from sluice.domain.table.commands import CreateTable, DeleteTable
from sluice.domain.table.state import Table, current_segments, find_table
from sluice.kafka.topics import JOURNAL
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import InMemorySegmentStore, Moment
from sluice.pravega.wire.fields import TableEntry, TableKey
from stream_workflows.service import WorkflowService
from stream_workflows.settings import WorkflowSettings

ST = StreamId("sc", "st")
KEYS = [(i + 0.5) / 16 for i in range(16)]
CONFIG = StreamConfig(ScalingPolicy(min_segments=1))


class System(MemoryWorld):
    """stream-workflows on a journal of its own, and segment stores that may have served another one before."""

    def __init__(self, partitions: int = 4, store: InMemorySegmentStore | None = None) -> None:
        super().__init__(partitions=partitions, store=store)
        settings = WorkflowSettings(partitions=partitions)
        self.consumer = WorkflowService(self.first.runtime, settings, self.store).consumer
        self._requests = 0

    async def start(self) -> None:
        self.consumer.start()
        await until(lambda: bool(self.consumer.partitions))
        await settle()

    @property
    def stream(self) -> Stream:
        found = find_stream(self.view(ST.key), ST)
        assert found is not None
        return found

    def table(self, id: TableId) -> Table:
        found = find_table(self.view(id.key), id)
        assert found is not None
        return found

    async def ask_for(self, command: Command) -> Reply:
        self._requests += 1
        id = f"r{self._requests}"
        reply = self.first.journal.expect_reply(id, (command.key,))
        self.request(id, command)
        answered = cast(Reply, await asyncio.wait_for(reply, 600))
        await until(lambda: self.stream.workflow is None)
        return answered

    async def scale(self, seals: Iterable[Segment], ranges: Iterable[tuple[float, float]]) -> None:
        command = ScaleStream(*ST, seals=tuple(s.id for s in seals), ranges=tuple(ranges), at=self.now_ms)
        assert (await self.ask_for(command)).status == "STARTED"

    async def split(self, at: int = 0) -> None:
        one = self.stream.active_segments()[at]
        middle = (one.low + one.high) / 2
        await self.scale([one], [(one.low, middle), (middle, one.high)])

    async def merge(self) -> None:
        two = self.stream.active_segments()[:2]
        await self.scale(two, [(two[0].low, two[1].high)])

    async def roll(self) -> None:
        """What a commit of an old transaction does to the segments of epoch 0."""
        stream = self.stream
        first, number = stream.history.epoch(0), stream.next_epoch
        copies = [
            segment_id(number + i, number_of(s))
            for i, of in enumerate((first, stream.active_epoch))
            for s in of.segments
        ]
        for s in copies:
            await self.store.create_segment(name(s), 0, 0)
        for s in (*stream.active_epoch.segments, *(s for s in copies if s >> 32 == number)):
            await self.store.seal_segment(name(s))
        rolled = StreamEpochsRolled(*ST, duplicates=0, created_at=self.now_ms + 1, sealed_sizes={})
        await self.seed(ST.key, rolled)
        await self.seed(ST.key, StreamRolled(*ST, sealed_sizes={}))


def name(segment: int) -> str:
    return segment_name(*ST, segment)


def segment_of(table: TableId) -> str:
    return kvt_segment_name(*table, 0)


class Writer:
    """Writes an event of each key; `written` counts them."""

    def __init__(self, system: System) -> None:
        self.written = 0
        self.system = system

    def write(self) -> None:
        self.written += 1
        for key in KEYS:
            active = self.system.stream.active_segments()
            (segment,) = (s.id for s in active if s.low <= key < s.high)
            found = self.system.store.segments[name(segment)]
            assert not found.sealed
            found.data += f"{key}:{self.written};".encode()


def read(system: System, chance: random.Random) -> dict[float, list[int]]:
    """The numbers of the events of each key, in the order of a reader that takes whatever it may read next."""
    stream, found = system.stream, defaultdict[float, list[int]](list)
    waiting: dict[int, set[int]] = {s: set() for s in head(stream)}
    done: set[int] = set()
    while ready := [s for s, before in waiting.items() if not before - done and s not in done]:
        segment = chance.choice(sorted(ready))
        data = system.store.segments[name(segment)].data.decode()
        for event in data.split(";")[:-1]:
            key, number = event.split(":")
            found[float(key)].append(int(number))
        done.add(segment)
        for successor, before in successors_with_predecessors(stream, segment):
            waiting.setdefault(successor.id, set(before))
        del waiting[segment]
    assert not waiting
    assert set(stream.active_epoch.segments) <= done
    return found


@pytest.fixture
async def before(tmp_path: Path) -> System:
    system = System()
    await system.seed("sc", ScopeCreated("sc", creation_id="c", at=0))
    await system.start()
    await system.ask_for(CreateStream(*ST, CONFIG))
    return system


def backed_up(system: System, tmp_path: Path) -> Folder:
    return back_up(tmp_path / "b", list(system.first.journal.views()))


async def restored(
    system: System, target: Folder, partitions: int = 8, now: int = NOW, earlier: Sequence[int] = ()
) -> System:
    """Another journal, from the back-up, on the same segment stores."""
    return await found_out(await brought(system, target, partitions, now, earlier))


async def brought(
    system: System, target: Folder, partitions: int = 8, now: int = NOW, earlier: Sequence[int] = ()
) -> System:
    """The same, before anything is found out."""
    found = System(partitions, system.store)
    made = restoration(read_states(target, read_manifest(target)), partitions, now, "test", earlier)
    for one in made.records:
        found.broker.land_in(JOURNAL.name, one.partition, one.key, encode_record(one.record))
    await settle()
    with pytest.raises(StreamRestoringError):
        check_restored(found.stream)
    return found


async def found_out(system: System) -> System:
    await system.start()
    await until(lambda: system.stream.state is not StreamState.RESTORING)
    return system


def assert_all_is_read(system: System, written: int) -> None:
    for seed in range(10):
        found = read(system, random.Random(seed))
        assert found == {key: list(range(1, written + 1)) for key in KEYS}, seed


async def assert_goes_on(system: System, writer: Writer) -> None:
    """Writers go on, and what comes has names that were never given out."""
    names = set(system.store.segments)
    writer.system = system
    writer.write()
    await system.split()
    writer.write()
    await system.merge()
    writer.write()
    assert len(set(system.store.segments) - names) == 3
    assert_all_is_read(system, writer.written)


async def assert_comes_back_whole(system: System, writer: Writer) -> None:
    assert_all_is_read(system, writer.written)
    await assert_goes_on(system, writer)


async def test_a_stream_that_was_only_written_to_goes_on_in_its_segments(before: System, tmp_path: Path) -> None:
    writer = Writer(before)
    writer.write()
    target = backed_up(before, tmp_path)
    writer.write()
    after = await restored(before, target)
    assert after.stream.active_epoch.segments == (0,) and after.stream.state is StreamState.ACTIVE
    assert list(after.stream.history.numbers(0, after.stream.active)) == [0, base_at(NOW, 0)]
    await assert_goes_on(after, writer)


async def test_a_stream_that_was_scaled_is_read_whole_and_in_order(before: System, tmp_path: Path) -> None:
    writer = Writer(before)
    writer.write()
    await before.split()
    target = backed_up(before, tmp_path)
    for step in (before.split, before.merge, before.split, lambda: before.split(2), before.merge):
        writer.write()
        await step()
    writer.write()
    after = await restored(before, target)
    assert len(after.stream.history.after_all) == 6 and len(after.stream.active_segments()) == 2
    assert_all_is_read(after, writer.written)
    await assert_goes_on(after, writer)


async def test_rolls_are_found_and_read_in_order(before: System, tmp_path: Path) -> None:
    writer = Writer(before)
    await before.split()
    target = backed_up(before, tmp_path)
    for _ in range(2):
        writer.write()
        await before.roll()
    writer.write()
    after = await restored(before, target)
    assert_all_is_read(after, writer.written)
    await assert_goes_on(after, writer)


async def test_scales_between_rolls_are_found(before: System, tmp_path: Path) -> None:
    writer = Writer(before)
    target = backed_up(before, tmp_path)
    for step in (before.roll, before.split, before.roll, before.roll, before.split):
        writer.write()
        await step()
    writer.write()
    after = await restored(before, target)
    assert_all_is_read(after, writer.written)
    await assert_goes_on(after, writer)


async def test_all_segments_of_a_wide_scale_are_found_though_a_roll_repeats_the_first(
    before: System, tmp_path: Path
) -> None:
    writer, target = Writer(before), backed_up(before, tmp_path)
    await before.scale(before.stream.active_segments(), equal_ranges(MAX_NUMBERS_APART + 8))
    writer.write()
    await before.roll()
    writer.write()
    after = await restored(before, target)
    assert_all_is_read(after, writer.written)


async def test_what_was_truncated_since_is_not_offered_to_readers(before: System, tmp_path: Path) -> None:
    writer = Writer(before)
    target = backed_up(before, tmp_path)
    for _ in range(3):
        writer.write()
        await before.split()
    reply = await before.ask_for(TruncateStream(*ST, dict.fromkeys(before.stream.active_epoch.segments, 0)))
    assert reply.status == "SUCCESS"
    writer.write()
    kept = read(before, random.Random(0))
    assert min(map(len, kept.values())) == 1
    after = await restored(before, target)
    for seed in range(10):
        assert read(after, random.Random(seed)) == kept
    writer.system = after
    writer.write()


async def test_a_truncation_within_a_segment_moves_the_head(before: System, tmp_path: Path) -> None:
    writer = Writer(before)
    writer.write()
    target = backed_up(before, tmp_path)
    length = before.store.segments[name(0)].length
    assert (await before.ask_for(TruncateStream(*ST, {0: length}))).status == "SUCCESS"
    after = await restored(before, target)
    assert after.stream.cut == {0: length}


@pytest.mark.parametrize("head_before", ["nowhere", "before the merge"])
async def test_a_head_within_a_merge_is_found_there(before: System, tmp_path: Path, head_before: str) -> None:
    writer = Writer(before)
    await before.split()
    lower, upper = before.stream.active_epoch.segments
    writer.write()
    await before.merge()
    (merged,) = before.stream.active_epoch.segments
    if head_before != "nowhere":
        assert (await before.ask_for(TruncateStream(*ST, {lower: 5, upper: 7, merged: -1}))).status == "SUCCESS"
    target = backed_up(before, tmp_path)
    for number, cut in enumerate([{upper: 9, merged: -1}, {merged: 0}]):
        assert (await before.ask_for(TruncateStream(*ST, cut))).status == "SUCCESS"
        assert (await restored(before, target, now=NOW + number * 60_000)).stream.cut == cut


async def test_a_stream_that_was_sealed_since_is_sealed(before: System, tmp_path: Path) -> None:
    writer = Writer(before)
    target = backed_up(before, tmp_path)
    writer.write()
    await before.ask_for(SealStream(*ST))
    after = await restored(before, target)
    assert after.stream.state is StreamState.SEALED
    assert_all_is_read(after, writer.written)


async def test_a_seal_that_was_cut_off_is_settled_alike_by_a_second_attempt(before: System, tmp_path: Path) -> None:
    await before.split()
    writer, target = Writer(before), backed_up(before, tmp_path)
    writer.write()
    first, second = before.stream.active_epoch.segments
    await before.store.seal_segment(name(first))

    failed: list[str] = []

    def fail_once(moment: Moment, request: str, segment: str) -> None:
        if (moment, request, segment) == ("after", "SealSegment", name(second)) and not failed:
            failed.append(segment)
            raise ConnectionFailure(Failure.TIMED_OUT)

    before.store.fault = fail_once
    after = await restored(before, target)
    assert failed, "the first attempt had sealed the last segment"
    assert after.stream.state is StreamState.ACTIVE
    assert_all_is_read(after, writer.written)
    await assert_goes_on(after, writer)


async def test_a_stream_whose_segments_are_gone_comes_back_empty(before: System, tmp_path: Path) -> None:
    writer = Writer(before)
    writer.write()
    target = backed_up(before, tmp_path)
    before.store.segments.clear()
    after = await restored(before, target)
    assert set(head(after.stream)) == set(after.stream.active_epoch.segments) and not after.stream.history.has(1)
    writer.system, writer.written = after, 0
    writer.write()
    assert_all_is_read(after, 1)


async def test_a_table_keeps_its_entries_and_one_that_was_deleted_since_comes_back_empty(
    before: System, tmp_path: Path
) -> None:
    kept, deleted = (TableId("sc", name) for name in ("kept", "deleted"))
    for table in (kept, deleted):
        assert (await before.ask_for(CreateTable(*table, TableConfig(1, 4)))).status == "SUCCESS"
        await before.store.update_table_entries(segment_of(table), [TableEntry(TableKey(b"key "), b"value")])
    target = backed_up(before, tmp_path)
    assert (await before.ask_for(DeleteTable(*deleted))).status == "SUCCESS"
    system = await brought(before, target)
    assert [len(current_segments(system.table(table))) for table in (kept, deleted)] == [1, 1], "they serve at once"
    await found_out(system)
    await until(lambda: system.table(kept).workflow is None and system.table(deleted).workflow is None)
    entries = [await system.store.read_table_entries(segment_of(table), 9) for table in (kept, deleted)]
    assert [[entry.value for entry in found] for found in entries] == [[b"value"], []]


async def test_a_back_up_in_the_middle_of_a_scale_finds_how_far_it_got(before: System, tmp_path: Path) -> None:
    writer = Writer(before)
    writer.write()
    targets: list[Folder] = []

    def look(moment: str, request: str, _segment: str) -> None:
        if moment == "before" and request in ("CreateSegment", "SealSegment"):
            targets.append(back_up(tmp_path / f"{len(targets)}", list(before.first.journal.views())))

    before.store.fault = look
    await before.split()
    before.store.fault = None
    writer.write()
    assert len(targets) == 3, "before the two segments came, and before the first one was sealed"
    for number, target in enumerate(targets):
        after = await restored(before, target, now=NOW + number * 60_000)
        assert_all_is_read(after, writer.written)


async def test_a_second_restore_of_the_same_back_up_finds_what_the_first_one_left(
    before: System, tmp_path: Path
) -> None:
    writer = Writer(before)
    target = backed_up(before, tmp_path)
    writer.write()
    first = await restored(before, target)
    assert first.stream.active_epoch.segments == (0,)
    second = await restored(before, target, 2, NOW + 60_000)
    await assert_goes_on(second, writer)


async def test_what_was_scaled_in_the_life_behind_a_restore_is_found_by_the_next_one(
    before: System, tmp_path: Path
) -> None:
    writer = Writer(before)
    writer.write()
    first = await restored(before, backed_up(before, tmp_path))
    second = back_up(tmp_path / "second", list(first.first.journal.views()))
    writer.system = first
    writer.write()
    await first.split()
    writer.write()
    await first.roll()
    writer.write()
    await assert_comes_back_whole(await restored(first, second, now=NOW + 60_000), writer)


async def test_what_was_scaled_in_a_life_that_the_back_up_does_not_know_is_found_if_it_is_named(
    before: System, tmp_path: Path
) -> None:
    writer = Writer(before)
    target = backed_up(before, tmp_path)
    await before.split()
    writer.write()
    first = await restored(before, target)
    writer.system = first
    await first.split()
    writer.write()
    again = await restored(first, target, now=NOW + 60_000, earlier=[base_at(NOW, 0)])
    await assert_comes_back_whole(again, writer)


async def test_a_named_life_is_found_though_most_numbers_before_it_were_truncated_away(
    before: System, tmp_path: Path
) -> None:
    target = backed_up(before, tmp_path)
    await before.scale(before.stream.active_segments(), equal_ranges(MAX_NUMBERS_APART + 8))
    first = await restored(before, target)
    active = first.stream.active_epoch.segments
    await first.ask_for(TruncateStream(*ST, cut=dict.fromkeys(active, 0)))
    writer = Writer(first)
    writer.write()
    again = await restored(first, target, now=NOW + 60_000, earlier=[base_at(NOW, 0)])
    assert [s for s in active if again.stream.history.has(epoch_of(s))]
    await assert_comes_back_whole(again, writer)


async def test_a_back_up_in_the_middle_of_a_restore_finds_what_came_before_it_and_since(
    before: System, tmp_path: Path
) -> None:
    writer = Writer(before)
    target = backed_up(before, tmp_path)
    await before.split()
    writer.write()
    begun = await brought(before, target)
    second = back_up(tmp_path / "second", list(begun.first.journal.views()))
    writer.system = await found_out(begun)
    writer.write()
    await begun.split()
    writer.write()
    await assert_comes_back_whole(await restored(begun, second, now=NOW + 60_000), writer)
