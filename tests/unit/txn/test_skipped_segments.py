"""What commits have skipped is deleted behind them, whichever process does it, and then the journal rests."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from support.memory_world import until
from support.transaction_world import KEY, STREAM, TransactionWorld
from unit.txn.other_stream import other_stream

from sluice.domain.segment import segment_id
from sluice.domain.stream.commands import ScaleStream
from sluice.domain.transaction.events import (
    CommitBatchEnded,
    CommitBatchStarted,
    EmptySegmentsDeleted,
    EmptySegmentsSkipped,
)
from sluice.domain.transaction.state import TransactionState, segment_names
from sluice.domain.transaction_ids import transaction_id
from stream_workflows import stream_steps
from stream_workflows.step_context import StreamStepContext
from txn_manager import skipped_segments
from txn_manager.skipped_segments import GATHER_S, RECORD_AFTER_S

COMMITTED = TransactionState.COMMITTED


@pytest.fixture
async def world(virtual_time: None) -> AsyncIterator[TransactionWorld]:
    """A stream of two segments, two processes that own nothing yet, and batches of one transaction."""
    world = TransactionWorld(processes=2, most=1, segments=2)
    await world.create()
    yield world
    assert [each.failures for each in world.completers] == [[], []]


async def half_empty(world: TransactionWorld, request: str) -> tuple[str, list[str]]:
    """A transaction with data in the last of its segments; the names of all of them."""
    id = await world.open(request)
    names = list(segment_names(world.stream, id).values())
    world.store.segments[names[0]].data = b""
    return id, names


def said(world: TransactionWorld) -> list[list[type]]:
    """What the records that concern skipped segments say, of these events."""
    kinds = (CommitBatchEnded, EmptySegmentsDeleted, EmptySegmentsSkipped)
    entries = ([type(event) for event in entry.events if isinstance(event, kinds)] for entry in world.entries(KEY))
    return [entry for entry in entries if entry]


async def test_what_was_skipped_is_in_the_record_that_ends_the_batch_and_deleted_behind_it(
    world: TransactionWorld,
) -> None:
    world.delete_s = 5
    world.completer.take_over()
    id, (empty, full) = await half_empty(world, "a")
    await world.commit(id)
    await world.until_ended()
    assert said(world) == [[EmptySegmentsSkipped, CommitBatchEnded]]
    assert world.store.segments[empty].sealed and full not in world.store.segments
    await until(lambda: empty not in world.store.segments, max_s=GATHER_S + 6)
    assert world.deletes == 1, "not of what was merged"


async def test_a_later_batch_says_what_is_deleted_or_a_record_of_its_own_and_then_none(
    world: TransactionWorld,
) -> None:
    world.completer.take_over()
    for request in ("a", "b"):
        id, (empty, _) = await half_empty(world, request)
        await world.commit(id)
        await until(lambda empty=empty: empty not in world.store.segments)  # type: ignore[misc]
    ends = [[EmptySegmentsSkipped, CommitBatchEnded], [EmptySegmentsDeleted, EmptySegmentsSkipped, CommitBatchEnded]]
    assert said(world) == ends
    await asyncio.sleep(2.5 * RECORD_AFTER_S)
    assert said(world) == [*ends, [EmptySegmentsDeleted]]
    assert world.commits is not None and world.commits.skipped == {}
    records = len(world.log_of(KEY))
    await asyncio.sleep(10 * RECORD_AFTER_S)
    assert len(world.log_of(KEY)) == records


async def test_the_next_owner_deletes_what_was_skipped(world: TransactionWorld) -> None:
    first, second = world.completers
    world.failing = {"DeleteSegment"}
    first.take_over()
    id, (empty, _) = await half_empty(world, "a")
    await world.commit(id)
    await until(lambda: world.state(id) is COMMITTED)
    first.drop()
    await asyncio.sleep(100)
    world.failing = set()
    assert empty in world.store.segments
    second.take_over()
    await until(lambda: empty not in world.store.segments)
    await asyncio.sleep(2.5 * RECORD_AFTER_S)
    assert said(world)[-1] == [EmptySegmentsDeleted]


async def test_nothing_is_said_to_be_deleted_before_it_is(world: TransactionWorld) -> None:
    world.failing = {"DeleteSegment"}
    world.completer.take_over()
    names = []
    for request in ("a", "b"):
        id, (empty, _) = await half_empty(world, request)
        names.append(empty)
        await world.commit(id)
        await world.until_ended()
    await asyncio.sleep(3 * RECORD_AFTER_S)
    assert not world.events(EmptySegmentsDeleted)
    assert world.commits is not None and list(world.commits.skipped) == [1, 2]
    world.failing = set()
    await until(lambda: not world.store.segments.keys() & set(names), max_s=100)
    await until(lambda: world.commits is not None and not world.commits.skipped, max_s=2 * RECORD_AFTER_S)


async def test_a_stream_with_much_to_delete_leaves_room_to_others_between(
    virtual_time: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skipped_segments, "DELETE_CONCURRENCY", 1)
    monkeypatch.setattr(skipped_segments, "SEGMENTS_AT_ONCE", 1)
    world = TransactionWorld()
    await world.create()
    other = await other_stream(world)
    id = transaction_id(0, "empty")
    for stream, batches in ((STREAM, 20), (other, 1)):
        for _ in range(batches):
            began = CommitBatchStarted(*stream, transactions=(id,), at=1, rolls=False)
            skipped = EmptySegmentsSkipped(*stream, segments={id: (0,)})
            await world.seed(stream.key, began, skipped, CommitBatchEnded(*stream))
    (empty,) = segment_names(world.stream, id).values()
    (empty_of_other,) = (name.replace(str(STREAM), str(other)) for name in (empty,))
    await world.store.create_segment(empty_of_other, 0, 0)
    world.delete_s = 1.0
    world.completer.take_over()
    await until(lambda: empty_of_other not in world.store.segments, max_s=5)
    assert world.deletes < 10
    await until(lambda: world.deletes == 21)


async def test_a_roll_says_what_it_skipped_with_its_successors(world: TransactionWorld) -> None:
    id, (empty, _) = await half_empty(world, "early")
    await world.decide(ScaleStream(*STREAM, seals=(0,), ranges=((0.0, 0.25), (0.25, 0.5)), at=world.now_ms))
    await world.finish_scale()
    world.completer.take_over()
    await world.commit(id)
    await world.until_ended()
    assert said(world) == [[EmptySegmentsSkipped], [CommitBatchEnded]]
    assert world.data(segment_id(2, 1)) == b"early" and world.data(segment_id(2, 0)) == b""
    await until(lambda: empty not in world.store.segments)


async def test_a_deletion_of_the_stream_deletes_what_txn_manager_has_not(world: TransactionWorld) -> None:
    world.failing = {"DeleteSegment"}
    world.completer.take_over()
    id, (empty, _) = await half_empty(world, "a")
    await world.commit(id)
    await world.until_ended()
    world.completer.drop()
    world.failing = set()
    journal = world.first.journal
    context = StreamStepContext(world.store, journal, world.first.runtime.sender)
    await stream_steps.delete_segments(context, world.stream)
    assert empty not in world.store.segments
