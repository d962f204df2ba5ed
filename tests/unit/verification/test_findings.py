"""Damage done to segment stores by hand is found; what workflows leave is not damage."""

import pytest
from unit.cli.snapshots import snapshot_of
from unit.verification.world import STREAM, World

from sluice.domain.config import ReaderGroupConfig, TableConfig
from sluice.domain.ids import GroupId, TableId
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup
from sluice.domain.segment import kvt_segment_name, segment_id, segment_name
from sluice.domain.table.commands import CreateTable
from sluice.kafka.topics import JOURNAL
from sluice_cli.verification.run import Choice

FIRST, SECOND = segment_id(1, 2), segment_id(1, 3)


@pytest.fixture
async def world() -> World:
    found = World()
    await found.create()
    return found


async def scaled(world: World) -> None:
    """Segment 0 is sealed with 100 bytes, two segments come for it."""
    world.write(0, 100)
    await world.do(world.split(0))


async def test_a_life_of_a_stream_leaves_nothing_to_find(world: World) -> None:
    world.write(0, 100)
    first = await world.prepare(2)
    opened = await world.open()
    assert opened.transaction == first.transaction
    await world.commit(opened)
    await world.do(world.split(0))
    late = await world.open()
    await world.commit(late)
    await world.abort(await world.open())
    await world.truncate({FIRST: 0, SECOND: 0, 1: 0})
    found = await world.verify()
    assert not found.findings and not found.not_answered
    assert [u.workflow for u in found.under_way] == ["deletion of what a commit has skipped"]
    assert found.summary.segments > 8 and found.summary.exit_code == 0


async def test_a_roll_of_a_commit_leaves_nothing_to_find(world: World) -> None:
    opened = await world.open()
    world.store.segments[world.names(opened)[0]].data = b"x" * 10
    await world.do(world.split(0))
    await world.commit(opened)
    assert world.stream.active == 3
    found = await world.verify()
    assert not found.findings and found.summary.segments >= 4


async def test_a_missing_active_segment_is_found_and_not_created(world: World) -> None:
    world.lose(segment_name(*STREAM, 1))
    found = await world.verify(Choice(repairs=True))
    assert found.problems == {"1.#epoch.0": {"MISSING"}}
    (finding,) = found.findings
    assert finding.repair.startswith("not repaired: a new empty segment") and finding.repaired is False
    assert found.summary.exit_code == 1 and segment_name(*STREAM, 1) not in world.store.segments


async def test_a_sealed_active_segment_is_found_and_stays_sealed(world: World) -> None:
    world.segment(1).sealed = True
    found = await world.verify(Choice(repairs=True))
    assert found.problems == {"1.#epoch.0": {"SEALED"}}
    assert "stream scale --seal" in found.findings[0].repair and world.segment(1).sealed


async def test_a_sealed_segment_that_is_not_is_sealed_by_a_repair(world: World) -> None:
    await scaled(world)
    world.segment(0).sealed = False
    found = await world.verify()
    assert found.problems == {"0.#epoch.0": {"NOT_SEALED"}}
    assert found.findings[0].repair.startswith("can be sealed: ") and not world.segment(0).sealed
    found = await world.verify(Choice(repairs=True))
    assert found.findings[0].repaired is True and found.summary.exit_code == 0
    assert world.segment(0).sealed and not (await world.verify()).findings


async def test_a_shortened_segment_is_not_sealed_by_a_repair(world: World) -> None:
    await scaled(world)
    world.segment(0).sealed, world.segment(0).data = False, b"x" * 99
    found = await world.verify(Choice(repairs=True))
    assert found.problems == {"0.#epoch.0": {"NOT_SEALED", "OTHER_LENGTH"}}
    assert not world.segment(0).sealed and found.summary.findings == 2


async def test_a_sealed_segment_of_another_length_is_found(world: World) -> None:
    await scaled(world)
    world.segment(0).data += b"x"
    found = await world.verify(Choice(repairs=True))
    assert found.problems == {"0.#epoch.0": {"OTHER_LENGTH"}}
    assert found.findings[0].journal == "sealed, 100 bytes" and found.findings[0].store.startswith("sealed, 101 bytes")


