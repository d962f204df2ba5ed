"""Redis's part of the timers, in memory: the twin of `txn_manager.wheel.wheel.TimerWheel`, with the same methods.

Any number of wheels share one `MemoryRedis`, as instances share a server. It can be away, be emptied, and fail calls
before or after their effect.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from random import Random

from simulation.lives import SimulationLoop

from txn_manager.wheel.errors import SlotLostError, WheelUnavailableError
from txn_manager.wheel.wheel import MAX_BATCH, Change, Claimed


class _Slot:
    def __init__(self, fill: str, due_ms: dict[str, int]) -> None:
        self.fill = fill
        self.due_ms = due_ms


class MemoryRedis:
    """`failing` is the share of calls that fail while it is there."""

    def __init__(self, loop: SimulationLoop, random: Random) -> None:
        self.loop = loop
        self.random = random
        self.slots: dict[int, _Slot] = {}
        self.staged: dict[int, str] = {}
        self.away_until = 0.0
        self.failing = 0.0
        self.fills = 0

    def now_ms(self) -> int:
        return int(self.loop.now * 1000)

    def empty(self) -> None:
        """Come back without anything."""
        self.slots.clear()
        self.staged.clear()


class MemoryWheel:
    """One instance's way to it; `touch` is called with every call, and may not return."""

    def __init__(self, redis: MemoryRedis, claim_ms: int, touch: Callable[[str], None]) -> None:
        self.claim_ms = claim_ms
        self._redis = redis
        self._touch = touch

    async def close(self) -> None:
        """See TimerWheel."""

    async def change(
        self, changes: Mapping[int, Mapping[str, Change]], fills: Mapping[int, str] | None = None
    ) -> list[int]:
        fails = await self._before("change")
        now, lost = self._redis.now_ms(), []
        for partition, of_partition in changes.items():
            slot = self._redis.slots.get(partition)
            if slot is None or (fills or {}).get(partition, slot.fill) != slot.fill:
                lost.append(partition)
                continue
            for timer, delay_ms in of_partition.items():
                if delay_ms is None:
                    slot.due_ms.pop(timer, None)
                else:
                    slot.due_ms[timer] = now + delay_ms
        self._after("change", fails)
        return lost

    async def refill(self, partition: int, delays_ms: Mapping[str, int]) -> str:
        redis = self._redis
        fails = await self._before("stage")
        redis.fills += 1
        fill = redis.staged[partition] = f"fill-{redis.fills}"
        now = redis.now_ms()
        staged = {timer: now + delay_ms for timer, delay_ms in delays_ms.items()}
        self._after("stage", fails)
        fails = await self._before("publish")
        if redis.staged.get(partition) != fill:
            raise SlotLostError(partition)
        del redis.staged[partition]
        redis.slots[partition] = _Slot(fill, staged)
        self._after("publish", fails)
        return fill

    async def claim(self, partitions: Collection[int], limit: int = MAX_BATCH) -> Claimed:
        fails = await self._before("claim")
        now = self._redis.now_ms()
        due: list[tuple[int, str]] = []
        fills: dict[int, str] = {}
        lost = []
        for partition in partitions:
            slot = self._redis.slots.get(partition)
            if slot is None:
                lost.append(partition)
                continue
            fills[partition] = slot.fill
            taken = sorted((at, timer) for timer, at in slot.due_ms.items() if at <= now)[: limit - len(due)]
            for _, timer in taken:
                slot.due_ms[timer] = now + self.claim_ms
                due.append((partition, timer))
        self._after("claim", fails)
        return Claimed(due, lost, fills, now)

    async def _before(self, call: str) -> bool:
        """Whether the call is to fail after its effect. Raises WheelUnavailableError."""
        self._touch(f"redis {call}")
        redis = self._redis
        if redis.loop.now < redis.away_until:
            if redis.random.random() < 0.5:
                await asyncio.sleep(min(2.0, redis.away_until - redis.loop.now))
            raise WheelUnavailableError("away")
        if not redis.failing:
            return False
        await asyncio.sleep(redis.random.choice((0.0, 0.001, 0.5)))
        if redis.random.random() < redis.failing:
            if redis.random.random() < 0.5:
                raise WheelUnavailableError("failed before")
            return True
        return False

    def _after(self, call: str, fails: bool) -> None:
        self._touch(f"redis {call} done")
        if fails:
            raise WheelUnavailableError("failed after")
