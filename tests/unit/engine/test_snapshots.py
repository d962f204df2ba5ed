"""What a snapshot is: bytes in chunks, a manifest, a confirmation; and what is refused, with which reason."""

from collections.abc import AsyncIterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.counters import CounterModel
from support.snapshots import Adds, SnapshotWorld, count

from sluice.engine import snapshots as snapshot_format
from sluice.engine.capture import Part, PartKind
from sluice.engine.fold import PartitionView
from sluice.engine.ports import RecordFacts
from sluice.engine.snapshots import SnapshotConfirmation, SnapshotRefusedError, first_difference, joined, newest, sliced
from sluice.engine.snapshotting import NoMarkerError
from sluice.memory.broker import MemoryMessage
from sluice.memory.snapshots import CHUNKS, NOTES

parts = st.lists(
    st.builds(Part, st.sampled_from(PartKind), st.text(max_size=5), st.integers(0, 9), st.binary(max_size=40)),
    max_size=6,
)
FACTS = RecordFacts("Test", "1", "test", 0)


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SnapshotWorld]:
    """Chunks are so small that each snapshot has several."""
    monkeypatch.setattr(snapshot_format.sliced, "__defaults__", (100,))
    world = SnapshotWorld()
    yield world
    await world.stop()


def replace(world: SnapshotWorld, at: int, value: bytes) -> None:
    """Another chunk stands at an offset of the store."""
    world.broker.log(CHUNKS, 0)[at] = MemoryMessage(CHUNKS, 0, at, "0", value)


async def refusals(world: SnapshotWorld) -> tuple[int, list[str]]:
    """The offset of the snapshot that is loaded, -1 for none; and why newer ones are not."""
    view, reasons = PartitionView(CounterModel()), list[str]()
    found = await newest(
        world.store, await world.snapshots(), view.restore, lambda _snapshot, reason: reasons.append(reason)
    )
    assert view.next_offset == (found.offset + 1 if found is not None else 0)
    return (found.offset if found is not None else -1), reasons


async def two(world: SnapshotWorld) -> tuple[int, int]:
    """The offsets of two confirmed snapshots."""
    journal = await world.loaded()
    await count(journal, 3)
    first = await world.snapshot(journal)
    for number in range(20):
        await count(journal, key=f"k{number}")
    return first, await world.snapshot(journal)


@given(parts, st.integers(1, 60))
def test_parts_survive_slicing(whole: list[Part], size: int) -> None:
    counts: dict[str, int] = {}
    slices = list(sliced(whole, counts, size))
    assert list(joined(slices)) == whole and sum(counts.values()) == len(whole)
    assert all(len(piece) == size for piece in slices[:-1])


@given(parts.filter(bool), st.data())
def test_parts_that_are_cut_off_are_refused(whole: list[Part], data: st.DataObject) -> None:
    (encoded,) = sliced(whole, {}, 10_000)
    cut = data.draw(st.integers(1, len(encoded) - 1))
    found = list[Part]()
    try:
        found.extend(joined([encoded[:cut]]))
    except SnapshotRefusedError:
        return
    assert found == whole[: len(found)] and len(found) < len(whole)


async def test_the_newest_confirmed_one_is_loaded(world: SnapshotWorld) -> None:
    _, second = await two(world)
    assert await refusals(world) == (second, [])


async def test_one_that_no_second_run_has_confirmed_is_refused(world: SnapshotWorld) -> None:
    _, second = await two(world)
    third = await world.journals[0].append_marker(0)
    await world.help(third)
    assert await refusals(world) == (second, ["no second run has confirmed it"])


async def test_one_that_lacks_a_chunk_is_refused(world: SnapshotWorld) -> None:
    first, _ = await two(world)
    manifest = (await world.snapshots())[1].manifest
    assert len(manifest.chunks) > 2
    replace(world, manifest.last_chunk, world.broker.log(CHUNKS, 0)[0].value())
    offset, (reason,) = await refusals(world)
    assert (
        offset == first
        and reason == f"it is incomplete: {len(manifest.chunks) - 1} of {len(manifest.chunks)} chunks are there"
    )


