"""The timers of the leases this instance looks after: Redis follows the journal, what is due becomes CheckLease.

Each partition has a wheel and a task that gives it a turn once a second: what began, got shorter or ended goes to
Redis, and what is due comes back. A lease that got longer is left where it is; so pings send nothing to Redis.

There is one answer to any doubt about a wheel (an error, a time-out, a wheel that is lost, a clock that was set back):
it is left, and another one under a new name is filled from the journal. Until that is read no change is kept, for the
journal has them all. What is due is submitted before its timer is moved, so no check is lost in between.

Concurrency: everything belongs to the event loop; of a partition one call on Redis is under way at a time.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from sluice.engine.ports import Clock
from sluice.exceptions import in_words
from txn_manager.wheel import metrics
from txn_manager.wheel.errors import WheelLostError, WheelUnavailableError
from txn_manager.wheel.timer_redis import MAX_BATCH, TimerRedis
from txn_manager.wheel.wheel import Wheel

log = logging.getLogger(__name__)

OnDue = Callable[[int, list[str]], Awaitable[dict[str, int | None]]]
OpenLeases = Callable[[int], Mapping[str, int]]


class _Failure(msgspec.Struct, frozen=True):
    """Why no wheel of a partition can be filled, in words, and since when, in epoch ms."""

    since_ms: int
    what: str
    why: str


class _Owned:
    """A partition of ours; it has no wheel while there is a doubt about the last one."""

    wheel: Wheel | None = None
    failure: _Failure | None = None
    task: asyncio.Task[None]


class Timers:
    """Keeps the wheels of owned partitions and submits checks of the timers that are due. `name` is the cluster's.

    `open_leases(partition)` gives all open timers with the time at which each is due, as the folded journal has them.
    `on_due(partition, timers)` submits the checks and says when each timer is due next, None to take it out; if it
    fails all are due a second time. Times are epoch ms of `clock`.
    """

    def __init__(
        self,
        redis: TimerRedis,
        name: str,
        clock: Clock,
        on_due: OnDue,
        open_leases: OpenLeases,
        tick_s: float = 1.0,
    ) -> None:
        self._redis = redis
        self._name = name
        self._clock = clock
        self._on_due = on_due
        self._open_leases = open_leases
        self._tick_s = tick_s
        self._owned: dict[int, _Owned] = {}
        self._reached = False
        metrics.PENDING.set_function(self._pending)

    async def stop(self) -> None:
        """End; the next owners of the partitions fill wheels of their own."""
        tasks = [owned.task for owned in self._owned.values()]
        for partition in list(self._owned):
            self.disown(partition)
        await asyncio.gather(*tasks, return_exceptions=True)

    def own(self, partition: int) -> None:
        """Keep a wheel of this partition from now on; nothing happens if that is so already.

        The caller reports every change of its leases from here on, no earlier than `open_leases` knows it.
        """
        if partition not in self._owned:
            owned = self._owned[partition] = _Owned()
            keeping = self._keep(partition, owned)
            owned.task = asyncio.get_running_loop().create_task(keeping, name=f"timers of partition {partition}")

    def disown(self, partition: int) -> None:
        """Another instance looks after this partition; the wheel expires."""
        owned = self._owned.pop(partition, None)
        if owned is not None:
            owned.task.cancel()

    def lease(self, partition: int, timer: str, due_ms: int) -> None:
        """A lease began or moved. For partitions of others this does nothing: their owner gets it as well."""
        owned = self._owned.get(partition)
        if owned is not None and owned.wheel is not None:
            owned.wheel.lease(timer, due_ms)

    def end(self, partition: int, timer: str) -> None:
        """A lease ended."""
        owned = self._owned.get(partition)
        if owned is not None and owned.wheel is not None:
            owned.wheel.end(timer)

    def problem(self) -> str | None:
        """Why timers may not fire, for operators; None if they do."""
        failed = {partition: owned.failure for partition, owned in self._owned.items() if owned.failure is not None}
        if not failed:
            return None
        first = min(failed.values(), key=lambda failure: failure.since_ms)
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(first.since_ms / 1000))
        partitions = ", ".join(map(str, sorted(failed)))
        return f"{first.what} since {since}: {first.why}; no lease of partitions {partitions} runs out meanwhile"

    def unreached(self) -> str | None:
        """Why no timer can be stored yet; None once Redis has answered, whatever becomes of it, or if none are ours."""
        if self._reached or not self._owned:
            return None
        return self.problem() or "no request to Redis yet"

    def _pending(self) -> int:
        """It is called on another thread, so it looks at a copy."""
        wheels = [owned.wheel for owned in list(self._owned.values())]
        return sum(len(wheel.pending) for wheel in wheels if wheel is not None)

    async def _keep(self, partition: int, owned: _Owned) -> None:
        """One wheel after the other, each until there is a doubt about it."""
        former, why = "", "owned"
        while True:
            # The braces keep the wheels of a partition on one node of a Redis Cluster.
            wheel = Wheel(f"sluice:timers:{{{self._name}:{partition}}}:{secrets.token_hex(8)}", former)
            try:
                await self._fill(partition, owned, wheel, why)
                while True:
                    await asyncio.sleep(self._tick_s)
                    if not wheel.rests(self._clock.now_ms()):
                        with metrics.TICK_SECONDS.time():
                            await self._tick(partition, wheel)
            except WheelLostError as error:
                why = str(error)
                if not wheel.is_filled:
                    self._failed(partition, owned, "timers not filled", why)
            except WheelUnavailableError as error:
                metrics.REDIS_FAILURES.inc()
                why = "redis away"
                self._failed(partition, owned, "Redis away", str(error))
            except Exception as error:
                log.exception("timers not filled from the journal", extra={"partition": partition})
                why = "failed"
                self._failed(partition, owned, "timers not filled", in_words(error))
            finally:
                owned.wheel = None
            if not wheel.is_filled:
                metrics.REFILL_FAILURES.inc()
            former = wheel.key if wheel.run else former
            await asyncio.sleep(self._tick_s)

    def _failed(self, partition: int, owned: _Owned, what: str, why: str) -> None:
        if owned.failure is None:
            owned.failure = _Failure(self._clock.now_ms(), what, why)
            log.warning(what, extra={"partition": partition, "error": why})

    async def _fill(self, partition: int, owned: _Owned, wheel: Wheel, why: str) -> None:
        """Redis has the wheel before the journal is read. What changes from then on is told to the wheel."""
        await self._turn(wheel)
        owned.wheel = wheel
        wheel.pending.update(self._open_leases(partition))
        facts = {"partition": partition, "timers": len(wheel.pending), "why": why}
        await self._tick(partition, wheel)
        wheel.is_filled = True
        owned.failure = None
        metrics.REFILLS.labels(why).inc()
        log.info("timers filled from the journal", extra=facts)

    async def _tick(self, partition: int, wheel: Wheel) -> None:
        """Write what has changed, then submit what is due, until neither fills a batch."""
        while True:
            written, due = await self._turn(wheel)
            if written == MAX_BATCH:
                continue
            if not await self._submit_checks(partition, wheel, due) or len(due) < MAX_BATCH:
                return

    async def _submit_checks(self, partition: int, wheel: Wheel, due: list[str]) -> bool:
        """Return whether the timers have been moved, so that others can be returned."""
        if due:
            metrics.TIMERS_FIRED.inc(len(due))
            try:
                wheel.put(await self._on_due(partition, due))
            except Exception as error:  # noqa: BLE001 - logged and counted; they are due with the next tick, too
                metrics.ON_DUE_FAILURES.inc()
                facts = {"partition": partition, "timers": len(due), "error": in_words(error)}
                log.warning("due timers were not checked; they fire again", extra=facts)
                return False
        return True

    async def _turn(self, wheel: Wheel) -> tuple[int, list[str]]:
        """How many changes were written, and what is due."""
        now_ms = self._clock.now_ms()
        changes = wheel.take(now_ms)
        turn = await self._redis.turn(wheel.key, wheel.former, wheel.run, changes)
        self._reached = True
        wheel.turned(turn, now_ms)
        if wheel.is_filled:
            ended = sum(delay_ms is None for delay_ms in changes.values())
            metrics.TIMERS_CANCELLED.inc(ended)
            metrics.TIMERS_SET.inc(len(changes) - ended)
        return len(changes), turn.due
