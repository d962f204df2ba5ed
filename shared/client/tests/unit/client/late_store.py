"""Segment stores behind connections that break at any moment, while what was sent on them may still arrive later.

A late append counts only if nothing of its writer was stored since the writer was set up on the connection that it
came by (segment-store-wire-protocol 2.5). Everything is drawn from one seed.
"""

import asyncio
from random import Random
from typing import Any
from uuid import UUID

from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import Append, InMemorySegmentStore, Writers, segment_of
from sluice.pravega.wire import appends
from sluice.pravega.wire.command import Command, Numbered
from sluice.pravega.wire.segments import NULL_ATTRIBUTE_VALUE

_SLOWEST_S = 0.05


class LateStore(InMemorySegmentStore):
    """`broken` is the share of requests whose connection breaks before the reply comes, half of them arrive anyway."""

    def __init__(self, random: Random, broken: float) -> None:
        super().__init__()
        self.broken = broken
        self._random = random
        self._known: dict[UUID, int] = {}
        self._under_way: set[asyncio.Task[Command]] = set()

    async def call(self, request: Numbered, timeout_s: float | None, writers: Writers | None = None) -> Command:
        known = self._known.get(getattr(request, "writer_id", UUID(int=0)), NULL_ATTRIBUTE_VALUE)
        breaks = self._random.random() < self.broken
        if breaks and self._random.random() < 0.5:
            await self._wait()
            raise ConnectionFailure(Failure.LOST, "before it arrived")
        effect = asyncio.create_task(self._arrive(request, known))
        self._under_way.add(effect)
        effect.add_done_callback(self._forget)
        if breaks:
            await self._wait()
            raise ConnectionFailure(Failure.LOST, "with or before its effect")
        reply = await asyncio.shield(effect)
        if isinstance(reply, appends.AppendSetup):
            self._known[reply.writer_id] = reply.last_event_number
        if isinstance(reply, appends.DataAppended):
            self._known[reply.writer_id] = reply.event_number
        return reply

    async def settle(self) -> None:
        """Waits until all that was sent has arrived."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def _arrive(self, request: Any, known: int) -> Command:
        await self._wait()
        name = segment_of(request, self._writers)
        if isinstance(request, Append):
            self._writers[request.writer_id] = (name, known)
        return self._answer(request, name, self._writers)

    async def _wait(self) -> None:
        await asyncio.sleep(self._random.uniform(0.0, _SLOWEST_S) if self._random.random() < 0.3 else 0.0)

    def _forget(self, effect: asyncio.Task[Command]) -> None:
        self._under_way.discard(effect)
        if not effect.cancelled():
            # That an append was too late matters only to its caller, who has waited for it.
            effect.exception()
