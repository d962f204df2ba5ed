"""A journal that a newer release writes to: older followers stop where they cannot follow, and say why."""

import msgspec
import pytest
from support.memory_world import MemoryWorld, settle

from sluice.domain.model import RECORD_FORMAT, JournalEntry, JournalRecord, encode_record
from sluice.domain.names import scope_aggregate
from sluice.domain.scope.events import ScopeCreated
from sluice.engine.journal import PartitionFailedError
from sluice.kafka.topics import JOURNAL

KEY = "sc"


def created(format: int) -> bytes:
    """The creation of a scope, in a format."""
    event = ScopeCreated(scope=KEY, at=1, creation_id="r")
    record = JournalRecord("r", 1, "x/0", (JournalEntry({}, (event,)),))
    return encode_record(msgspec.structs.replace(record, format=format))


async def test_a_follower_folds_the_newest_format_that_it_knows() -> None:
    world = MemoryWorld()
    world.broker.land(JOURNAL.name, KEY, created(RECORD_FORMAT))
    await settle()
    assert world.view(KEY).get(scope_aggregate(KEY)) is not None and world.first.journal.failure is None


async def test_a_follower_stops_before_a_record_of_a_newer_format_and_says_why() -> None:
    world = MemoryWorld()
    world.broker.land(JOURNAL.name, KEY, created(RECORD_FORMAT + 1))
    world.broker.land(JOURNAL.name, KEY, created(RECORD_FORMAT))
    await settle()
    view, journal = world.view(KEY), world.first.journal
    assert view.next_offset == 0 and view.get(scope_aggregate(KEY)) is None, "neither folded nor passed over"
    assert journal.failure is not None and "record at offset 0" in journal.failure
    assert f"format {RECORD_FORMAT + 1} is newer than {RECORD_FORMAT}" in journal.failure
    with pytest.raises(PartitionFailedError):
        await journal.barrier((journal.partition_of(KEY),))
    others = [partition for partition in range(journal.partitions) if partition != journal.partition_of(KEY)]
    await journal.barrier(others)
