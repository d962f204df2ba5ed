"""The store of snapshots in memory: two topics of the broker's."""

import asyncio
from collections.abc import Callable, Collection

from sluice.engine.ports import RecordFacts, SnapshotStoreError
from sluice.memory.broker import MemoryBroker, MemoryMessage

NOTES = "sluice.snapshots"
CHUNKS = "sluice.snapshots.chunks"


class MemorySnapshotStore:
    """See SnapshotStore. `touch` is called before and after each effect on the outside, and may not return."""

    def __init__(self, broker: MemoryBroker, touch: Callable[[str], None] = lambda _what: None) -> None:
        self._broker = broker
        self._touch = touch

    async def notes(self, partitions: Collection[int]) -> dict[int, list[tuple[int, bytes]]]:
        """See SnapshotStore."""
        await self._answer()
        return {p: [(m.offset(), m.value()) for m in self._left(NOTES, p)] for p in partitions}

    async def append_note(self, partition: int, value: bytes, facts: RecordFacts) -> None:
        """See SnapshotStore."""
        await self._append(NOTES, partition, value, facts)

    async def append_chunk(self, partition: int, value: bytes, facts: RecordFacts) -> int:
        """See SnapshotStore."""
        return await self._append(CHUNKS, partition, value, facts)

    async def chunks(self, partition: int, first: int, last: int) -> list[bytes]:
        """See SnapshotStore."""
        await self._answer()
        return [m.value() for m in self._left(CHUNKS, partition) if first <= m.offset() <= last]

    async def trim(self, partition: int, notes_before: int, chunks_before: int) -> None:
        """See SnapshotStore."""
        self._touch("trim snapshots")
        await self._answer()
        self._broker.trim(NOTES, partition, notes_before)
        self._broker.trim(CHUNKS, partition, chunks_before)

    def _left(self, topic: str, partition: int) -> list[MemoryMessage]:
        return self._broker.log(topic, partition)[self._broker.begin(topic, partition) :]

    async def _append(self, topic: str, partition: int, value: bytes, facts: RecordFacts) -> int:
        self._touch(f"append to {topic}")
        await self._answer()
        headers = [("ce_type", facts.kind), ("ce_id", facts.id)]
        offset = self._broker.land_in(topic, partition, str(partition), value, headers).offset()
        self._touch(f"appended to {topic}")
        return offset

    async def _answer(self) -> None:
        await asyncio.sleep(self._broker.delay_s())
        if self._broker.back_s is not None:
            raise SnapshotStoreError("the broker is away")
