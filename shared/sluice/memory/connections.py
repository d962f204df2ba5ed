"""All that a process reaches, in memory: what `sluice.kafka.connections` is on Kafka."""

import random
from collections.abc import Callable

from sluice.engine.ports import Clock, SnapshotStore
from sluice.memory.broker import MemoryBroker, MemoryProducer
from sluice.memory.log import MemoryLog
from sluice.memory.requests import MemoryGroup, MemoryRequestSource
from sluice.memory.snapshots import MemorySnapshotStore


class MemoryGroups:
    """The consumer groups of a broker, made when they are first used."""

    def __init__(self, broker: MemoryBroker) -> None:
        self.broker = broker
        self.all: dict[str, MemoryGroup] = {}

    def group(self, topic: str) -> MemoryGroup:
        found = self.all.get(topic)
        if found is None:
            found = self.all[topic] = MemoryGroup(self.broker, topic)
        return found


class SeededChance:
    """See Chance: the same in every run with the same random numbers."""

    def __init__(self, random: random.Random) -> None:
        self._random = random

    def token(self) -> str:
        """See Chance."""
        return self._random.randbytes(5).hex()

    def jitter(self, low: float, high: float) -> float:
        """See Chance."""
        return self._random.uniform(low, high)


class MemoryConnections:
    """See Connections. `touch` is called whenever the process reaches the outside, before and after; it may raise.

    A process that does not load snapshots has the whole journal as soon as it follows it.
    """

    def __init__(
        self,
        groups: MemoryGroups,
        process: object = None,
        touch: Callable[[str], None] = lambda _what: None,
        *,
        loads_snapshots: bool = False,
    ) -> None:
        broker = groups.broker
        self.clock: Clock = broker
        self.chance = SeededChance(broker.random)
        self.producer = MemoryProducer(broker, touch)
        self.log = MemoryLog(broker, self.producer)
        self.snapshots: SnapshotStore | None = MemorySnapshotStore(broker, touch) if loads_snapshots else None
        self.process = process if process is not None else self
        self._groups = groups

    def request_source(self, topic: str, _group: str) -> MemoryRequestSource:
        """See Connections."""
        return self._groups.group(topic).source(self.process)
