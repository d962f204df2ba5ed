"""A journal that a back-up was brought into, beside stores that have gone on: what is not settled yet is no finding."""

from pathlib import Path

import pytest
from support.backups import NOW, back_up
from unit.cli.memory import PARTITIONS, History
from unit.verification.world import STREAM, World

from sluice.backup.files import read_manifest
from sluice.backup.restoring import restoration
from sluice.backup.states import read_states
from sluice.backup.target import Folder
from sluice.domain.model import encode_record
from sluice.domain.segment import segment_name
from sluice.domain.stream.state import StreamState
from sluice.domain.transaction import batch
from sluice.domain.transaction.commands import CommitTransaction
from sluice.kafka.topics import JOURNAL
from sluice_cli.verification.run import Choice


@pytest.fixture
async def world() -> World:
    found = World()
    await found.create()
    return found


def restored(world: World, target: Folder) -> World:
    """The back-up in another journal, with the stores as they are."""
    history = History()
    for found in restoration(read_states(target, read_manifest(target)), PARTITIONS, NOW, "test").records:
        value = encode_record(found.record)
        message = history.source.append(JOURNAL.name, found.key, value, partition=found.partition)
        history.views[found.partition].fold(found.record, message.offset, message.at)
    return World(history, world.store)


def backed_up(world: World, tmp_path: Path) -> Folder:
    return back_up(tmp_path / "b", world.history.views)


async def test_what_happened_behind_the_back_up_is_no_finding_while_it_is_found_out(
    world: World, tmp_path: Path
) -> None:
    target = backed_up(world, tmp_path)
    world.write(0, 100)
    await world.do(world.split(0))
    await world.truncate(dict.fromkeys(world.stream.active_epoch.segments, 0))
    after = restored(world, target)
    assert after.stream.state is StreamState.RESTORING
    found = await after.verify(Choice(repairs=True))
    assert not found.findings and found.summary.exit_code == 0
    assert ("demo/orders", "restore-stream", 2) in [(u.of, u.workflow, u.segments) for u in found.under_way]


async def test_a_restored_stream_that_goes_on_gives_no_finding(world: World, tmp_path: Path) -> None:
    target = backed_up(world, tmp_path)
    world.write(0, 100)
    await world.do(world.split(0))
    after = restored(world, target)
    for id in (STREAM, STREAM.mark):
        await after.finish(id.aggregate)
    assert after.stream.history.after_all
    await after.commit(await after.open())
    await after.do(after.split(after.stream.active_segments()[0].id))
    await after.truncate(dict.fromkeys(after.stream.active_epoch.segments, 0))
    found = await after.verify()
    assert not found.findings and found.summary.segments > 8


async def test_a_transaction_that_was_merged_behind_the_back_up_is_not_missing(world: World, tmp_path: Path) -> None:
    opened = await world.open()
    world.store.segments[world.names(opened)[0]].data = b"x"
    world.begin(CommitTransaction(*opened))
    target = backed_up(world, tmp_path)
    world.record(STREAM.key, lambda reader, context: batch.begin_batch(reader, STREAM, context, 100))
    await world.finish(STREAM.commits)
    await world.delete_skipped()
    after = restored(world, target)
    await after.finish(STREAM.aggregate)
    assert not (await after.verify()).problems


async def test_data_before_the_head_of_a_restored_stream_are_not_deleted(world: World, tmp_path: Path) -> None:
    world.write(0, 100)
    await world.do(world.split(0))
    await world.truncate(dict.fromkeys(world.stream.active_epoch.segments, 0))
    after = restored(world, backed_up(world, tmp_path))
    await after.finish(STREAM.aggregate)
    name = segment_name(*STREAM, 0)
    await after.store.create_segment(name, 0, 0)
    after.write(0, 7)
    await after.store.seal_segment(name)
    (finding,) = (await after.verify(Choice(repairs=True))).findings
    assert finding.problem.name == "LEFT_OVER" and "7 bytes" in finding.repair and name in after.store.segments
