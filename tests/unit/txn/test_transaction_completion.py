"""The owner of a partition completes what the journal says was decided: batches, rolls and aborts."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.histories import epochs_of
from support.memory_world import until
from support.transaction_world import KEY, STREAM, TransactionWorld
from unit.txn.other_stream import commit_empty, is_committed, other_stream

from sluice.domain.config import ScaleType, ScalingPolicy
from sluice.domain.segment import segment_id
from sluice.domain.stream import events as ev
from sluice.domain.stream.commands import ScaleStream
from sluice.domain.stream.history import Epoch
from sluice.domain.stream.state import YIELD_MS
from sluice.domain.transaction.state import TransactionState, segment_names
from sluice.engine.crash_points import CrashPoints
from sluice.engine.runner import Runner
from sluice.pravega.memory import Moment
from sluice.pravega.store import CREATION_TIME_ATTRIBUTE
from txn_manager.commit_steps import workflows
from txn_manager.step_context import TransactionStepContext
from txn_manager.transaction_completion import ABORT_CONCURRENCY, RECHECK_S, TransactionCompletion

COMMITTED, ABORTED = TransactionState.COMMITTED, TransactionState.ABORTED
COMMITTING = TransactionState.COMMITTING


@pytest.fixture
def options() -> dict[str, Any]:
    """Of the world; a test that has its own gives them by parametrize."""
    return {}


@pytest.fixture
async def world(virtual_time: None, options: dict[str, Any]) -> AsyncIterator[TransactionWorld]:
    """A stream of one segment."""
    world = TransactionWorld(**options)
    await world.create()
    yield world
    assert [each.failures for each in world.completers] == [[] for _ in world.completers]


@pytest.mark.parametrize("options", [{"segments": 2}], ids=["two segments"])
async def test_a_commit_is_merged_and_an_abort_deleted(world: TransactionWorld) -> None:
    world.completer.take_over()
    kept, dropped = await world.open("kept"), await world.open("dropped")
    names = [*segment_names(world.stream, kept).values(), *segment_names(world.stream, dropped).values()]
    assert len(names) == 4
    await world.commit(kept)
    await world.abort(dropped)
    await world.until_ended()
    assert (world.state(kept), world.state(dropped)) == (COMMITTED, ABORTED)
    assert (world.data(0), world.data(1)) == (b"kept", b"kept")
    assert not any(name in world.store.segments for name in names)


@pytest.mark.parametrize("options", [{"scaling": ScalingPolicy(ScaleType.EVENTS, 10, 2)}], ids=["by events"])
async def test_into_a_stream_that_scales_by_load_each_is_merged_as_old_as_its_open(world: TransactionWorld) -> None:
    world.completer.take_over()
    id = await world.open("r")
    [name] = segment_names(world.stream, id).values()
    merged_as_of = list[int]()

    def look(moment: Moment, request: str, _segment: str) -> None:
        if (moment, request) == ("before", "MergeSegmentsBatch"):
            merged_as_of.append(world.store.segments[name].attributes[CREATION_TIME_ATTRIBUTE])

    world.store.segments[name].attributes[CREATION_TIME_ATTRIBUTE] = 0
    world.store.fault = look
    await world.commit(id)
    await world.until_ended()
    assert merged_as_of == [1] and world.data(0) == b"r"


async def test_into_a_stream_of_fixed_segments_transactions_are_merged_as_they_are(world: TransactionWorld) -> None:
    world.failing = {"GetSegmentAttribute", "UpdateSegmentAttribute"}
    world.completer.take_over()
    await world.commit(await world.open("r"))
    await world.until_ended()
    assert world.data(0) == b"r"


# Taking over.


async def test_a_new_owner_goes_on_with_a_batch_that_runs(world: TransactionWorld) -> None:
    a, b = await world.open("a"), await world.open("b")
    await world.commit(a, b)
    await world.begin(a)
    await asyncio.sleep(5)
    assert world.state(a) is COMMITTING, "no one owns the partition"
    world.completer.take_over()
    await world.until_ended()
    assert world.data(0) == b"ab" and world.batches() == [(a,), (b,)]


async def test_a_new_owner_goes_on_with_aborts(world: TransactionWorld) -> None:
    ids = [await world.open(request) for request in "abc"]
    for id in ids:
        await world.abort(id)
    world.completer.take_over()
    await world.until_ended()
    assert {world.state(id) for id in ids} == {ABORTED}
    assert list(world.store.segments) == [f"{STREAM}/0.#epoch.0"]


@pytest.mark.parametrize("recorded", [False, True], ids=["before its epochs are named", "after"])
async def test_a_new_owner_goes_on_with_a_roll(world: TransactionWorld, recorded: bool) -> None:
    early = await world.open("early")
    await split(world)
    await world.commit(early)
    await world.begin(early, rolls=True)
    if recorded:
        sealed = {segment_id(2, 0): 5}
        await world.seed(KEY, ev.StreamEpochsRolled(*STREAM, 0, created_at=world.now_ms, sealed_sizes=sealed))
    world.completer.take_over()
    await world.until_ended()
    stream = world.stream
    assert [(e.number, e.reference) for e in epochs_of(stream)] == [(0, 0), (1, 1), (2, 0), (3, 1)]
    assert stream.active == 3 and world.state(early) is COMMITTED
    assert set(stream.history.sealed_sizes) == {0, segment_id(1, 1), segment_id(1, 2), segment_id(2, 0)}
    if not recorded:
        assert world.data(segment_id(2, 0)) == b"early"
        assert stream.history.sealed_sizes[segment_id(2, 0)] == len(b"early")
        assert segments_of(world) >= {(1, 1), (1, 2), (2, 0), (3, 1), (3, 2)}


async def split(world: TransactionWorld) -> None:
    """Scale the stream's only segment into two, all in the journal and the store."""
    await world.decide(ScaleStream(*STREAM, seals=(0,), ranges=((0.0, 0.5), (0.5, 1.0)), at=world.now_ms))
    await world.finish_scale()


