"""Administrators change streams while transactions are under way: scales, truncations, updates, sealing, a new life."""

import asyncio
from random import Random

from simulation.txn.plant import Plant
from support.histories import replaced

from sluice.domain.commands import Command
from sluice.domain.config import ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.decision import Reply
from sluice.domain.stream.commands import (
    CreateStream,
    DeleteStream,
    ScaleStream,
    SealStream,
    TruncateStream,
    UpdateStream,
)

PATIENCE_S = 20.0


class Administration:
    def __init__(self, plant: Plant, random: Random, streams: list[tuple[str, str]], pause_s: float) -> None:
        self.plant = plant
        self.random = random
        self.streams = streams
        self.pause_s = pause_s

    async def create(self, segments: int, scope: str, stream: str) -> Reply | None:
        config = StreamConfig(scaling=ScalingPolicy(ScaleType.EVENTS, 10, 2, segments))
        return await self._ask(CreateStream(scope, stream, config))

    async def run(self, operations: int) -> None:
        """Do something now and then."""
        for _ in range(operations):
            await asyncio.sleep(self.random.choice((0.01, 0.2, 1.0)) * self.pause_s)
            scope, stream = self.random.choice(self.streams)
            chance = self.random.random()
            if chance < 0.55:
                await self._scale(scope, stream)
            elif chance < 0.7:
                await self._update(scope, stream)
            elif chance < 0.9:
                await self._truncate(scope, stream)
            else:
                await self._seal(scope, stream)

    async def _ask(self, command: Command) -> Reply | None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self.plant.ask(command)
        except TimeoutError:
            return None

    async def _scale(self, scope: str, stream: str) -> None:
        model = self.plant.auditor.model.streams.get((scope, stream))
        if model is None:
            return
        active = model.segments(model.active)
        i = self.random.randrange(len(active))
        is_merge = len(active) >= 4 or (self.random.random() < 0.3 and i + 1 < len(active))
        of = replaced(active, min(i, len(active) - 2) if is_merge else i, is_merge)
        await self._ask(ScaleStream(scope, stream, *of, self.plant.now_ms()))

    async def _update(self, scope: str, stream: str) -> None:
        config = StreamConfig(scaling=ScalingPolicy(min_segments=self.random.randint(1, 4)))
        await self._ask(UpdateStream(scope, stream, config))

    async def _truncate(self, scope: str, stream: str) -> None:
        """To somewhere in what is active now."""
        model = self.plant.auditor.model.streams.get((scope, stream))
        if model is None:
            return
        cut = {}
        for segment in model.segments(model.active):
            name = f"{scope}/{stream}/{segment.id & 0xFFFFFFFF}.#epoch.{segment.id >> 32}"
            stored = self.plant.stores.segments.get(name)
            cut[segment.id] = self.random.choice((0, stored.length // 32 * 16, stored.length)) if stored else 0
        await self._ask(TruncateStream(scope, stream, cut))

    async def _seal(self, scope: str, stream: str) -> None:
        sealed = await self._ask(SealStream(scope, stream))
        if sealed is None or self.random.random() < 0.3:
            return
        deleted = await self._ask(DeleteStream(scope, stream))
        if deleted is not None and self.random.random() < 0.7:
            await self.create(self.random.randint(1, 4), scope, stream)