async def test_a_missing_sealed_segment_is_found(world: World) -> None:
    await scaled(world)
    world.lose(segment_name(*STREAM, 0))
    assert (await world.verify()).problems == {"0.#epoch.0": {"MISSING"}}


async def test_a_segment_that_is_not_truncated_is_truncated_by_a_repair(world: World) -> None:
    world.write(0, 100)
    await world.truncate({0: 60, 1: 0})
    world.segment(0).start_offset, world.segment(0).data = 0, b"x" * 100
    found = await world.verify(Choice(repairs=True))
    assert found.problems == {"0.#epoch.0": {"STARTS_EARLY"}} and found.findings[0].repaired is True
    assert world.segment(0).start_offset == 60


async def test_a_segment_truncated_too_far_is_found(world: World) -> None:
    world.write(0, 100)
    await world.store.truncate_segment(segment_name(*STREAM, 0), 60)
    found = await world.verify(Choice(repairs=True))
    assert found.problems == {"0.#epoch.0": {"STARTS_LATE"}} and found.findings[0].repaired is False


async def test_clients_may_truncate_streams_of_one_segment() -> None:
    world = World()
    await world.create(segments=1)
    world.write(0, 100)
    await world.store.truncate_segment(segment_name(*STREAM, 0), 60)
    assert not (await world.verify()).findings


async def test_an_active_segment_that_ends_before_the_head_is_found(world: World) -> None:
    world.write(0, 100)
    await world.truncate({0: 60, 1: 0})
    world.segment(0).start_offset, world.segment(0).data = 0, b"x" * 50
    assert (await world.verify()).problems == {"0.#epoch.0": {"STARTS_EARLY", "TOO_SHORT"}}


async def test_a_segment_behind_the_head_is_deleted_by_a_repair(world: World) -> None:
    await scaled(world)
    await world.truncate({FIRST: 0, SECOND: 0, 1: 0})
    await world.store.create_segment(segment_name(*STREAM, 0), 0, 0)
    assert not (await world.verify(Choice(leftovers=False))).findings
    found = await world.verify(Choice(repairs=True))
    assert found.problems == {"0.#epoch.0": {"LEFT_OVER"}} and found.findings[0].repaired is True
    assert segment_name(*STREAM, 0) not in world.store.segments


async def test_segments_of_condensed_epochs_are_looked_for() -> None:
    world = World()
    await world.create(segments=1)
    for _ in range(140):
        (active,) = world.stream.active_epoch.segments
        replacement = world.split(active)
        await world.do(type(replacement)(*STREAM, replacement.seals, ((0.0, 1.0),), at=1))
    (active,) = world.stream.active_epoch.segments
    await world.truncate({active: 0})
    assert world.stream.history.chunks
    assert not (await world.verify()).findings
    late = segment_name(*STREAM, segment_id(70, 70))
    await world.store.create_segment(late, 0, 0)
    assert list((await world.verify()).problems) == ["70.#epoch.70"]


async def test_what_is_left_of_a_deleted_stream_is_deleted_by_a_repair(world: World) -> None:
    await scaled(world)
    await world.seal()
    await world.delete()
    assert not (await world.verify()).findings
    late = segment_name(*STREAM, FIRST)
    await world.store.create_segment(late, 0, 0)
    found = await world.verify(Choice(repairs=True))
    assert found.problems == {"2.#epoch.1": {"LEFT_OVER"}} and late not in world.store.segments
    await world.store.create_segment(late, 0, 0)
    await world.create_anew()
    assert (await world.verify(Choice("demo", "orders"))).problems == {"2.#epoch.1": {"LEFT_OVER"}}


async def test_a_sealed_stream_with_an_open_segment_is_found(world: World) -> None:
    await world.seal()
    world.segment(1).sealed = False
    found = await world.verify(Choice(repairs=True))
    assert found.problems == {"1.#epoch.0": {"NOT_SEALED"}} and world.segment(1).sealed


