"""Whoever owns a partition ends what the journal says was decided: batches, rolls and aborts."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from support import virtual_time
from support.endings_world import KEY, SCOPE, STREAM, EndingsWorld, clock_ms, use_virtual_clock

from sluice.domain import events as ev
from sluice.domain.commands import ScaleStream
from sluice.domain.segment_id import segment_id
from sluice.domain.stream import scale
from sluice.domain.transaction.batch import YIELD_MS
from sluice.domain.transaction.state import TransactionState, segment_names
from sluice.domain.workflow import WorkflowKind
from txn_manager.endings import ABORTS_AT_ONCE, LOOK_AGAIN_S

COMMITTED, ABORTED = TransactionState.COMMITTED, TransactionState.ABORTED
COMMITTING = TransactionState.COMMITTING

Scenario = Callable[[EndingsWorld], Coroutine[Any, Any, None]]
Run = Callable[..., None]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a scenario on a stream of one segment, in virtual time."""
    use_virtual_clock(monkeypatch)

    def run(scenario: Scenario, instances: int = 1, most: int = 100, segments: int = 1) -> None:
        async def scene() -> None:
            world = EndingsWorld(instances, most)
            await world.create(segments)
            await scenario(world)
            assert [ender.failures for ender in world.enders] == [[] for _ in world.enders]

        virtual_time.run(scene())

    return run


