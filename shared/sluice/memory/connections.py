"""All that a process reaches, in memory: what `sluice.kafka.connections` is on Kafka."""

import logging
import random
from collections.abc import Callable, Mapping, Sequence

from sluice.engine.ports import Clock, PartitionProgress, Room, SnapshotStore
from sluice.memory.broker import Fetching, MemoryBroker, MemoryMessage, MemoryProducer
from sluice.memory.leadership import MemoryLeaders, MemoryLeadership
from sluice.memory.log import MemoryLog
from sluice.memory.requests import MemoryGroup, MemoryRequestSource
from sluice.memory.snapshots import MemorySnapshotStore

log = logging.getLogger(__name__)

DEAD_LETTERS = "sluice.dead-letters"
_TAIL = -2000
"""Below it logical offsets count from the end, as in librdkafka (`RD_KAFKA_OFFSET_TAIL`)."""


class MemoryGroups:
    """The consumer groups of a broker, made when they are first used, and who of one decides by policies."""

    def __init__(self, broker: MemoryBroker) -> None:
        self.broker = broker
        self.all: dict[str, MemoryGroup] = {}
        self.policy_leaders = MemoryLeaders()

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

    def ensure_topics(self, _replication: int) -> Sequence[str]:
        """See Connections. A topic is there once it is used."""
        return ()

    def follow(
        self, _name: str, topic: str, begins: Mapping[int, int], observe: Callable[[Sequence[MemoryMessage]], Room]
    ) -> "MemoryFollowing":
        """See Connections."""
        return MemoryFollowing(self._groups.broker, topic, begins, observe)

    def read_dead_letters(
        self, begin: Mapping[int, int], end: Mapping[int, int], on_message: Callable[[MemoryMessage], None]
    ) -> None:
        """See Connections."""
        for partition, offset in begin.items():
            log = self._groups.broker.log(DEAD_LETTERS, partition)
            for message in log[offset : end.get(partition, len(log)) + 1]:
                on_message(message)

    async def read_all(self, topic: str) -> Sequence[MemoryMessage]:
        """See Connections."""
        return [message for log in self._groups.broker.logs(topic) for message in log]

    def policy_terms(self) -> MemoryLeadership:
        """See Connections."""
        return MemoryLeadership(self._groups.policy_leaders)

    def group_progress(self) -> "MemoryGroupProgress":
        """See Connections."""
        return MemoryGroupProgress(self._groups)


class MemoryFollowing:
    """See Following."""

    def __init__(
        self,
        broker: MemoryBroker,
        topic: str,
        begins: Mapping[int, int],
        observe: Callable[[Sequence[MemoryMessage]], Room],
    ) -> None:
        self.failure: BaseException | None = None
        self._observe = observe
        self._fetching = Fetching(broker, topic, self._receive)
        ends = [len(log) for log in broker.logs(topic)]
        tails = {p: max(0, ends[p] - (_TAIL - begin) if begin <= _TAIL else begin) for p, begin in begins.items()}
        self._fetching.start({p: max(broker.begin(topic, p), first) for p, first in tails.items()})

    async def stop(self) -> None:
        """See Following."""
        self._fetching.end()

    def _receive(self, batch: Sequence[MemoryMessage]) -> None:
        try:
            room = self._observe(batch)
        except Exception as error:
            self.failure = error
            self._fetching.end()
            log.critical("following ended", exc_info=True)
            return
        if room is not None:
            self._fetching.held.update(self._fetching.at)
            room.add_done_callback(self._go_on)

    def _go_on(self, _room: object) -> None:
        self._fetching.held.clear()
        self._fetching.notice()


class MemoryGroupProgress:
    """See GroupProgress."""

    def __init__(self, groups: MemoryGroups) -> None:
        self._groups = groups

    def fetch(self, now_ms: int) -> list[PartitionProgress]:
        """See GroupProgress."""
        return [one for group in list(self._groups.all.values()) for one in group.progress(now_ms)]

    def close(self) -> None:
        """See GroupProgress."""