async def test_one_that_lacks_a_chunk_in_the_middle_is_refused(world: SnapshotWorld) -> None:
    first, _ = await two(world)
    manifest = (await world.snapshots())[1].manifest
    replace(world, manifest.first_chunk + 1, world.broker.log(CHUNKS, 0)[0].value())
    assert await refusals(world) == (first, ["it is incomplete: chunk 2 follows 0"])


async def test_one_with_another_byte_is_refused(world: SnapshotWorld) -> None:
    first, _ = await two(world)
    manifest = (await world.snapshots())[1].manifest
    value = world.broker.log(CHUNKS, 0)[manifest.first_chunk].value()
    replace(world, manifest.first_chunk, value[:-1] + b"?")
    assert await refusals(world) == (first, ["it is damaged: chunk 0 has another checksum"])


async def test_one_whose_manifest_was_changed_is_refused(world: SnapshotWorld) -> None:
    first, _ = await two(world)
    manifest = (await world.snapshots())[1].manifest
    for note in world.broker.log(NOTES, 0)[:]:
        if manifest.checksum.encode() in note.value():
            other = note.value().replace(manifest.chunks[0].encode(), manifest.chunks[1].encode())
            world.broker.log(NOTES, 0)[note.offset()] = MemoryMessage(NOTES, 0, note.offset(), "0", other)
    reason = "its manifest is damaged: its chunks have another checksum together"
    assert await refusals(world) == (first, [reason])


async def test_a_chunk_that_is_none_is_refused(world: SnapshotWorld) -> None:
    first, _ = await two(world)
    manifest = (await world.snapshots())[1].manifest
    replace(world, manifest.first_chunk, b"?")
    offset, (reason,) = await refusals(world)
    assert offset == first and reason.startswith("a chunk behind chunk 0 cannot be decoded")


async def test_one_of_another_format_is_refused(world: SnapshotWorld) -> None:
    first, _ = await two(world)
    manifest = (await world.snapshots())[1].manifest
    newer = msgspec.structs.replace(manifest, id="newer", format=snapshot_format.FORMAT + 1, offset=manifest.offset + 1)
    await world.store.append_note(0, msgspec.json.encode(newer), FACTS)
    await world.store.append_note(
        0, msgspec.json.encode(SnapshotConfirmation("newer", "x", 0, manifest.checksum)), FACTS
    )
    assert await refusals(world) == (manifest.offset, ["it is of format 2, this is 1"])
    assert first < manifest.offset


async def test_a_note_that_cannot_be_read_is_left_aside_with_its_reason(world: SnapshotWorld) -> None:
    await two(world)
    world.broker.land_in(NOTES, 0, "0", b'{"type":"SnapshotManifest","format":7,"id":1}')
    world.broker.land_in(NOTES, 0, "0", b"?")
    found, refused = snapshot_format.snapshots_of((await world.store.notes([0]))[0])
    assert len(found) == 2
    assert refused[0] == "the note at 4 is of format 7, this is 1" and refused[1].startswith(
        "the note at 5 cannot be decoded"
    )


async def test_chunks_of_two_writers_may_stand_between_one_another(world: SnapshotWorld) -> None:
    _, second = await two(world)
    manifest = (await world.snapshots())[1].manifest
    log = world.broker.log(CHUNKS, 0)
    begin = len(log)
    for message in log[manifest.first_chunk : manifest.last_chunk + 1]:
        chunk = msgspec.msgpack.decode(message.value())
        world.broker.land_in(CHUNKS, 0, "0", msgspec.msgpack.encode(["other", chunk[1], b"other"]))
        world.broker.land_in(CHUNKS, 0, "0", message.value())
    moved = msgspec.structs.replace(manifest, first_chunk=begin, last_chunk=len(log) - 1)
    world.broker.trim(NOTES, 0, len(world.broker.log(NOTES, 0)))
    await world.store.append_note(0, msgspec.json.encode(moved), FACTS)
    await world.store.append_note(0, msgspec.json.encode(SnapshotConfirmation(moved.id, "x", 0, moved.checksum)), FACTS)
    assert await refusals(world) == (second, [])


