"""Requests that cross each other: they come side by side, stores fail, the process is killed, some is cancelled.

Every run follows from its seed. At its end nothing fails any more: then every request is answered, nothing is under
way, and the invariants hold. `SIM_SEED` runs one seed.
"""

import asyncio
import os
from random import Random

import pytest
from simulation import invariants
from simulation.lives import run
from simulation.world import World
from support.effort import effort
from support.histories import replaced

from sluice.domain.commands import Command
from sluice.domain.config import GroupRetention, ReaderGroupConfig, ScalingPolicy, StreamConfig, TableConfig
from sluice.domain.ids import StreamId
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup
from sluice.domain.scope.commands import CreateScope, DeleteScope, DeleteScopeRecursive
from sluice.domain.stream.commands import (
    CreateStream,
    DeleteStream,
    ScaleStream,
    SealStream,
    TruncateStream,
    UpdateStream,
)
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.table.commands import CreateTable, DeleteTable
from sluice.domain.workflow import RetryWorkflow
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import Moment
from stream_workflows.service import WorkflowService

SEED = os.environ.get("SIM_SEED")
SEEDS = [int(SEED)] if SEED else list(range(effort(100, 20)))


class Crossing(World):
    """`share` of the requests to segment stores fail, before or after their effect."""

    def __init__(self, random: Random) -> None:
        self.share = 0.0
        self.open_requests: set[str] = set()
        super().__init__(random.choice((2, 4, 256)), random)

    def _touch_store(self, moment: Moment, request: str, segment: str) -> None:
        if self.share and self.random.random() < self.share:
            raise ConnectionFailure(Failure.TIMED_OUT)
        super()._touch_store(moment, request, segment)

    async def go(self) -> None:
        random = self.random
        for scope in ("sc", "other"):
            await self.ask(CreateScope(scope))
        for _ in range(random.randint(5, 40)):
            self.share = random.choice((0.0, 0.0, 0.3, 1.0))
            if random.random() < 0.3:
                self.crashes, self.touches = [random.randint(0, 25)], 0
            self.open_requests.add(self.post(self.command()))
            await asyncio.sleep(random.choice((0.0, 0.0, 0.0, 0.01, 0.1, 1.0, 5.0)))
        self.share, self.crashes = 0.0, []
        await self.until(self.has_ended)
        assert not self.dead_letters
        invariants.check(self)

    def has_ended(self) -> bool:
        self.open_requests = {id for id in self.open_requests if self.reply(id) is None}
        return not self.open_requests and self.is_at_rest()

    def command(self) -> Command:
        """Anything, of what may be there or not."""
        random = self.random
        scope, name, other = random.choice(("sc", "sc", "sc", "other")), random.choice("ab"), random.choice("ab")
        config = StreamConfig(scaling=ScalingPolicy(min_segments=random.randint(1, 4)))
        group = ReaderGroupConfig(
            id=f"id-{name}", starts={f"{scope}/{other}": {}}, retention=random.choice(list(GroupRetention))
        )
        aggregate = random.choice(
            (f"stream:{scope}/{name}", f"group:{scope}/{name}", f"table:{scope}/{name}", f"scope:{scope}")
        )
        return random.choice(
            (
                CreateScope(scope),
                CreateScope(scope),
                DeleteScope(scope),
                DeleteScopeRecursive(scope),
                *(CreateStream(scope, name, config),) * 4,
                *(self._scale(scope, name),) * 3,
                *(UpdateStream(scope, name, config),) * 2,
                self._truncate(scope, name),
                SealStream(scope, name),
                DeleteStream(scope, name),
                *(CreateReaderGroup(scope, name, group),) * 2,
                DeleteReaderGroup(scope, name),
                CreateTable(scope, name, TableConfig(random.randint(1, 3), 4)),
                DeleteTable(scope, name),
                RetryWorkflow(aggregate),
                *(self.cancellation(aggregate),) * 2,
            )
        )

    def _find(self, scope: str, name: str) -> Stream | None:
        return find_stream(self.view(StreamId(scope, name).key), StreamId(scope, name))

    def _scale(self, scope: str, name: str) -> ScaleStream:
        stream = self._find(scope, name)
        if stream is None:
            return ScaleStream(scope, name, (0,), ((0.0, 1.0),), 0)
        active = stream.active_segments()
        i = self.random.randrange(len(active))
        is_merge = len(active) > 1 and self.random.random() < 0.4
        return ScaleStream(scope, name, *replaced(active, min(i, len(active) - 2) if is_merge else i, is_merge), 0)

    def _truncate(self, scope: str, name: str) -> TruncateStream:
        stream = self._find(scope, name)
        return TruncateStream(scope, name, dict.fromkeys(stream.active_epoch.segments, 0) if stream else {0: 0})


def run_seed(seed: int) -> list[str]:
    """What came to stand in the journal and in the topic of requests."""
    world: list[Crossing] = []

    async def scene() -> None:
        world.append(Crossing(Random(seed)))
        await world[0].go()

    run(scene())
    logs = (*world[0].journal, *world[0].requests)
    return [f"{message.timestamp()[1]} {message.value().decode()}" for log in logs for message in log]


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_crosses_all_is_answered_and_holds(seed: int) -> None:
    run_seed(seed)


def test_a_workflow_that_is_not_taken_over_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(_service: WorkflowService, _partition: int) -> None:
        return None

    monkeypatch.setattr(WorkflowService, "_take_over", nothing)
    with pytest.raises(TimeoutError):
        run_seed(0)
