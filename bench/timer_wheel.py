"""What the timers of leases cost: ticks, changes and fills with many open timers on one instance and one Redis.

A private Redis is started for it. The load keeps the number of open timers: most changes move a lease far away, some
move it to within a second; those fire, the transaction ends, and another one begins. The load generator runs in the
same process; how much of its time it takes, the calls of `lease` included, is given by itself.
"""

import argparse
import asyncio
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import redis
import uvloop

from bench.figures import quantile
from bench.load import LoadFailedError
from sluice_local.redis import server_binary
from txn_manager.timers import Timers
from txn_manager.wheel import metrics
from txn_manager.wheel.wheel import TimerWheel

_FAR_MS, _SOON_MS = 3_600_000, 1_000
_SOON_SHARE = 0.02
_BEAT_S = 0.005
_STEP_S = 0.01
_IDLE_S = 3.0
_READY_S = 60.0
_SLOW_US, _SLOW_KEPT = 500, 1_000


class Spread(msgspec.Struct):
    """Times in ms."""

    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float


class FirstFill(msgspec.Struct):
    """All slots from the journal, on an empty Redis."""

    took_s: float
    redis_memory_mib: float
    redis_bytes_per_timer: float


class UnderLoad(msgspec.Struct):
    """CPU in shares of a core: of this process, of its load generator alone, of Redis.

    `tick`: from the claim until everything due was checked. `redis_calls`: scripts.
    """

    seconds: float
    moves_per_s: float
    fired: int
    tick: Spread
    loop_lag: Spread
    process_cpu: float
    load_cpu: float
    redis_cpu: float
    redis_calls: int
    redis_call_mean_ms: float
    slowest_redis_call_ms: float


class AfterLoss(msgspec.Struct):
    """All slots from the journal once more, after Redis was emptied."""

    took_s: float
    cpu_s: float
    redis_cpu_s: float
    loop_lag: Spread
    slowest_redis_call_ms: float


class Measured(msgspec.Struct):
    """One run; `machine_load` is the load average of the last minute.

    `loop_lag`, of each part, is how late a task of the same event loop is woken; `loop_lag_idle` the same while nothing
    else is done: what the machine adds by itself.
    """

    timers: int
    partitions: int
    loop_lag_idle: Spread
    first_fill: FirstFill
    under_load: UnderLoad
    after_loss: AfterLoss
    machine_load: float


class Leases:
    """The journal's part: which timers are open, and when they are due, in ms of the loop's clock."""

    def __init__(self, timers: int, partitions: int) -> None:
        self._chance = random.Random(1)
        self._partitions = partitions
        self._begun = 0
        self.ends_ms: list[dict[str, float]] = [{} for _ in range(partitions)]
        self._names: list[tuple[int, str]] = []
        for _ in range(timers):
            partition, timer = self.begin()
            self.ends_ms[partition][timer] = _loop_ms() + _FAR_MS

    def begin(self) -> tuple[int, str]:
        partition = self._begun % self._partitions
        timer = f"scope-{partition:02d}/stream-{self._begun % 1000:03d}/{self._chance.getrandbits(128):032x}"
        self._begun += 1
        self._names.append((partition, timer))
        return partition, timer

    def any(self) -> tuple[int, str]:
        """Some open timer; those that ended are forgotten on the way."""
        while True:
            index = self._chance.randrange(len(self._names))
            partition, timer = self._names[index]
            if timer in self.ends_ms[partition]:
                return partition, timer
            self._names[index] = self._names[-1]
            self._names.pop()

    def delay_ms(self) -> int:
        return _SOON_MS if self._chance.random() < _SOON_SHARE else _FAR_MS

    def open_leases(self, partition: int) -> dict[str, int]:
        now_ms = _loop_ms()
        return {timer: int(end_ms - now_ms) for timer, end_ms in self.ends_ms[partition].items()}


