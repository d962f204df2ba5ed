"""How many entries key-value tables have, as their segment stores count them.

What was found is shared for some seconds, and all who look share one bound on calls: so many lists cost no more than
one. Belongs to the event loop.
"""

import asyncio
from functools import partial

import msgspec

from sluice.domain.ids import TableId
from sluice.domain.segment import kvt_segment_name
from sluice.domain.table.state import Table
from sluice.pravega.errors import SegmentStoreError
from sluice.pravega.store import SegmentStore

SHARED_S = 5.0
AT_ONCE = 20
COUNTING_S = 5.0
MAX_TABLES = 200
"""Tables that are counted at the same time; of more nothing is known for now."""

MAX_PARTITIONS = 1_000
"""Of a table with more it is not counted."""


class TableSize(msgspec.Struct, frozen=True):
    """The entries of the partitions whose stores answer, by the id of the partition."""

    entries: dict[int, int]


class TableSizes:
    """Counts entries. Call `stop` at the end."""

    def __init__(self, store: SegmentStore) -> None:
        self._store = store
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._found: dict[TableId, asyncio.Task[TableSize]] = {}

    async def find(self, table: Table) -> TableSize:
        """As of a moment ago at most."""
        found = self._found.get(table.id)
        if found is None:
            if len(self._found) >= MAX_TABLES:
                return TableSize({})
            segments = [segment.id for segment in table.segments] if len(table.segments) <= MAX_PARTITIONS else []
            found = self._found[table.id] = asyncio.get_running_loop().create_task(self._count(table.id, segments))
            found.add_done_callback(partial(self._keep, table.id))
        # One caller that leaves does not end it for the others.
        return await asyncio.shield(found)

    async def stop(self) -> None:
        """Count no more."""
        counting = list(self._found.values())
        for task in counting:
            task.cancel()
        await asyncio.gather(*counting, return_exceptions=True)

    def _keep(self, id: TableId, found: "asyncio.Task[TableSize]") -> None:
        found.get_loop().call_later(SHARED_S, self._found.pop, id, None)

    async def _count(self, id: TableId, segments: list[int]) -> TableSize:
        entries: dict[int, int] = {}

        async def count(segment: int) -> None:
            async with self._slots:
                try:
                    entries[segment] = (await self._store.table_info(kvt_segment_name(*id, segment))).entry_count
                except SegmentStoreError:
                    # Of this partition it is not known.
                    return

        try:
            async with asyncio.timeout(COUNTING_S):
                await asyncio.gather(*map(count, segments))
        except TimeoutError:
            return TableSize(entries)
        return TableSize(entries)
