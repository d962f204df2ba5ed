"""Instances of txn-manager as far as timers go, and the Redis they share: what tests of timers do and look at."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import REGISTRY
from support.redis_server import PrivateRedis
from support.wait import eventually_async

from txn_manager.timers import Timers
from txn_manager.wheel.wheel import TimerWheel

LONG_S = 60


class Journal:
    """Leases as a folded journal has them: when each ends, in seconds of the loop's clock."""

    def __init__(self) -> None:
        self.ends_s: dict[int, dict[str, float]] = {}
        self.broken: set[int] = set()

    def lease(self, partition: int, timer: str, delay_ms: int) -> None:
        self.ends_s.setdefault(partition, {})[timer] = now_s() + delay_ms / 1000

    def end(self, partition: int, timer: str) -> None:
        self.ends_s.get(partition, {}).pop(timer, None)

    def open_leases(self, partition: int) -> dict[str, int]:
        if partition in self.broken:
            raise KeyError("the journal cannot be read")
        return {timer: int((end_s - now_s()) * 1000) for timer, end_s in self.ends_s.get(partition, {}).items()}


class Instance:
    """One txn-manager's timers. Asking is noted; it ends the transaction if `ending`. It may have a `trouble`."""

    def __init__(self, server: PrivateRedis, journal: Journal, claim_ms: int, ending: bool, **options: Any) -> None:
        self.wheel = TimerWheel(server.url, "test", claim_ms, timeout_s=10.0)
        self.journal = journal
        self.due: list[tuple[int, str]] = []
        self.ending = ending
        self.trouble = ""
        timing = {"tick_s": 0.02, "flush_s": 0.005, "again_s": 0.1} | options
        self.timers = Timers(self.wheel, self.on_due, journal.open_leases, **timing)

    async def on_due(self, partition: int, timers: list[str]) -> None:
        if self.trouble == "asking hangs":
            await asyncio.Event().wait()
        if self.trouble == "asking fails":
            raise ConnectionError("Kafka is away")
        self.due += [(partition, timer) for timer in timers]
        if self.ending:
            for timer in timers:
                self.end(partition, timer)

    def lease(self, partition: int, timer: str, delay_ms: int) -> None:
        self.journal.lease(partition, timer, delay_ms)
        self.timers.lease(partition, timer, delay_ms)

    def end(self, partition: int, timer: str) -> None:
        self.journal.end(partition, timer)
        self.timers.end(partition, timer)

    async def kill(self) -> None:
        """Nothing of this instance does anything any more."""
        await self.timers.stop()
        await self.wheel.close()

    async def filled(self, *partitions: int) -> None:
        await until(lambda: all(self.timers.slots[p].state.value == "filled" for p in partitions), "slots are filled")

    async def own(self, *partitions: int) -> None:
        """Return when their slots are filled."""
        for partition in partitions:
            self.timers.own(partition)
        await self.filled(*partitions)


class Held:
    """Holds up the next call of one method of the wheel until it is let go; notes that it began."""

    def __init__(self, wheel: TimerWheel, name: str) -> None:
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        method = getattr(wheel, name)

        async def held_up(*args: Any) -> Any:
            setattr(wheel, name, method)
            self.begun.set()
            await self.go_on.wait()
            return await method(*args)

        setattr(wheel, name, held_up)


def now_s() -> float:
    return asyncio.get_running_loop().time()


async def until(predicate: Callable[[], object], message: str) -> None:
    """The predicate may be a coroutine function, too."""
    await eventually_async(predicate, LONG_S, message)


def refills(why: str) -> float:
    return counted("sluice_timer_refills_total", why=why)


def redis_ms(server: PrivateRedis) -> float:
    seconds, micros = server.client.time()
    return float(seconds * 1000 + micros / 1000)


def held(server: PrivateRedis, partition: int) -> dict[str, float]:
    """The timers in Redis, in ms from its now."""
    now_ms = redis_ms(server)
    members = server.client.zrange(f"sluice:{{test}}:timers:v1:{partition}", 0, -1, withscores=True)
    return {timer: score - now_ms for timer, score in members if score != float("inf")}


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def down(server: PrivateRedis) -> AsyncIterator[None]:
    """Redis is away meanwhile and comes back empty."""
    server.kill()
    try:
        yield
    finally:
        server.start()


@asynccontextmanager
async def frozen(server: PrivateRedis, instance: Instance) -> AsyncIterator[None]:
    """Redis stands still meanwhile, and the instance gives its calls up soon; before and after it is patient."""
    patient_s, instance.wheel.timeout_s = instance.wheel.timeout_s, 0.5
    server.freeze()
    try:
        yield
    finally:
        instance.wheel.timeout_s = patient_s
        server.thaw()


def same(journal: Journal, server: PrivateRedis, partition: int) -> bool:
    expected, found = journal.open_leases(partition), held(server, partition)
    return expected.keys() == found.keys() and all(abs(found[each] - expected[each]) < 5_000 for each in expected)
