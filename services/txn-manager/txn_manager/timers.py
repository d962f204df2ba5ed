"""The timers of the leases this instance looks after: Redis follows the journal, what is due becomes CheckLease.

Nothing here waits for Redis but three tasks of its own. One writes the changes of leases, gathered for some tens of
milliseconds, the latest of each timer; one ticks: it claims what is due and submits the checks; one fills slots from
the journal. Nothing is stored for a Redis that is away: whatever could not be written makes its slot stale, changes of
a stale slot are dropped, and the next fill has them: it reads the journal later than they were made. So there is no
order to restore and no memory to bound beyond what is pending.

A slot is filled when it becomes ours, when a change of it failed, when it is lost, when too much was pending, when
Redis's clock was set back, and when another instance has filled it since: it may have read an older journal than we.
Any other failure of Redis leaves slots as they are: one that lost anything meanwhile says so itself, and a Redis that
is merely slow is not given everything to write again.

Concurrency: everything belongs to the event loop. A fill reads the journal when no write is under way, so that no older
change can land on the newer content.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from sluice.exceptions import in_words
from txn_manager.wheel import metrics
from txn_manager.wheel.errors import SlotLostError, WheelUnavailableError
from txn_manager.wheel.owned import OwnedSlot, State, Why
from txn_manager.wheel.wheel import Claimed, TimerWheel

log = logging.getLogger(__name__)

T = TypeVar("T")

OnDue = Callable[[int, list[str]], Awaitable[None]]
OpenLeases = Callable[[int], Mapping[str, int]]

_CLAIM_LIMIT = 500
_CLAIMS_PER_TICK = 20
_CLOCK_STEP_MS = 5_000


class Timers:
    """Keeps the slots of owned partitions filled and submits checks of the timers that are due.

    `on_due(partition, timers)` sends the checks, within the time of a claim; what it fails to send fires again.
    `open_leases(partition)` gives all open timers with their delay in ms from now, as the folded journal has them;
    overdue ones may be negative. At most `max_pending` changes wait per partition. A slot that others fill as well is
    not filled again within `again_s`.
    """

    def __init__(
        self,
        wheel: TimerWheel,
        on_due: OnDue,
        open_leases: OpenLeases,
        tick_s: float = 1.0,
        flush_s: float = 0.03,
        max_pending: int = 100_000,
        again_s: float = 5.0,
    ) -> None:
        self._wheel = wheel
        self._on_due = on_due
        self._open_leases = open_leases
        self._tick_s = tick_s
        self._flush_s = flush_s
        self._max_pending = max_pending
        self._again_s = again_s
        self.slots: dict[int, OwnedSlot] = {}
        self._changed = asyncio.Event()
        self._stale = asyncio.Event()
        self._writing = asyncio.Lock()
        self._reached = False
        self._away: tuple[float, str] | None = None
        self._clock_offset_ms: float | None = None
        self._turn = 0
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to tick; waits for nothing."""
        loop = asyncio.get_running_loop()
        # A copy: it is called on another thread.
        metrics.PENDING.set_function(lambda: sum(len(slot.pending) for slot in list(self.slots.values())))
        self._tasks = [
            loop.create_task(self._keep_ticking(), name="timer ticks"),
            loop.create_task(self._keep_flushing(), name="timer changes"),
            loop.create_task(self._keep_filling(), name="timer fills"),
        ]

    async def stop(self) -> None:
        """End; the next owners of the partitions set what is pending, for they fill the slots anyway."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    def own(self, partition: int) -> None:
        """Fill this partition's slot and claim its timers from now on; nothing happens if that is so already.

        The caller reports every change of its leases from here on, no earlier than `open_leases` knows it.
        """
        if partition not in self.slots:
            self.slots[partition] = OwnedSlot()
            self._stale.set()

    def disown(self, partition: int) -> None:
        """Another instance looks after this partition."""
        self.slots.pop(partition, None)

    def lease(self, partition: int, timer: str, delay_ms: int) -> None:
        """A lease began or moved. For partitions of others this does nothing: their owner gets it as well."""
        self._note(partition, timer, _now_ms() + delay_ms)

    def end(self, partition: int, timer: str) -> None:
        """A lease ended."""
        self._note(partition, timer, None)

    def problem(self) -> str | None:
        """Why timers may not fire, for operators; None if they do."""
        if self._away is not None:
            since_s, why = self._away
            since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since_s))
            return f"Redis away since {since}: {why}; no lease runs out meanwhile"
        failed = {partition: slot.failure for partition, slot in self.slots.items() if slot.failure is not None}
        return "; ".join(f"timers of partition {each} cannot be filled: {why}" for each, why in failed.items()) or None

    def unreached(self) -> str | None:
        """Why no timer can be stored yet; None once Redis has answered, whatever becomes of it, or if none are ours."""
        if self._reached or not self.slots:
            return None
        return self.problem() or "no request to Redis yet"

    def _note(self, partition: int, timer: str, due_ms: float | None) -> None:
        slot = self.slots.get(partition)
        if slot is None or slot.state is State.STALE:
            return
        slot.pending[timer] = due_ms
        if len(slot.pending) > self._max_pending:
            log.warning("too many changes of timers pending", extra={"partition": partition})
            self._neglect(slot, Why.OVERFLOW)
        elif not self._changed.is_set():
            self._changed.set()

    async def _keep_ticking(self) -> None:
        while True:
            if self.slots:
                with metrics.TICK_SECONDS.time():
                    await self._guarded(self._tick(), "tick of the timers failed")
            await asyncio.sleep(self._tick_s)

    async def _tick(self) -> None:
        """Redis gets a request even if no slot can be claimed: that is how its return is noticed."""
        claimed = await self._claim()
        for _ in range(_CLAIMS_PER_TICK):
            await self._submit_checks(claimed.due)
            if len(claimed.due) < _CLAIM_LIMIT:
                return
            claimed = await self._claim()

    async def _claim(self) -> Claimed:
        """Claim from the filled slots, each time beginning with another one, and judge what is learned about them."""
        filled = {partition: slot for partition, slot in self.slots.items() if slot.state is State.FILLED}
        partitions = list(filled)
        first = self._turn % max(1, len(partitions))
        self._turn += 1
        fills = {partition: slot.fill for partition, slot in filled.items()}
        before_ms = _now_ms()
        claimed = await self.call(self._wheel.claim(partitions[first:] + partitions[:first], _CLAIM_LIMIT))
        self._compare_clocks(before_ms, claimed.at_ms)
        for partition, fill in fills.items():
            self._judge(filled[partition], fill, claimed.fills.get(partition))
        metrics.TIMERS_FIRED.inc(len(claimed.due))
        return claimed

    def _judge(self, slot: OwnedSlot, expected: str, found: str | None) -> None:
        """Compare the fill that Redis holds with ours, unless we have filled the slot again since that request."""
        if slot.state is not State.FILLED or slot.fill != expected or found == expected:
            return
        if found is None:
            self._neglect(slot, Why.LOST)
        elif asyncio.get_running_loop().time() - slot.filled_s >= self._again_s:
            self._neglect(slot, Why.FOREIGN)

    def _compare_clocks(self, before_ms: float, redis_ms: int) -> None:
        """A Redis whose clock was set back would let every timer wait that much longer."""
        offset_ms = redis_ms - before_ms
        if self._clock_offset_ms is not None and offset_ms < self._clock_offset_ms - _CLOCK_STEP_MS:
            log.warning("the clock of Redis was set back", extra={"by_ms": int(self._clock_offset_ms - offset_ms)})
            for slot in self.slots.values():
                self._neglect(slot, Why.CLOCK)
        self._clock_offset_ms = offset_ms

    async def _submit_checks(self, due: list[tuple[int, str]]) -> None:
        timers: defaultdict[int, list[str]] = defaultdict(list)
        for partition, timer in due:
            timers[partition].append(timer)
        await asyncio.gather(*(self._submit_partition(partition, some) for partition, some in timers.items()))

    async def _submit_partition(self, partition: int, timers: list[str]) -> None:
        try:
            async with asyncio.timeout(self._wheel.claim_ms / 1000):
                await self._on_due(partition, timers)
        except Exception as error:  # noqa: BLE001 - logged and counted; the claim expires
            metrics.ON_DUE_FAILURES.inc()
            facts = {"partition": partition, "timers": len(timers), "error": in_words(error)}
            log.warning("due timers were not checked; they fire again", extra=facts)

    async def _keep_flushing(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(self._flush_s)
            self._changed.clear()
            await self._guarded(self._flush(), "changes of timers not written")

    async def _flush(self) -> None:
        async with self._writing:
            slots = {p: slot for p, slot in self.slots.items() if slot.state is State.FILLED and slot.pending}
            if not slots:
                return
            now_ms = _now_ms()
            changes = {partition: slot.take(now_ms) for partition, slot in slots.items()}
            fills = {partition: slot.fill for partition, slot in slots.items()}
            try:
                lost = await self.call(self._wheel.change(changes, fills))
            except Exception as error:
                for slot in slots.values():
                    self._neglect(slot, Why.AWAY if isinstance(error, WheelUnavailableError) else Why.FAILED)
                raise
            for partition in lost:
                self._neglect(slots[partition], Why.LOST)
        ended = sum(delay_ms is None for some in changes.values() for delay_ms in some.values())
        metrics.TIMERS_CANCELLED.inc(ended)
        metrics.TIMERS_SET.inc(sum(map(len, changes.values())) - ended)

    async def _keep_filling(self) -> None:
        """Fill what is stale, one slot after the other; while Redis is away, wait until a tick has found it again."""
        while True:
            self._stale.clear()
            stale = [partition for partition, slot in self.slots.items() if slot.state is State.STALE]
            if self._away is not None or not stale:
                await self._stale.wait()
                continue
            filled = [await self._fill(partition) for partition in stale]
            if not all(filled):
                await asyncio.sleep(self._tick_s)

    async def _fill(self, partition: int) -> bool:
        """Return whether nothing stood in the way."""
        slot = self.slots.get(partition)
        if slot is None or self._away is not None:
            return True
        why = slot.why
        try:
            async with self._writing:
                slot.begin()
                # A copy: the journal goes on while Redis takes it.
                leases = dict(self._open_leases(partition))
            fill = await self.call(self._wheel.refill(partition, leases))
        except WheelUnavailableError:
            metrics.REFILL_FAILURES.inc()
            slot.neglect(why)
            return False
        except Exception as error:
            metrics.REFILL_FAILURES.inc()
            slot.neglect(Why.LOST if isinstance(error, SlotLostError) else Why.FAILED)
            slot.failure = in_words(error)
            log.exception("timers not filled from the journal", extra={"partition": partition})
            return False
        metrics.REFILLS.labels(why.value).inc()
        facts = {"partition": partition, "timers": len(leases), "why": why.value}
        log.info("timers filled from the journal", extra=facts)
        # Too much may have been pending meanwhile, or the clock been set back.
        if slot.state is State.FILLING:
            slot.complete(fill, asyncio.get_running_loop().time())
            self._changed.set()
        return True

    async def call(self, call: Awaitable[T]) -> T:
        """Call Redis and note whether it is there. Raises WheelUnavailableError, SlotLostError."""
        try:
            answer = await call
        except WheelUnavailableError as error:
            metrics.REDIS_FAILURES.inc()
            if self._away is None:
                log.warning("Redis away", extra={"error": str(error)})
            self._away = (time.time() if self._away is None else self._away[0], str(error))
            raise
        self._reached = True
        if self._away is not None:
            log.info("Redis back", extra={"away_s": round(time.time() - self._away[0], 1)})
            self._away = None
            self._stale.set()
        return answer

    def _neglect(self, slot: OwnedSlot, why: Why) -> None:
        slot.neglect(why)
        self._stale.set()

    async def _guarded(self, step: Awaitable[None], failed: str) -> None:
        """The tasks go on whatever happens; that Redis is away has been logged already."""
        try:
            await step
        except WheelUnavailableError:
            return
        except Exception:
            log.exception(failed)


def _now_ms() -> float:
    return asyncio.get_running_loop().time() * 1000
