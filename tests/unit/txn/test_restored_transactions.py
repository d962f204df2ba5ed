"""Transactions of a back-up: what was open is aborted; what was to be committed is, once, however far that had got."""

import asyncio
from pathlib import Path

import pytest
from support.backups import NOW, back_up
from support.memory_world import settle, until
from support.transaction_world import KEY, STREAM, TransactionWorld

from sluice.backup.files import read_manifest
from sluice.backup.restoring import restoration
from sluice.backup.states import read_states
from sluice.domain.model import encode_record
from sluice.domain.segment import parse_segment_name
from sluice.domain.stream.commands import DeleteStream, ScaleStream
from sluice.domain.stream.queries import head, successors_with_predecessors
from sluice.domain.stream.restore import finish_restore
from sluice.domain.stream.state import StreamState, find_stream
from sluice.domain.transaction.state import TransactionState
from sluice.kafka.topics import JOURNAL
from sluice.workflows.step_context import StepContext
from stream_workflows.restore_steps import find_out
from stream_workflows.service import WorkflowService
from stream_workflows.settings import WorkflowSettings


@pytest.fixture(autouse=True)
def in_virtual_time(virtual_time: None) -> None:
    """Of all tests here."""


async def restored(before: TransactionWorld, folder: Path) -> TransactionWorld:
    """Another journal, from the back-up, on the same segment stores; the stream has found out what happened."""
    target = back_up(folder, list(before.first.journal.views()))
    await after_backup(before)
    world = TransactionWorld(store=before.store)
    made = restoration(read_states(target, read_manifest(target)), 4, NOW, "test")
    for one in made.records:
        world.broker.land_in(JOURNAL.name, one.partition, one.key, encode_record(one.record))
    await settle()
    assert world.stream.state is StreamState.RESTORING
    return world


async def after_backup(world: TransactionWorld) -> None:
    """The commits that the back-up knew come to their end."""
    world.completer.take_over()
    await until(lambda: not world.transactions.committing)
    world.completer.drop()


async def find_out_and_complete(world: TransactionWorld) -> None:
    found = await find_out(StepContext(world.store, world.first.journal), world.stream)
    await world.do(KEY, lambda reader, context: finish_restore(reader, context, found))
    world.completer.take_over()
    await world.until_ended()


def everything(world: TransactionWorld) -> bytes:
    """What a reader of the stream gets, whose epochs have one segment."""
    (segment,), data = head(world.stream), b""
    while True:
        data += world.data(segment)
        following = successors_with_predecessors(world.stream, segment)
        if not following:
            return data
        segment = following[0][0].id


@pytest.mark.parametrize("scaled", [False, True])
async def test_commits_that_were_made_behind_the_back_up_are_not_made_twice(tmp_path: Path, scaled: bool) -> None:
    before = TransactionWorld()
    await before.create()
    first, second = await before.open("first"), await before.open("second")
    await before.commit(second, first)
    world = await restored(before, tmp_path)
    assert list(world.transactions.committing) == [second, first]
    if scaled:
        await before.decide(ScaleStream(*STREAM, seals=(0,), ranges=((0.0, 1.0),), at=before.now_ms))
        await before.finish_scale()
        await before.store.seal_segment("sc/st/0.#epoch.0")
    await find_out_and_complete(world)
    assert [world.state(id) for id in (first, second)] == [TransactionState.COMMITTED] * 2
    assert everything(world) == b"secondfirst"


async def test_commits_that_were_not_made_are_made_behind_everything(tmp_path: Path) -> None:
    before = TransactionWorld()
    await before.create()
    target = tmp_path
    early = await before.open("early")
    await before.commit(early)
    views = list(before.first.journal.views())
    folder = back_up(target, views)
    await before.decide(ScaleStream(*STREAM, seals=(0,), ranges=((0.0, 1.0),), at=before.now_ms))
    await before.finish_scale()
    await before.store.seal_segment("sc/st/0.#epoch.0")
    (newest,) = before.stream.active_epoch.segments
    before.store.segments["sc/st/1.#epoch.1"].data += b"written;"
    assert newest == 1 | 1 << 32
    world = TransactionWorld(store=before.store)
    for one in restoration(read_states(folder, read_manifest(folder)), 4, NOW, "test").records:
        world.broker.land_in(JOURNAL.name, one.partition, one.key, encode_record(one.record))
    await settle()
    await find_out_and_complete(world)
    assert world.state(early) is TransactionState.COMMITTED
    assert everything(world) == b"written;early"


@pytest.mark.parametrize("ends", [TransactionState.COMMITTED, TransactionState.ABORTED])
async def test_a_stream_that_comes_back_sealed_is_deleted_behind_its_transactions(
    tmp_path: Path, ends: TransactionState
) -> None:
    before = TransactionWorld()
    await before.create()
    id = await before.open("early")
    if ends is TransactionState.COMMITTED:
        await before.commit(id)
    world = await restored(before, tmp_path)
    await before.store.seal_segment("sc/st/0.#epoch.0")
    service = WorkflowService(world.first.runtime, WorkflowSettings(partitions=4), world.store)
    service.consumer.start()
    await until(lambda: world.stream.state is StreamState.SEALED)
    world.request("delete", DeleteStream(*STREAM))
    await until(lambda: world.stream.workflow is not None)
    await asyncio.sleep(60)
    assert find_stream(world.view(KEY), STREAM) is not None and world.transactions.live == 1
    world.completer.take_over()
    await until(lambda: find_stream(world.view(KEY), STREAM) is None)
    assert world.state(id) is ends and "sc/st/0.#epoch.0" not in world.store.segments
    assert not any(parse_segment_name(name)[3] for name in world.store.segments)


async def test_what_was_open_is_aborted_and_its_segments_are_deleted(tmp_path: Path) -> None:
    before = TransactionWorld()
    await before.create()
    opened = await before.open("open")
    world = await restored(before, tmp_path)
    await find_out_and_complete(world)
    assert world.state(opened) is TransactionState.ABORTED
    assert not any(parse_segment_name(name)[3] for name in world.store.segments)
    assert everything(world) == b""