# Helpers.


async def test_a_second_run_confirms_and_a_third_has_nothing_to_do(world: SnapshotWorld) -> None:
    journal = await world.loaded()
    await count(journal, 3)
    offset = await journal.append_marker(0)
    written, confirmed, nothing = [await world.help(offset, by) for by in ("helper/a", "helper/b", "helper/c")]
    assert written.manifest is not None and written.confirmation is None
    assert confirmed.manifest is None and confirmed.confirmation is not None
    assert confirmed.confirmation.checksum == written.manifest.checksum and confirmed.confirmation.differs is None
    assert nothing.manifest is None and nothing.confirmation is None


async def test_a_second_run_that_differs_names_the_first_part(world: SnapshotWorld) -> None:
    journal = await world.loaded()
    await count(journal, 3)
    offset = await journal.append_marker(0)
    await world.help(offset)
    made = await world.help(offset, "helper/b", Adds)
    assert made.confirmation is not None and made.confirmation.differs == "aggregate k has another value"
    assert await refusals(world) == (-1, ["the run of helper/b came to another state: aggregate k has another value"])


async def test_a_snapshot_of_which_chunks_are_lost_is_written_anew(world: SnapshotWorld) -> None:
    journal = await world.loaded()
    await count(journal, 3)
    offset = await journal.append_marker(0)
    await world.help(offset)
    world.broker.trim(CHUNKS, 0, 1)
    assert (await world.help(offset, "helper/b")).manifest is not None
    assert (await world.help(offset, "helper/a")).confirmation is not None
    assert (await refusals(world))[0] == offset


async def test_a_helper_begins_from_the_snapshot_before(world: SnapshotWorld) -> None:
    journal = await world.loaded()
    await count(journal, 5)
    first = await world.snapshot(journal)
    await count(journal, 5)
    world.broker.trim("sluice.journal", 0, first)
    second = await world.snapshot(journal)
    assert await refusals(world) == (second, [])


async def test_a_snapshot_of_another_journal_at_the_same_offset_is_not_compared(world: SnapshotWorld) -> None:
    first = await world.loaded()
    await count(first, 5)
    offset = await first.append_marker(0)
    await world.help(offset)
    await first.stop()
    world.broker.recreate("sluice.journal")
    second = await world.loaded()
    await count(second, 5, "another")
    assert await second.append_marker(0) == offset
    made = await world.help(offset)
    assert made.manifest is not None and made.manifest.by == "helper/a"
    made = await world.help(offset)
    assert made.confirmation is not None and made.confirmation.differs is None


async def test_a_record_that_is_no_marker_makes_no_snapshot(world: SnapshotWorld) -> None:
    journal = await world.loaded()
    await count(journal, 2)
    with pytest.raises(NoMarkerError, match="record at 1 is no marker"):
        await world.help(1)
    with pytest.raises(NoMarkerError, match="ends at 2"):
        await world.help(2)


def aggregate(name: str, version: int = 1, value: bytes = b"x") -> Part:
    return Part(PartKind.AGGREGATE, name, version, value)


@pytest.mark.parametrize(
    ("theirs", "ours", "says"),
    [
        ([aggregate("a"), aggregate("b")], [aggregate("b")], "aggregate a is only in the snapshot"),
        ([aggregate("b")], [aggregate("a"), aggregate("b")], "aggregate a is only in the second run"),
        ([aggregate("a"), aggregate("b")], [aggregate("a")], "aggregate b is only in the snapshot"),
        ([aggregate("a", 1)], [aggregate("a", 2)], "aggregate a has version 1, in the second run 2"),
        ([aggregate("a", 1, b"x")], [aggregate("a", 1, b"y")], "aggregate a has another value"),
        ([Part(PartKind.HEAD, "", 0, b"x")], [Part(PartKind.HEAD, "", 0, b"y")], "head has another value"),
    ],
)
def test_the_first_part_that_differs_is_named(theirs: list[Part], ours: list[Part], says: str) -> None:
    assert first_difference(iter(theirs), iter(ours)) == says
