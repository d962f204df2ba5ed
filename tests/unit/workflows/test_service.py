"""The service in memory: which workflows it runs, whatever recorded their beginning."""

import asyncio

import pytest
from support.memory_world import MemoryWorld, settle, until

from sluice.domain.config import StreamConfig, TableConfig
from sluice.domain.ids import StreamId, TableId
from sluice.domain.names import MARK_PREFIX
from sluice.domain.scope.events import ScopeCreated
from sluice.domain.segment import Segment
from sluice.domain.stream.commands import CreateStream
from sluice.domain.stream.state import StreamState, find_stream
from sluice.domain.table.events import TableCreationStarted
from sluice.domain.table.state import TableState, find_table
from stream_workflows.service import WorkflowService
from stream_workflows.settings import WorkflowSettings


class Scene(MemoryWorld):
    """An instance of the service, which has taken over everything, and a scope."""

    def __init__(self) -> None:
        super().__init__()
        settings = WorkflowSettings(partitions=self.broker.partitions)
        self.consumer = WorkflowService(self.first.runtime, settings, self.store).consumer

    async def begin_table(self) -> None:
        """Record that the creation of a table has begun."""
        segments = (Segment(0, 0.0, 1.0),)
        created = TableCreationStarted("sc", "kv", "i", config=TableConfig(1, 4), created_at=0, segments=segments)
        await self.seed("sc/kv", created)

    def is_table_there(self) -> bool:
        found = find_table(self.view("sc/kv"), TableId("sc", "kv"))
        return found is not None and found.state is TableState.ACTIVE


@pytest.fixture
async def scene() -> Scene:
    scene = Scene()
    await scene.seed("sc", ScopeCreated("sc", creation_id="c", at=0))
    scene.consumer.start()
    await until(lambda: bool(scene.consumer.partitions))
    await settle()
    return scene


async def test_a_stream_is_created_with_its_segments_and_the_reply(scene: Scene) -> None:
    command = CreateStream("sc", "st", StreamConfig())
    reply = scene.first.journal.expect_reply("b", (command.key,))
    scene.request("b", command)
    assert (await asyncio.wait_for(reply, 5)).status == "SUCCESS"
    found = find_stream(scene.view(command.key), StreamId("sc", "st"))
    assert found is not None and found.state is StreamState.ACTIVE
    created = {name for name in scene.store.segments if name.startswith("sc/")}
    assert created == {"sc/st/0.#epoch.0", f"sc/{MARK_PREFIX}st/0.#epoch.0"}


async def test_a_workflow_that_a_late_entry_of_an_earlier_owner_begins_is_run(scene: Scene) -> None:
    await asyncio.sleep(60)
    await scene.begin_table()
    await until(scene.is_table_there, 5)


async def test_a_workflow_in_a_partition_of_another_owner_is_left_alone(scene: Scene) -> None:
    scene.consumer.revoked([scene.first.journal.partition_of("sc/kv")])
    await scene.begin_table()
    await asyncio.sleep(60)
    assert not scene.is_table_there()