class TimedTimers(Timers):
    """Notes how long each tick takes."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.ticks_ms: list[float] = []

    async def _tick(self) -> None:
        began = time.perf_counter()
        await super()._tick()
        self.ticks_ms.append((time.perf_counter() - began) * 1000)


class Load:
    """Changes leases at a steady pace, late by as much as the loop is."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._timers: Timers | None = None
        self.moves = 0
        self.fired = 0
        self.busy_s = 0.0

    async def run(self, timers: Timers, seconds: float, per_s: int) -> None:
        self._timers = timers
        began = time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds:
            self._catch_up(int(passed * per_s))
            await asyncio.sleep(_STEP_S)

    def _catch_up(self, moves: int) -> None:
        began = time.thread_time()
        while self.moves < moves:
            partition, timer = self._leases.any()
            self._lease(partition, timer)
            self.moves += 1
        self.busy_s += time.thread_time() - began

    def _lease(self, partition: int, timer: str) -> None:
        delay_ms = self._leases.delay_ms()
        self._leases.ends_ms[partition][timer] = _loop_ms() + delay_ms
        if self._timers is not None:
            self._timers.lease(partition, timer, delay_ms)

    async def on_due(self, partition: int, due: list[str]) -> None:
        """The question ended each transaction, and another one began."""
        self.fired += len(due)
        for timer in due:
            if self._timers is not None and self._leases.ends_ms[partition].pop(timer, None) is not None:
                self._timers.end(partition, timer)
                self._lease(*self._leases.begin())


class Heartbeat:
    """How late the event loop wakes a task."""

    def __init__(self) -> None:
        self._late_ms: list[float] = []
        self._task = asyncio.get_running_loop().create_task(self._beat())

    def restart(self) -> None:
        """Forget what was noted so far."""
        self._late_ms.clear()

    def noted(self) -> Spread:
        """Raises LoadFailedError if nothing was noted."""
        return spread(self._late_ms)

    def stop(self) -> None:
        self._task.cancel()

    async def _beat(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(_BEAT_S)
            self._late_ms.append((time.perf_counter() - began - _BEAT_S) * 1000)


def spread(times_ms: list[float]) -> Spread:
    """Raises LoadFailedError if nothing was timed."""
    if not times_ms:
        raise LoadFailedError("nothing was timed")
    values = (quantile(times_ms, 0.5), quantile(times_ms, 0.99), max(times_ms))
    return Spread(len(times_ms), *(round(value, 2) for value in values))


class Server:
    """What Redis says of itself, through a client of its own."""

    def __init__(self, port: int) -> None:
        self._client: Any = redis.Redis(port=port, decode_responses=True, socket_timeout=10)

    def ready(self) -> bool:
        try:
            return bool(self._client.ping())
        except redis.ConnectionError:
            return False

    def reset(self) -> None:
        """Count from here on, and note slow scripts."""
        self._client.config_set("slowlog-max-len", _SLOW_KEPT)
        self._client.config_set("slowlog-log-slower-than", _SLOW_US)
        self._client.slowlog_reset()
        self._client.config_resetstat()

    def calls(self) -> tuple[int, float]:
        """The number of scripts run, and the mean of their times in ms."""
        stats = self._client.info("commandstats").get("cmdstat_evalsha", {"calls": 0, "usec_per_call": 0.0})
        return int(stats["calls"]), round(float(stats["usec_per_call"]) / 1000, 3)

    def slowest_ms(self) -> float:
        """The longest of the slow scripts, 0 if there was none."""
        entries = self._client.slowlog_get(_SLOW_KEPT)
        scripts = [each["duration"] for each in entries if bytes(each["command"]).upper().startswith(b"EVALSHA")]
        return round(max(scripts, default=0) / 1000, 2)

    def cpu_s(self) -> float:
        cpu = self._client.info("cpu")
        return float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])

    def memory(self) -> int:
        return int(self._client.info("memory")["used_memory"])

    def lose_everything(self) -> None:
        self._client.flushall(asynchronous=True)