def duplicates_of(world: TransactionWorld) -> list[Epoch]:
    """Of the stream's first epoch."""
    return [epoch for epoch in epochs_of(world.stream) if epoch.reference == 0 and epoch.number]


def segments_of(world: TransactionWorld) -> set[tuple[int, int]]:
    """(epoch, number) of the stream's segments in the store."""
    names = (name.rpartition("/")[2] for name in world.store.segments if "#transaction" not in name)
    parts = (name.split(".#epoch.") for name in names)
    return {(int(epoch), int(number)) for number, epoch in parts}


async def test_a_roll_merges_into_duplicates_that_come_after_the_active_segments(world: TransactionWorld) -> None:
    world.completer.take_over()
    early, later = await world.open("early"), await world.open("later")
    await split(world)
    late = await world.open("late")
    await world.commit(early, later, late)
    await world.until_ended()
    assert b"".join(world.data(e.segments[0]) for e in duplicates_of(world)) == b"earlylater"
    assert [world.data(s) for s in world.stream.active_epoch.segments] == [b"late", b"late"]
    kinds = {type(event) for entry in world.entries(KEY) for event in entry.events}
    assert {ev.StreamEpochsRolled, ev.StreamRolled} <= kinds


async def test_a_roll_with_sealed_duplicates_ends_though_sources_were_created_anew(world: TransactionWorld) -> None:
    early = await world.open("early")
    names = list(segment_names(world.stream, early).values())
    await split(world)
    await world.commit(early)
    await world.begin(early, rolls=True)
    world.late_s = 5
    world.completer.take_over()
    await until(lambda: world.merges == 1)
    world.failing = {"GetStreamSegmentInfo"}
    await until(lambda: any(segment.sealed for segment in world.store.segments.values()))
    for name in names:
        assert name not in world.store.segments, "merged"
        await world.store.create_segment(name, 0, 0)
    world.failing = set()
    await world.until_ended()
    assert world.state(early) is COMMITTED and world.data(segment_id(2, 0)) == b"early"
    assert world.stream.history.sealed_sizes[segment_id(2, 0)] == len(b"early")


async def test_a_silent_store_holds_up_no_commit_and_takes_not_all_places_of_aborts(world: TransactionWorld) -> None:
    world.delete_s = 20.0
    world.completer.take_over()
    for number in range(300):
        await world.abort(await world.open(f"{number}"))
    committed = await world.open("committed")
    await asyncio.sleep(1)
    assert world.deletes == ABORT_CONCURRENCY, "each transaction has a single segment"
    await world.commit(committed)
    await asyncio.sleep(1)
    assert world.state(committed) is COMMITTED
    world.delete_s = 0.0
    await world.until_ended()


def completion_of(world: TransactionWorld, max_steps: int) -> TransactionCompletion:
    """One that carries out batches of one transaction."""
    journal, model = world.first.journal, world.first.runtime.model
    context = TransactionStepContext(world.store, journal)
    runner = Runner(journal, model, workflows(1), context, CrashPoints(""))
    return TransactionCompletion(journal, world.completer.consumer, runner, 1, max_steps)


