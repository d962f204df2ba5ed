"""A stream whose state no record can have is backed up and restored, while processes that follow it stop and start."""

from pathlib import Path

from support.backups import NOW, back_up
from support.memory_world import MemoryWorld, settle
from support.stream_log import STREAM
from support.txn_log import TxnLog

from sluice.backup.files import read_manifest
from sluice.backup.restoring import restoration
from sluice.backup.states import read_states
from sluice.domain.listings import Members, members_of
from sluice.domain.model import DomainModel, encode_record
from sluice.domain.segment import Segment, segment_id
from sluice.domain.stream.history import Epoch
from sluice.domain.stream.restore import bases_of
from sluice.domain.stream.scale import equal_ranges
from sluice.domain.stream.state import Stream, find_stream
from sluice.engine.fold import GuardedReader, PartitionView
from sluice.kafka.topics import JOURNAL, MAX_RECORD_BYTES

SEGMENTS, EPOCHS = 1_000, 160


def grow_old(stream: Stream) -> None:
    """As rolls do: every epoch has all segments anew, and none of them lies behind the head."""
    history, ranges = stream.history, equal_ranges(SEGMENTS)
    for number in range(history.count, history.count + EPOCHS):
        segments = [Segment(segment_id(number, i), low, high) for i, (low, high) in enumerate(ranges)]
        before = history.recent[-1]
        history.add(
            Epoch(number, number, before.created_at + 1, tuple(s.id for s in segments)), segments, before.segments
        )
    stream.active, stream.next_number = history.count - 1, SEGMENTS


def members(view: PartitionView) -> Members:
    return members_of(GuardedReader(view), STREAM.scope)


async def test_a_state_larger_than_a_record_comes_whole_to_all_that_start_meanwhile(tmp_path: Path) -> None:
    log = TxnLog()
    grow_old(log.stream)
    before = DomainModel.encode_state(log.stream)
    assert len(before) > MAX_RECORD_BYTES
    target = back_up(tmp_path / "b", [log.view])
    records = list(restoration(read_states(target, read_manifest(target)), 2, NOW, "test").records)
    values = [encode_record(one.record) for one in records]
    assert max(map(len, values)) < MAX_RECORD_BYTES / 8 and len(values) > 15

    world = MemoryWorld(partitions=2)
    always, leaving = world.first, world.process()
    for number, (one, value) in enumerate(zip(records, values, strict=True)):
        if number == len(records) // 2:
            await settle()
            assert find_stream(GuardedReader(always.journal.reader(STREAM.key)), STREAM) is None
            await leaving.journal.stop()
            coming = world.process()
        world.broker.land_in(JOURNAL.name, one.partition, one.key, value)
    for process in (always, coming, world.process()):
        await process.journal.loaded.wait()
        view = process.journal.reader(STREAM.key)
        found = find_stream(GuardedReader(view), STREAM)
        assert found is not None and bases_of(found)
        assert members(view).streams == members(log.view).streams
        found.state, found.workflow = log.stream.state, None
        assert DomainModel.encode_state(found) == before