@contextmanager
def private_redis() -> Iterator[int]:
    """A server that keeps nothing; yields its port. Raises LoadFailedError."""
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        options = ("--bind", "127.0.0.1", "--port", str(port), "--dir", folder, "--save", "", "--appendonly", "no")
        process = subprocess.Popen([str(server_binary()), *options], stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + _READY_S
            while not Server(port).ready():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise LoadFailedError("Redis did not start")
            yield port
        finally:
            process.terminate()
            process.wait(10)


async def filled(partitions: int, refills_before: float) -> None:
    """Wait until that many slots have been filled since. Raises LoadFailedError."""
    deadline = time.monotonic() + _READY_S
    while refills() < refills_before + partitions:
        if time.monotonic() > deadline:
            raise LoadFailedError("the slots are not filled in time")
        await asyncio.sleep(_STEP_S)


def refills() -> float:
    """How many slots this process has filled so far."""
    return sum(s.value for m in metrics.REFILLS.collect() for s in m.samples if s.name.endswith("_total"))


class Run:
    """Timers of all partitions on one Redis, and what is measured of them. Belongs to an event loop."""

    def __init__(self, port: int, timers: int, partitions: int) -> None:
        self._timers = timers
        self._partitions = partitions
        self._server = Server(port)
        self._heartbeat = Heartbeat()
        leases = Leases(timers, partitions)
        self._load = Load(leases)
        self._wheel = TimerWheel(f"redis://127.0.0.1:{port}/0", "bench")
        self._owned = TimedTimers(self._wheel, self._load.on_due, leases.open_leases, lambda: range(partitions))

    async def idle(self) -> Spread:
        await asyncio.sleep(_IDLE_S)
        return self._heartbeat.noted()

    async def first_fill(self) -> FirstFill:
        memory, began = self._server.memory(), time.perf_counter()
        self._owned.start()
        for partition in range(self._partitions):
            self._owned.own(partition)
        await filled(self._partitions, 0)
        took_s, memory = time.perf_counter() - began, self._server.memory() - memory
        return FirstFill(round(took_s, 2), round(memory / 2**20, 1), round(memory / self._timers, 1))

    async def under_load(self, per_s: int, seconds: float) -> UnderLoad:
        self._count_anew()
        began, cpu_s, redis_s = time.perf_counter(), time.process_time(), self._server.cpu_s()
        await self._load.run(self._owned, seconds, per_s)
        took_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_s
        redis_s = self._server.cpu_s() - redis_s
        calls, mean_ms = self._server.calls()
        return UnderLoad(
            seconds=round(took_s, 1),
            moves_per_s=round(self._load.moves / took_s, 1),
            fired=self._load.fired,
            tick=spread(self._owned.ticks_ms),
            loop_lag=self._heartbeat.noted(),
            process_cpu=round(cpu_s / took_s, 3),
            load_cpu=round(self._load.busy_s / took_s, 3),
            redis_cpu=round(redis_s / took_s, 3),
            redis_calls=calls,
            redis_call_mean_ms=mean_ms,
            slowest_redis_call_ms=self._server.slowest_ms(),
        )

    async def after_loss(self) -> AfterLoss:
        self._count_anew()
        redis_s, cpu_s = self._server.cpu_s(), time.process_time()
        before, began = refills(), time.perf_counter()
        self._server.lose_everything()
        await filled(self._partitions, before)
        took_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_s
        redis_s = self._server.cpu_s() - redis_s
        slowest_ms = self._server.slowest_ms()
        return AfterLoss(round(took_s, 2), round(cpu_s, 2), round(redis_s, 2), self._heartbeat.noted(), slowest_ms)

    async def close(self) -> None:
        await self._owned.stop()
        await self._wheel.close()
        self._heartbeat.stop()

    def _count_anew(self) -> None:
        self._server.reset()
        self._heartbeat.restart()
        self._owned.ticks_ms.clear()


async def measure(port: int, timers: int, partitions: int, per_s: int, seconds: float) -> Measured:
    """Fill, load, lose everything and fill again."""
    run = Run(port, timers, partitions)
    measured = Measured(
        timers=timers,
        partitions=partitions,
        loop_lag_idle=await run.idle(),
        first_fill=await run.first_fill(),
        under_load=await run.under_load(per_s, seconds),
        after_loss=await run.after_loss(),
        machine_load=round(os.getloadavg()[0], 1),
    )
    await run.close()
    return measured


def _loop_ms() -> float:
    return asyncio.get_running_loop().time() * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the timers of leases on a private Redis; print JSON.")
    parser.add_argument("--timers", type=int, default=200_000)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--moves-per-s", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    with private_redis() as port:
        measured = uvloop.run(
            measure(port, arguments.timers, arguments.partitions, arguments.moves_per_s, arguments.seconds)
        )
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(measured), indent=2).decode() + "\n")


if __name__ == "__main__":
    main()
