"""Processes that follow one journal of counters and load snapshots of it, in memory."""

from collections.abc import Callable
from random import Random

from sluice.engine.capture import Part
from sluice.engine.journal import Journal
from sluice.engine.snapshots import Snapshot, snapshots_of
from sluice.engine.snapshotting import Made, Snapshotter
from sluice.memory.broker import MemoryBroker
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.memory.log import MemoryLog
from sluice.memory.snapshots import MemorySnapshotStore
from support.counters import CounterModel, add

KEY = "k"


class SnapshotWorld:
    """One partition, unless it is said otherwise; everything at once."""

    def __init__(self, partitions: int = 1) -> None:
        self.broker = MemoryBroker(partitions, Random(1))
        self.groups = MemoryGroups(self.broker)
        self.store = MemorySnapshotStore(self.broker)
        self.journals: list[Journal] = []
        self.logs: dict[Journal, MemoryLog] = {}

    def journal(self, name: str = "", model: CounterModel | None = None) -> Journal:
        """One more process, which begins to follow."""
        connections = MemoryConnections(self.groups, loads_snapshots=True)
        source = name or f"test/{len(self.journals)}"
        journal = Journal(
            connections.log,
            model or CounterModel(),
            source,
            clock=connections.clock,
            chance=connections.chance,
            snapshots=connections.snapshots,
        )
        self.journals.append(journal)
        self.logs[journal] = connections.log
        journal.start()
        return journal

    async def loaded(self, name: str = "") -> Journal:
        journal = self.journal(name)
        await journal.loaded.wait()
        return journal

    async def help(
        self, offset: int, by: str = "helper/a", make: Callable[[], CounterModel] = CounterModel, partition: int = 0
    ) -> Made:
        """What a helper makes of the marker at an offset of the partition."""
        connections = MemoryConnections(self.groups, loads_snapshots=True)
        snapshotter = Snapshotter(connections.log, self.store, make(), by, connections.clock, connections.chance)
        try:
            return await snapshotter.run(partition, offset)
        finally:
            connections.log.close()

    async def snapshot(self, journal: Journal) -> int:
        """Have a snapshot written and confirmed behind a marker: its offset."""
        offset = await journal.append_marker(0)
        await self.help(offset)
        await self.help(offset, "helper/b")
        return offset

    async def snapshots(self) -> list[Snapshot]:
        return snapshots_of((await self.store.notes([0]))[0])[0]

    async def stop(self) -> None:
        for journal in self.journals:
            await journal.stop()


class Adds(CounterModel):
    """Folds otherwise: it adds one too many."""

    def evolve(self, state: object, event: object) -> object:  # type: ignore[override]
        found = super().evolve(state, event)  # type: ignore[arg-type]
        found.total += 1
        return found


async def count(journal: Journal, times: int = 1, key: str = KEY) -> None:
    """Add to a counter, in so many records."""
    for _ in range(times):
        await journal.propose(key, add(key))


def captured(journal: Journal) -> list[list[Part]]:
    """The whole state of each partition."""
    return [list(view.capture()) for view in journal.views()]
