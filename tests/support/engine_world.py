"""Processes that follow one journal in memory and in virtual time, and what may happen to them.

Every process is a `Process`: its journal, and a log that may be frozen. The broker is `sluice.memory`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from sluice.engine.fold import PartitionView
from sluice.engine.journal import Journal
from sluice.engine.offsets import Offsets, Origin
from sluice.engine.partition import partition_of
from sluice.engine.ports import Model
from sluice.engine.record import Record, Source
from sluice.memory.broker import MemoryBroker, MemoryMessage
from sluice.memory.connections import MemoryConnections, MemoryGroups
from support import virtual_time
from support.counters import Counter, CounterModel, entry, record

JOURNAL = "sluice.journal"
REQUESTS = "test.requests"
MODEL = CounterModel()


class Process:
    def __init__(self, world: "EngineWorld", number: int, max_entries: int) -> None:
        self.connections = MemoryConnections(world.groups)
        self.log = self.connections.log
        self.journal = Journal(
            self.log,
            world.model,
            f"test/{number}",
            clock=self.connections.clock,
            chance=self.connections.chance,
            max_entries=max_entries,
        )
        self.journal.start()

    def total(self, name: str) -> int:
        """What a counter stands at, as this process sees it."""
        counter = self.journal.reader(MODEL.key_of(name)).get(name)
        return counter.total if isinstance(counter, Counter) else 0


class EngineWorld:
    """A journal of counters, or of what else the model knows. `requests` is the group that reads REQUESTS."""

    def __init__(self, processes: int = 1, max_entries: int = 256, model: Model = MODEL) -> None:
        self.model = model
        self.broker = MemoryBroker()
        self.broker.faulty_topic = JOURNAL
        self.groups = MemoryGroups(self.broker)
        self.requests = self.groups.group(REQUESTS)
        self.processes = [Process(self, number, max_entries) for number in range(processes)]

    @property
    def first(self) -> Process:
        return self.processes[0]

    @property
    def journal(self) -> Journal:
        return self.first.journal

    def view(self, key: str) -> PartitionView:
        return self.journal.reader(key)

    def key_at(self, partition: int, number: int = 0) -> str:
        """One of the keys of a partition."""
        keys = (key for n in range(10_000) if partition_of(key := f"k{n}", self.broker.partitions) == partition)
        return next(key for n, key in enumerate(keys) if n == number)

    def seed(self, key: str, *events: Any) -> None:
        """Make the events true, whatever the versions are."""
        self.land(key, record(entry(*events), id="seed"))

    def land(self, key: str, written: Record[Any, Any]) -> MemoryMessage:
        return self.broker.land(JOURNAL, key, self.model.encode(written))

    def records(self, key: str) -> list[Record[Any, Any]]:
        """What was appended to the key's partition, void records included."""
        log = self.broker.log(JOURNAL, partition_of(key, self.broker.partitions))
        return [self.model.decode(message.value()) for message in log]

    def requests_of(self, key: str) -> list[list[str | None]]:
        """Of each record the requests that its entries decide."""
        return [[entry.request for entry in written.entries] for written in self.records(key)]

    async def stop(self) -> None:
        for process in self.processes:
            await process.journal.stop()


def origin(offset: int, offsets: Offsets | None = None, epoch: int = 0) -> Origin:
    """A request that stands there, and was delivered by these offsets."""
    return Origin(Source(f"{REQUESTS}@0", epoch, offset), offsets or Offsets())


async def settle() -> None:
    """Let everything run that needs no time to pass."""
    await asyncio.sleep(1e-4)


@asynccontextmanager
async def engine_world(**options: Any) -> AsyncIterator[EngineWorld]:
    """A world of its own, which ends with the block."""
    world = EngineWorld(**options)
    await settle()
    try:
        yield world
    finally:
        await world.stop()


def play(scenario: Callable[[EngineWorld], Awaitable[None]], **options: Any) -> None:
    """Run a scenario in a world of its own, in virtual time."""

    async def scene() -> None:
        async with engine_world(**options) as world:
            await scenario(world)

    virtual_time.run(scene())
