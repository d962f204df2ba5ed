"""Callers that create and delete scopes, and what is in them, all under the same few names."""

import asyncio
from random import Random

from simulation.processes import System
from support.cancellation import cancellation

from sluice.domain.commands import Command
from sluice.domain.config import GroupRetention, ReaderGroupConfig, ScalingPolicy, StreamConfig, TableConfig
from sluice.domain.names import key_of
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup
from sluice.domain.scope.commands import CreateScope, DeleteScope, DeleteScopeRecursive
from sluice.domain.stream.commands import CreateStream, DeleteStream, SealStream
from sluice.domain.table.commands import CreateTable, DeleteTable
from sluice.domain.workflow import CancelWorkflow

SCOPES = ("s", "t")
NAMES = ("a", "b", "c")
ONE = StreamConfig(scaling=ScalingPolicy(min_segments=1))
PATIENCE_S = 8.0


class Callers:
    def __init__(self, system: System, random: Random, pause_s: float) -> None:
        self._system = system
        self._random = random
        self._pause_s = pause_s

    async def run(self, requests: int) -> None:
        """One caller: it waits for a reply, or sends the next request beside."""
        for _ in range(requests):
            waits = self._random.random() < 0.5
            for command in self._some():
                id = self._system.post(command)
                if waits:
                    await self._reply(id)
            await asyncio.sleep(self._random.choice((0.0, 0.0, 0.01, 0.1, 1.0)) * self._pause_s)

    async def _reply(self, id: str) -> None:
        until_s = self._system.loop.now + PATIENCE_S
        while self._system.reply(id) is None and self._system.loop.now < until_s:  # noqa: ASYNC110 - time is virtual
            await asyncio.sleep(0.02)

    def _cancellation(self, aggregate: str) -> CancelWorkflow:
        return cancellation(self._system.truth.view(key_of(aggregate)), aggregate)

    def _some(self) -> tuple[Command, ...]:
        random = self._random
        scope, name = random.choice(SCOPES), random.choice(NAMES)
        group = ReaderGroupConfig(
            id=f"id-{name}",
            starts={f"{scope}/{random.choice(NAMES)}": {}},
            retention=random.choice(list(GroupRetention)),
        )
        kinds: tuple[tuple[int, tuple[Command, ...]], ...] = (
            (8, (CreateStream(scope, name, ONE),)),
            (4, (SealStream(scope, name), DeleteStream(scope, name))),
            (4, (CreateScope(scope),)),
            (4, (DeleteScope(scope),)),
            (2, (DeleteScopeRecursive(scope),)),
            (2, (DeleteScopeRecursive(scope), CreateScope(scope), CreateStream(scope, name, ONE))),
            (3, (DeleteScope(scope), *(CreateStream(scope, n, ONE) for n in random.sample(NAMES, 2)))),
            (2, (CreateTable(scope, name, TableConfig(1, 4)),)),
            (1, (DeleteTable(scope, name),)),
            (1, (CreateReaderGroup(scope, name, group),)),
            (1, (DeleteReaderGroup(scope, name),)),
            (1, (self._cancellation(random.choice((f"scope:{scope}", f"stream:{scope}/{name}"))),)),
        )
        return random.choices([commands for _, commands in kinds], [weight for weight, _ in kinds])[0]