async def test_segments_of_transactions_that_are_missing_are_found(world: World) -> None:
    first = await world.prepare(2)
    opened = await world.open()
    for name in (world.names(opened)[0], world.names(STREAM.transaction(first.transaction[:-1] + "1"))[1]):
        world.lose(name)
    found = await world.verify(Choice(repairs=True))
    assert len(found.findings) == 2 and {f.problem.name for f in found.findings} == {"MISSING"}
    assert sorted(f.journal for f in found.findings) == ["of a prepared transaction, 0 bytes", "of an open transaction"]


async def test_what_an_abort_left_is_deleted_by_a_repair(world: World) -> None:
    opened = await world.open()
    await world.abort(opened)
    (late, _) = names = world.names(opened)
    await world.store.create_segment(late, 0, 0)
    world.store.segments[late].data = b"x"
    found = await world.verify(Choice(repairs=True))
    assert [f.problem.name for f in found.findings] == ["LEFT_OVER"] and found.findings[0].repaired is True
    assert not world.store.segments.keys() & set(names)


async def test_what_a_commit_left_is_deleted_only_if_it_is_empty(world: World) -> None:
    opened = await world.open()
    full, empty = world.names(opened)
    for name in (full, empty):
        world.store.segments[name].data = b"x"
    await world.commit(opened)
    for name in (full, empty):
        await world.store.create_segment(name, 0, 0)
    world.store.segments[full].data = b"x" * 7
    found = await world.verify(Choice(repairs=True))
    by_name = {f.segment: f for f in found.findings}
    assert by_name[full].repaired is False and "7 bytes, which may be in no other segment" in by_name[full].repair
    assert by_name[empty].repaired is True
    assert full in world.store.segments and empty not in world.store.segments


async def test_tables_are_compared(world: World) -> None:
    table = TableId("demo", "settings")
    await world.do(CreateTable(*table, TableConfig(2, 4, 4)), table.aggregate, table.key)
    assert not (await world.verify()).findings
    world.lose(kvt_segment_name(*table, 0))
    await world.store.delete_table_segment(kvt_segment_name(*table, 1))
    await world.store.create_table_segment(kvt_segment_name(*table, 1), 4)
    found = await world.verify()
    assert {f.problem.name for f in found.findings} == {"MISSING", "OTHER_KEYS"}


async def test_internal_streams_are_compared(world: World) -> None:
    group = GroupId("demo", "readers")
    config = ReaderGroupConfig("00000000-0000-0000-0000-000000000001", {})
    await world.do(CreateReaderGroup(*group, config), group.aggregate, group.key)
    await world.store.truncate_segment(segment_name(*group.state_stream, 0), 0)
    assert not (await world.verify()).findings
    world.lose(segment_name(*STREAM.mark, 0))
    world.lose(segment_name(*group.state_stream, 0))
    found = await world.verify()
    assert sorted(f.of for f in found.findings) == ["demo/_MARKorders", "demo/_RGreaders"]
    world.begin(DeleteReaderGroup(*group))
    found = await world.verify()
    assert [f.of for f in found.findings] == ["demo/_MARKorders"]
    assert {(u.of, u.workflow) for u in found.under_way} == {
        ("demo/_RGreaders", "delete-reader-group"),
        ("demo/_MARK_RGreaders", "delete-reader-group"),
    }


async def test_what_is_left_of_discarded_transactions_is_found(world: World) -> None:
    first = await world.prepare(2)
    (name, _) = world.names(first)
    await world.discard(first)
    assert not (await world.verify()).findings
    await world.store.create_segment(name, 0, 0)
    found = await world.verify(Choice(repairs=True))
    assert [f.segment for f in found.findings] == [name] and name not in world.store.segments


async def test_a_trimmed_journal_is_compared_from_its_snapshot_on(world: World) -> None:
    await scaled(world)
    taken = await snapshot_of(world.history, STREAM.key)
    await world.do(world.split(1))
    world.history.source.trim(JOURNAL.name, taken.partition, taken.offset)
    assert not (await world.verify()).findings
    world.segment(0).sealed = False
    found = await world.verify(Choice(repairs=True))
    assert found.problems == {"0.#epoch.0": {"NOT_SEALED"}} and world.segment(0).sealed