def test_a_commit_is_merged_and_an_abort_deleted(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        world.ender.take_over()
        kept, dropped = await world.open("kept"), await world.open("dropped")
        names = [*segment_names(world.stream, kept).values(), *segment_names(world.stream, dropped).values()]
        assert len(names) == 4
        world.commit(kept)
        world.abort(dropped)
        await world.until_ended()
        assert (world.state(kept), world.state(dropped)) == (COMMITTED, ABORTED)
        assert (world.data(0), world.data(1)) == (b"kept", b"kept")
        assert not any(name in world.store.segments for name in names)

    run(scenario, segments=2)


def test_batches_are_merged_in_the_order_of_commits_and_bounded(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        ids = [await world.open(request) for request in "abcdefg"]
        order = [ids[i] for i in (3, 0, 6, 1, 5, 2, 4)]
        world.commit(*order)
        world.ender.take_over()
        await world.until_ended()
        assert world.data(0) == b"dagbfce"
        assert world.batches() == [tuple(order[0:3]), tuple(order[3:6]), tuple(order[6:7])]
        assert list(world.transactions.ended()) == order[::-1]

    run(scenario, most=3)


def test_commits_that_come_while_a_batch_runs_make_the_next_one(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        world.slow_s = 1.0
        world.ender.take_over()
        first, *others = [await world.open(request) for request in "abcd"]
        world.commit(first)
        await asyncio.sleep(0.5)
        world.commit(*others)
        await world.until_ended()
        assert world.batches() == [(first,), tuple(others)]
        assert world.data(0) == b"abcd"

    run(scenario)


# Taking over.


def test_whoever_takes_over_goes_on_with_a_batch_that_runs(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        a, b = await world.open("a"), await world.open("b")
        world.commit(a, b)
        world.begin(a)
        await asyncio.sleep(5)
        assert world.state(a) is COMMITTING, "nobody owns the partition"
        world.ender.take_over()
        await world.until_ended()
        assert world.data(0) == b"ab" and world.batches() == [(a,), (b,)]

    run(scenario)


def test_whoever_takes_over_begins_with_commits_that_wait(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        a = await world.open("a")
        world.commit(a)
        world.ender.take_over()
        await world.until_ended()
        assert world.state(a) is COMMITTED

    run(scenario)


def test_whoever_takes_over_goes_on_with_aborts(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        ids = [await world.open(request) for request in "abc"]
        for id in ids:
            world.abort(id)
        world.ender.take_over()
        await world.until_ended()
        assert {world.state(id) for id in ids} == {ABORTED}
        assert list(world.store.segments) == [f"{SCOPE}/{STREAM}/0.#epoch.0"]

    run(scenario)


@pytest.mark.parametrize("noted", [False, True], ids=["before its epochs are named", "after"])
def test_whoever_takes_over_goes_on_with_a_roll(run: Run, noted: bool) -> None:
    async def scenario(world: EndingsWorld) -> None:
        early = await world.open("early")
        await split(world)
        world.commit(early)
        world.begin(early, rolls=True)
        if noted:
            sealed = {segment_id(2, 0): 5}
            rolled = ev.StreamEpochsRolled(
                scope=SCOPE, stream=STREAM, duplicates=0, created_at=clock_ms(), sealed_sizes=sealed
            )
            world.seed(rolled)
        world.ender.take_over()
        await world.until_ended()
        stream = world.stream
        assert [(e.number, e.reference) for e in stream.epochs] == [(0, 0), (1, 1), (2, 0), (3, 1)]
        assert stream.active == 3 and world.state(early) is COMMITTED
        assert set(stream.sealed_sizes) == {0, segment_id(1, 1), segment_id(1, 2), segment_id(2, 0)}
        if not noted:
            assert world.data(segment_id(2, 0)) == b"early"
            assert stream.sealed_sizes[segment_id(2, 0)] == len(b"early")
            assert segments_of(world) >= {(1, 1), (1, 2), (2, 0), (3, 1), (3, 2)}

    run(scenario)


async def split(world: EndingsWorld) -> None:
    """Scale the stream's only segment into two, all in the journal and the store."""
    await world.decide(ScaleStream(SCOPE, STREAM, seals=(0,), ranges=((0.0, 0.5), (0.5, 1.0)), at=clock_ms()))
    await world.world.do(KEY, lambda reader: scale.add_epoch(reader, SCOPE, STREAM))
    await world.world.do(KEY, lambda reader: scale.finish_scale(reader, SCOPE, STREAM, {0: 0}))
    for segment in world.stream.active_epoch.segments:
        await world.store.create_segment(f"{SCOPE}/{STREAM}/{segment & 0xFFFFFFFF}.#epoch.{segment >> 32}", 0, 0)


def segments_of(world: EndingsWorld) -> set[tuple[int, int]]:
    """(epoch, number) of the stream's segments in the store."""
    names = (name.rpartition("/")[2] for name in world.store.segments if "#transaction" not in name)
    parts = (name.split(".#epoch.") for name in names)
    return {(int(epoch), int(number)) for number, epoch in parts}


def test_a_roll_merges_into_duplicates_that_come_after_the_active_segments(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        world.ender.take_over()
        early, later = await world.open("early"), await world.open("later")
        await split(world)
        late = await world.open("late")
        world.commit(early, later, late)
        await world.until_ended()
        duplicates = [e for e in world.stream.epochs if e.reference == 0 and e.number]
        written = b"".join(world.data(e.segments[0]) for e in duplicates)
        assert written == b"earlylater"
        assert [world.data(s) for s in world.stream.active_epoch.segments] == [b"late", b"late"]
        kinds = {type(event) for record in world.world.records(KEY) for event in record.events}
        assert {ev.StreamEpochsRolled, ev.StreamRolled} <= kinds

    run(scenario)


def test_a_roll_that_has_sealed_its_duplicates_ends_though_what_it_merged_is_created_again(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        early = await world.open("early")
        names = list(segment_names(world.stream, early).values())
        await split(world)
        world.commit(early)
        world.begin(early, rolls=True)
        world.failing = {"GetStreamSegmentInfo"}
        world.ender.take_over()
        await world.until(lambda: any(segment.sealed for segment in world.store.segments.values()))
        for name in names:
            assert name not in world.store.segments, "merged"
            await world.store.create_segment(name, 0, 0)
        world.failing = set()
        await world.until_ended()
        assert world.state(early) is COMMITTED and world.data(segment_id(2, 0)) == b"early"
        assert world.stream.sealed_sizes[segment_id(2, 0)] == len(b"early")

    run(scenario)


def test_a_silent_store_takes_no_slot_of_the_requests_and_not_all_of_those_that_end(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        world.delete_s = 20.0
        world.ender.take_over()
        for number in range(300):
            world.abort(await world.open(f"{number}"))
        committed = await world.open("committed")
        await asyncio.sleep(1)
        assert world.deletes == ABORTS_AT_ONCE, "each transaction has a single segment"
        assert not world.ender.consumer.slots.locked()
        world.commit(committed)
        await asyncio.sleep(1)
        assert world.state(committed) is COMMITTED
        world.delete_s = 0.0
        await world.until_ended()

    run(scenario)


def test_a_partition_that_is_somebody_elses_is_left_alone(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        a = await world.open("a")
        world.commit(a)
        await asyncio.sleep(60)
        assert world.state(a) is COMMITTING and world.merges == 0
        world.ender.take_over()
        await world.until_ended()
        world.ender.drop()
        b = await world.open("b")
        world.commit(b)
        await asyncio.sleep(60)
        assert world.state(b) is COMMITTING and world.merges == 1

    run(scenario)


def test_a_partition_that_comes_back_is_looked_through_again(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        world.slow_s = 10
        world.ender.take_over()
        ids = [await world.open(request) for request in "ab"]
        world.commit(*ids)
        await world.until(lambda: world.merges == 1)
        world.ender.drop()
        world.slow_s = 0
        world.ender.take_over()
        await world.until_ended()
        assert world.data(0) == b"ab"

    run(scenario)


def test_two_owners_at_once_merge_nothing_twice(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        for ender in world.enders:
            ender.take_over()
        ids = [await world.open(request) for request in "abcdefgh"]
        for id in ids:
            world.commit(id)
            await asyncio.sleep(0.003)
        await world.until_ended()
        assert world.data(0) == b"abcdefgh"
        assert list(world.transactions.ended()) == ids[::-1]

    run(scenario, instances=2, most=3)


def test_an_owner_of_before_that_is_late_ends_only_the_batch_that_it_has_merged(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        late, present = world.enders
        a, b = await world.open("a"), await world.open("b")
        world.commit(a)
        world.late_s = 10
        late.take_over()
        await world.until(lambda: world.merges == 1)
        world.late_s, world.merges_allowed = 0, 2
        world.commit(b)
        present.take_over()
        await asyncio.sleep(20)
        assert world.state(a) is COMMITTED
        assert world.data(0) == b"a"
        assert world.state(b) is COMMITTING, "nobody has merged it"
        world.merges_allowed = 100
        await world.until_ended()
        assert world.data(0) == b"ab"

    run(scenario, instances=2, most=1)


def test_an_owner_of_before_that_is_late_ends_only_the_roll_that_it_has_carried_out(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        late, present = world.enders
        a, b = await world.open("a"), await world.open("b")
        await split(world)
        world.commit(a)
        world.late_s = 10
        late.take_over()
        await world.until(lambda: world.merges == 1)
        world.late_s, world.merges_allowed = 0, 2
        world.commit(b)
        present.take_over()
        await asyncio.sleep(20)
        assert world.state(a) is COMMITTED
        assert len(world.stream.epochs) == 4 and world.state(b) is COMMITTING
        world.merges_allowed = 100
        await world.until_ended()
        assert [world.data(e.segments[0]) for e in world.stream.epochs if e.reference == 0 and e.number] == [b"a", b"b"]

    run(scenario, instances=2, most=1)


# Standing in the way.


def test_segment_stores_that_do_not_answer_are_tried_again(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        world.ender.take_over()
        kept, dropped = await world.open("kept"), await world.open("dropped")
        world.failing = {"MergeSegmentsBatch", "DeleteSegment"}
        world.commit(kept)
        world.abort(dropped)
        await asyncio.sleep(300)
        assert world.transactions.live == 2
        commits = world.commits
        assert commits is not None and commits.workflow is not None
        assert commits.workflow.attempts >= 2 and commits.workflow.step == "merge" and commits.workflow.last_error
        world.failing.clear()
        await world.until_ended()
        assert world.data(0) == b"kept"

    run(scenario)


def test_a_journal_that_is_away_is_tried_again(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        a = await world.open("a")
        world.commit(a)
        world.world.refusals = 5
        world.ender.take_over()
        await world.until_ended()
        assert world.world.refusals == 0 and world.state(a) is COMMITTED

    run(scenario)


def test_commits_wait_for_a_workflow_of_the_stream_and_then_go_on_at_once(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        a = await world.open("a")
        started = ev.StreamTruncationStarted(
            scope=SCOPE, stream=STREAM, cut={0: 0}, deleted=(), size_till=0, request=None, at=clock_ms()
        )
        world.seed(started)
        world.ender.take_over()
        world.commit(a)
        await asyncio.sleep(100)
        assert world.state(a) is COMMITTING and world.batches() == []
        world.seed(ev.StreamTruncated(scope=SCOPE, stream=STREAM))
        await world.until_ended(most_s=LOOK_AGAIN_S / 2)

    run(scenario)


def test_commits_wait_for_a_workflow_that_waits_but_not_for_ever(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        a = await world.open("a")
        world.seed(ev.WorkflowWaiting(scope=SCOPE, stream=STREAM, kind="ScaleStream", at=clock_ms()))
        world.ender.take_over()
        world.commit(a)
        await asyncio.sleep(YIELD_MS / 1000 - 0.1)
        assert world.batches() == []
        await world.until_ended(most_s=LOOK_AGAIN_S + 0.2)

    run(scenario)


def test_a_stream_that_is_being_sealed_gets_its_commits(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        ids = [await world.open(request) for request in "abc"]
        world.commit(*ids)
        world.seed(ev.StreamSealStarted(scope=SCOPE, stream=STREAM, at=clock_ms()))
        workflow = world.stream.workflow
        assert workflow is not None and workflow.kind is WorkflowKind.SEAL_STREAM
        world.ender.take_over()
        await world.until_ended()
        assert world.data(0) == b"abc"

    run(scenario, most=2)


def test_a_stream_that_waits_holds_up_no_other(run: Run) -> None:
    async def scenario(world: EndingsWorld) -> None:
        stuck = await world.open("stuck")
        aborted = await world.open("aborted")
        world.failing = {"MergeSegmentsBatch"}
        world.ender.take_over()
        world.commit(stuck)
        await asyncio.sleep(10)
        world.abort(aborted)
        await world.until(lambda: world.state(aborted) is ABORTED, most_s=5)
        assert world.state(stuck) is COMMITTING

    run(scenario)