@pytest.mark.parametrize("rolls", [False, True], ids=["batches", "rolls"])
async def test_commits_that_never_end_leave_room_to_another_stream(world: TransactionWorld, rolls: bool) -> None:
    world.completer.completion = completion_of(world, max_steps=1)
    ids, other = [await world.open(f"{number}") for number in range(20)], await other_stream(world)
    if rolls:
        await split(world)
    world.slow_s = 1.0
    world.completer.take_over()
    await world.commit(*ids)
    await asyncio.sleep(0.5)
    committing = await commit_empty(world, other)
    await until(lambda: is_committed(world, committing), max_s=5)
    assert world.transactions.live > 10
    await world.until_ended()


async def test_aborts_that_do_not_end_leave_those_of_commits(world: TransactionWorld) -> None:
    world.completer.completion = completion_of(world, max_steps=1)
    world.completer.take_over()
    world.delete_s = 20.0
    aborted, committed = await world.open("aborted"), await world.open("committed")
    await world.abort(aborted)
    await until(lambda: world.deletes == 1)
    await world.commit(committed)
    await until(lambda: world.state(committed) is COMMITTED, max_s=1)
    await world.until_ended()


async def test_a_partition_of_another_owner_is_left_alone(world: TransactionWorld) -> None:
    a = await world.open("a")
    await world.commit(a)
    await asyncio.sleep(60)
    assert world.state(a) is COMMITTING and world.merges == 0
    world.completer.take_over()
    await world.until_ended()
    world.completer.drop()
    b = await world.open("b")
    await world.commit(b)
    await asyncio.sleep(60)
    assert world.state(b) is COMMITTING and world.merges == 1


@pytest.mark.parametrize("options", [{"processes": 2, "most": 1}], ids=["two owners"])
@pytest.mark.parametrize("rolls", [False, True], ids=["batch", "roll"])
async def test_a_late_former_owner_ends_only_what_it_has_carried_out(world: TransactionWorld, rolls: bool) -> None:
    def stored() -> bytes:
        return b"".join(world.data(e.segments[0]) for e in duplicates_of(world)) if rolls else world.data(0)

    late, present = world.completers
    a, b = await world.open("a"), await world.open("b")
    if rolls:
        await split(world)
    await world.commit(a)
    world.late_s = 10
    late.take_over()
    await until(lambda: world.merges == 1)
    world.late_s, world.merges_allowed = 0, 2
    await world.commit(b)
    present.take_over()
    await asyncio.sleep(20)
    assert (world.state(a), world.state(b)) == (COMMITTED, COMMITTING), "no one has merged b"
    assert stored() == b"a" and world.stream.history.count == (4 if rolls else 1)
    world.merges_allowed = 100
    await world.until_ended()
    assert stored() == b"ab"


# Standing in the way.


async def test_silent_segment_stores_are_tried_until_they_answer(world: TransactionWorld) -> None:
    world.completer.take_over()
    kept, dropped = await world.open("kept"), await world.open("dropped")
    world.failing = {"MergeSegmentsBatch", "DeleteSegment"}
    await world.commit(kept)
    await world.abort(dropped)
    await asyncio.sleep(300)
    assert world.transactions.live == 2
    commits = world.commits
    assert commits is not None and commits.workflow is not None
    assert commits.workflow.attempts >= 2 and commits.workflow.step == "merge" and commits.workflow.last_error
    world.failing.clear()
    await world.until_ended()
    assert world.data(0) == b"kept"


async def test_commits_wait_for_a_workflow_of_the_stream_and_then_go_on_at_once(world: TransactionWorld) -> None:
    a = await world.open("a")
    await world.seed(KEY, ev.StreamTruncationStarted(*STREAM, {0: 0}, (), 0, at=world.now_ms))
    world.completer.take_over()
    await world.commit(a)
    await asyncio.sleep(100)
    assert world.state(a) is COMMITTING and world.batches() == []
    await world.seed(KEY, ev.StreamTruncated(*STREAM))
    await world.until_ended(max_s=RECHECK_S / 2)


async def test_commits_wait_for_a_workflow_that_waits_but_not_for_ever(world: TransactionWorld) -> None:
    a = await world.open("a")
    await world.seed(KEY, ev.WorkflowQueued(*STREAM, kind="ScaleStream", at=world.now_ms))
    world.completer.take_over()
    await world.commit(a)
    await asyncio.sleep(YIELD_MS / 1000 - 0.1)
    assert world.batches() == []
    await world.until_ended(max_s=RECHECK_S + 0.2)


async def test_a_batch_that_waits_holds_up_no_abort(world: TransactionWorld) -> None:
    stuck = await world.open("stuck")
    aborted = await world.open("aborted")
    world.failing = {"MergeSegmentsBatch"}
    world.completer.take_over()
    await world.commit(stuck)
    await asyncio.sleep(10)
    await world.abort(aborted)
    await until(lambda: world.state(aborted) is ABORTED, max_s=5)
    assert world.state(stuck) is COMMITTING
