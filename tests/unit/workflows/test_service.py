"""The service in memory: which workflows it runs, whoever recorded their beginning, and how a deletion is cancelled."""

import asyncio
from typing import Any

import pytest
from support.memory_world import MemoryWorld, settle, until

from sluice.domain.config import StreamConfig, TableConfig
from sluice.domain.decision import Reply
from sluice.domain.ids import StreamId, TableId
from sluice.domain.names import MARK_PREFIX, scope_aggregate
from sluice.domain.scope.commands import DeleteScope
from sluice.domain.scope.events import ScopeCreated, ScopeDeleted, ScopeKept
from sluice.domain.scope.state import find_scope
from sluice.domain.segment import Segment
from sluice.domain.status import Status
from sluice.domain.stream.commands import CreateStream
from sluice.domain.stream.state import StreamState, find_stream
from sluice.domain.table.events import TableCreationStarted
from sluice.domain.table.state import TableState, find_table
from sluice.domain.workflow import CancelWorkflow
from sluice.kafka.topics import JOURNAL
from sluice.memory.broker import MemoryMessage
from stream_workflows.service import WorkflowService
from stream_workflows.settings import WorkflowSettings

KEY = StreamId("sc", "st").key
SCOPE = ScopeCreated(scope="sc", creation_id="c", at=0)
SEGMENTS = (Segment(0, 0.0, 1.0),)


class Scene(MemoryWorld):
    """An instance of the service, and a second process that sees the replies."""

    def __init__(self) -> None:
        super().__init__()
        self.second = self.process()
        settings = WorkflowSettings(partitions=self.broker.partitions)
        self.consumer = WorkflowService(self.first.runtime, settings, self.store).consumer

    async def start(self) -> None:
        """Return when the instance has taken over what the group gives it."""
        self.consumer.start()
        await until(lambda: bool(self.consumer.partitions))
        await settle()

    def send(self, id: str, command: Any) -> "asyncio.Future[Reply]":
        """The reply to a request that is sent now, as the second process sees it."""
        reply = self.second.journal.expect_reply(id, (command.key,))
        self.request(id, command)
        return reply

    @property
    def stream_state(self) -> StreamState | None:
        found = find_stream(self.view(KEY), StreamId("sc", "st"))
        return found.state if found is not None else None

    def is_table_there(self, table: str) -> bool:
        found = find_table(self.view(f"sc/{table}"), TableId("sc", table))
        return found is not None and found.state is TableState.ACTIVE


@pytest.fixture
async def scene() -> Scene:
    scene = Scene()
    await scene.seed("sc", SCOPE)
    await scene.start()
    return scene


def creation(table: str) -> TableCreationStarted:
    return TableCreationStarted("sc", table, "i", config=TableConfig(1, 4), created_at=0, segments=SEGMENTS)


async def test_a_stream_is_created_with_its_segments_and_the_reply(scene: Scene) -> None:
    created = await asyncio.wait_for(scene.send("b", CreateStream("sc", "st", StreamConfig())), 5)
    assert created.status == "SUCCESS" and scene.stream_state is StreamState.ACTIVE
    assert {name for name in scene.store.segments if name.startswith("sc/")} == {
        "sc/st/0.#epoch.0",
        f"sc/{MARK_PREFIX}st/0.#epoch.0",
    }


async def test_a_workflow_that_a_late_entry_of_an_earlier_owner_begins_is_run(scene: Scene) -> None:
    await asyncio.sleep(60)
    await scene.seed("sc/kv", creation("kv"))
    await until(lambda: scene.is_table_there("kv"), 5)


async def test_a_workflow_in_a_partition_of_another_owner_is_left_alone(scene: Scene) -> None:
    scene.consumer.revoked([scene.first.journal.partition_of("sc/kv")])
    await scene.seed("sc/kv", creation("kv"))
    await asyncio.sleep(60)
    assert not scene.is_table_there("kv")


async def test_a_plain_deletion_that_is_cancelled_keeps_the_scope(scene: Scene) -> None:
    freeze_at_deletion(scene)
    deleted = scene.send("d", DeleteScope("sc"))
    await until(lambda: is_being_deleted(scene))
    cancel = CancelWorkflow(scope_aggregate("sc"), "delete-scope-d")
    assert await asyncio.wait_for(scene.send("c", cancel), 5) == Reply(Status.SUCCESS)
    assert is_being_deleted(scene), "the step under way comes to its end"
    scene.first.log.thaw()
    assert await asyncio.wait_for(deleted, 30) == Reply(Status.FAILURE, "cancelled")
    assert scene.events(ScopeKept) == [ScopeKept(scope="sc")] and not scene.events(ScopeDeleted)
    created = scene.send("b", CreateStream("sc", "st", StreamConfig()))
    assert (await asyncio.wait_for(created, 5)).status == "SUCCESS"


async def test_a_creation_waits_for_the_outcome_of_a_plain_deletion(scene: Scene) -> None:
    freeze_at_deletion(scene)
    deleted = scene.send("d", DeleteScope("sc"))
    await until(lambda: is_being_deleted(scene))
    created = scene.send("b", CreateStream("sc", "st", StreamConfig()))
    await asyncio.sleep(1)
    assert not created.done()
    scene.first.log.thaw()
    assert await asyncio.wait_for(deleted, 30) == Reply(Status.SUCCESS)
    assert (await asyncio.wait_for(created, 30)).status == "SCOPE_NOT_FOUND"


def freeze_at_deletion(scene: Scene) -> None:
    """Once a deletion has begun the first instance follows a partition no more that is neither scope's nor stream's.

    So it never sees all fences raised.
    """
    keys = {scene.first.journal.partition_of(key) for key in ("sc", KEY)}
    other = next(partition for partition in range(scene.broker.partitions) if partition not in keys)

    def freeze(message: MemoryMessage) -> None:
        if message.topic() == JOURNAL.name and b"ScopeDeletionStarted" in message.value():
            scene.first.log.freeze(other)

    scene.broker.on_landed.append(freeze)


def is_being_deleted(scene: Scene) -> bool:
    found = find_scope(scene.view("sc"), "sc")
    return found is not None and found.workflow is not None
