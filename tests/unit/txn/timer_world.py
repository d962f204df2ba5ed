"""Instances of txn-manager as far as timers go, on a Redis in memory, in virtual time: what tests of timers look at."""

import asyncio
from collections.abc import Callable
from random import Random

from prometheus_client import REGISTRY

from txn_manager.timers import Timers
from txn_manager.wheel.memory_redis import MemoryRedis, MemoryRedisAccess
from txn_manager.wheel.timer_redis import TimerRedis

TICK_MS = SLOT_MS = 1_000
AGAIN_MS = 10_000
LATENESS_MS = TICK_MS + SLOT_MS
SLOW_MS = 300
"""Of a Redis that is slow and still in time: so much later are timers due."""


class LoopClock:
    """The clock of an instance, which tests may set by some ms."""

    ahead_ms = 1_700_000_000_000

    def now_ms(self) -> int:
        """See Clock."""
        return self.ahead_ms + round(asyncio.get_running_loop().time() * 1000)


class Journal:
    """Leases as a folded journal has them: when each ends, in ms of the virtual time."""

    def __init__(self) -> None:
        self.ends_ms: dict[int, dict[str, int]] = {}
        self.broken: set[int] = set()

    def left_ms(self, partition: int, timer: str) -> int | None:
        """Until the lease ends; None if it has."""
        end_ms = self.ends_ms.get(partition, {}).get(timer)
        return None if end_ms is None else end_ms - now_ms()


class Instance:
    """One txn-manager's timers. What is checked is recorded, with its lateness in ms; it ends the transaction if
    `ending`. A check fails if `fails`, and waits for `checking`.
    """

    def __init__(self, server: MemoryRedis, journal: Journal, ending: bool = True) -> None:
        self.clock = LoopClock()
        self.journal = journal
        self.ending = ending
        self.fails = False
        self.checking: asyncio.Event | None = None
        self.checked: list[tuple[int, str]] = []
        self.late_ms: list[int] = []
        redis = TimerRedis(MemoryRedisAccess(server).client)
        self.timers = Timers(redis, "test", self.clock, self.on_due, self.open_leases)

    def open_leases(self, partition: int) -> dict[str, int]:
        if partition in self.journal.broken:
            raise KeyError("the journal cannot be read")
        ahead_ms = self.clock.ahead_ms
        return {timer: ahead_ms + end_ms for timer, end_ms in self.journal.ends_ms.get(partition, {}).items()}

    async def on_due(self, partition: int, timers: list[str]) -> dict[str, int | None]:
        left_ms = {timer: self.journal.left_ms(partition, timer) for timer in timers}
        looks = {timer: None if left is None else self.clock.now_ms() + left for timer, left in left_ms.items()}
        run_out = {timer: left for timer, left in left_ms.items() if left is not None and left <= 0}
        if run_out:
            if self.fails:
                raise ConnectionError("Kafka is away")
            if self.checking is not None:
                await self.checking.wait()
        for timer, left in run_out.items():
            self.checked.append((partition, timer))
            self.late_ms.append(-left)
            looks[timer] = self.clock.now_ms() + AGAIN_MS
            if self.ending:
                self.end(partition, timer)
        return looks

    def lease(self, partition: int, timer: str, delay_ms: int) -> None:
        self.journal.ends_ms.setdefault(partition, {})[timer] = now_ms() + delay_ms
        self.timers.lease(partition, timer, self.clock.now_ms() + delay_ms)

    def end(self, partition: int, timer: str) -> None:
        self.journal.ends_ms.get(partition, {}).pop(timer, None)
        self.timers.end(partition, timer)


class TimerWorld:
    """A Redis, a journal and the first instance."""

    def __init__(self) -> None:
        self.server = MemoryRedis(Random(1))
        self.journal = Journal()
        self.first = self.instance()

    def instance(self, ending: bool = True) -> Instance:
        return Instance(self.server, self.journal, ending)

    async def owner(self, *partitions: int) -> Instance:
        """The first one, once it has filled wheels of these partitions."""
        for partition in partitions:
            self.first.timers.own(partition)
        await passing(TICK_MS)
        return self.first

    def held(self, partition: int = 3) -> dict[str, float]:
        """What the wheels of the partition have in Redis, in ms from its now."""
        wheels = self.server.timers().items()
        return {t: left for name, some in wheels if f":{partition}}}:" in name for t, left in some.items()}

    def is_as_journal(self, partition: int = 3) -> bool:
        """Whether Redis has all that is open and nothing else, none later than its end but for its slot."""
        held, open_ = self.held(partition), self.journal.ends_ms.get(partition, {})
        return held.keys() == open_.keys() and all(
            held[timer] < (self.journal.left_ms(partition, timer) or 0) + SLOT_MS + SLOW_MS for timer in open_
        )


def now_ms() -> int:
    return round(asyncio.get_running_loop().time() * 1000)


async def passing(ms: float) -> None:
    """Let virtual time pass."""
    await asyncio.sleep(ms / 1000)


async def until(condition: Callable[[], object], max_ms: int) -> None:
    """Raises AssertionError if it does not come true within that time."""
    end_ms = now_ms() + max_ms
    while not condition():
        assert now_ms() < end_ms, f"not within {max_ms} ms"
        await passing(10)


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0
