"""The service in memory: which workflows it runs, whoever recorded their beginning, and how a deletion is cancelled."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from support.memory_world import MemoryWorld, settle, until
from support.virtual_time import run as run_virtually

from sluice.domain.config import StreamConfig, TableConfig
from sluice.domain.decision import Reply
from sluice.domain.ids import StreamId, TableId
from sluice.domain.names import MARK_PREFIX, scope_aggregate
from sluice.domain.scope.commands import CreateScope, DeleteScope
from sluice.domain.scope.events import ScopeCreated, ScopeDeleted, ScopeKept
from sluice.domain.scope.fences import all_raised
from sluice.domain.scope.state import find_scope
from sluice.domain.segment import Segment
from sluice.domain.status import Status
from sluice.domain.stream.commands import CreateStream
from sluice.domain.stream.state import StreamState, find_stream
from sluice.domain.table.events import TableCreationStarted
from sluice.domain.table.state import TableState, find_table
from sluice.domain.workflow import CancelWorkflow
from sluice.kafka.topics import JOURNAL, REQUESTS_STREAMS
from sluice.memory.broker import MemoryMessage
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import Moment
from stream_workflows.service import WorkflowService
from stream_workflows.settings import WorkflowSettings

KEY = StreamId("sc", "st").key
SCOPE = ScopeCreated(scope="sc", creation_id="c", at=0)
SEGMENTS = (Segment(0, 0.0, 1.0),)


class Scene(MemoryWorld):
    """Two instances of the service; the first begins alone. Segment stores do not answer while `silent`."""

    def __init__(self) -> None:
        super().__init__()
        self.silent = False
        self.store.fault = self._fault
        settings = WorkflowSettings(partitions=self.broker.partitions)
        self.second = self.process()
        self.services = [WorkflowService(each.runtime, settings, self.store) for each in (self.first, self.second)]

    def _fault(self, moment: Moment, _request: str, _segment: str) -> None:
        if self.silent and moment == "before":
            raise ConnectionFailure(Failure.TIMED_OUT)

    async def start(self, number: int = 0) -> None:
        """Return when the instance has taken over what the group gives it."""
        consumer = self.services[number].consumer
        consumer.start()
        await until(lambda: bool(consumer.partitions))
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


def run(scenario: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def scene() -> None:
        await scenario(Scene())

    run_virtually(scene())


def creation(table: str) -> TableCreationStarted:
    return TableCreationStarted(
        scope="sc", table=table, creation_id="i", config=TableConfig(1, 4), created_at=0, segments=SEGMENTS
    )


def test_a_stream_is_created_with_its_segments_and_the_reply() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.start()
        assert await asyncio.wait_for(scene.send("a", CreateScope("sc")), 5) == Reply(Status.SUCCESS)
        created = await asyncio.wait_for(scene.send("b", CreateStream("sc", "st", StreamConfig())), 5)
        assert created.status == "SUCCESS" and scene.stream_state is StreamState.ACTIVE
        assert {name for name in scene.store.segments if name.startswith("sc/")} == {
            "sc/st/0.#epoch.0",
            f"sc/{MARK_PREFIX}st/0.#epoch.0",
        }

    run(scenario)


def test_a_workflow_that_was_there_before_the_take_over_is_run() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.seed("sc/kv", creation("kv"))
        await scene.start()
        await until(lambda: scene.is_table_there("kv"), 5)

    run(scenario)


def test_a_workflow_that_a_late_entry_of_an_earlier_owner_begins_is_run() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.start()
        await asyncio.sleep(60)
        await scene.seed("sc/kv", creation("kv"))
        await until(lambda: scene.is_table_there("kv"), 5)

    run(scenario)


def test_a_workflow_in_a_partition_of_another_owner_is_left_alone() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.start()
        consumer = scene.services[0].consumer
        consumer.revoked([scene.first.journal.partition_of("sc/kv")])
        await scene.seed("sc/kv", creation("kv"))
        await asyncio.sleep(60)
        assert not scene.is_table_there("kv")

    run(scenario)


def test_a_workflow_of_an_instance_that_died_is_ended_by_the_next_owner() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.seed("sc", SCOPE)
        scene.silent = True
        await scene.start()
        reply = scene.send("b", CreateStream("sc", "st", StreamConfig()))
        await until(lambda: scene.stream_state is StreamState.CREATING)
        consumer = scene.services[0].consumer
        consumer.abandon()
        consumer.revoked(sorted(consumer.partitions))
        scene.silent = False
        await asyncio.sleep(60)
        assert scene.stream_state is StreamState.CREATING
        scene.services[1].consumer.assigned(list(range(scene.broker.partitions)))
        assert (await asyncio.wait_for(reply, 30)).status == "SUCCESS"

    run(scenario)


def test_a_request_that_is_redelivered_is_decided_once() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.start()
        assert await asyncio.wait_for(scene.send("a", CreateScope("sc")), 5) == Reply(Status.SUCCESS)
        group = scene.groups.group(REQUESTS_STREAMS.name)
        group.lose_offsets()
        group.balance(bounce=True)
        group.lose_offsets()
        await asyncio.sleep(5)
        assert [entry.reply for entry in scene.entries("sc") if entry.request == "a"] == [Reply(Status.SUCCESS)]

    run(scenario)


def test_an_empty_scope_is_deleted() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.seed("sc", SCOPE)
        await scene.start()
        assert await asyncio.wait_for(scene.send("d", DeleteScope("sc")), 5) == Reply(Status.SUCCESS)
        assert find_scope(scene.view("sc"), "sc") is None and all_raised(scene.view("sc"), "sc")

    run(scenario)


def test_a_plain_deletion_that_is_cancelled_keeps_the_scope() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.seed("sc", SCOPE)
        await scene.start()
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

    run(scenario)


def test_a_creation_waits_for_the_outcome_of_a_plain_deletion() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.seed("sc", SCOPE)
        await scene.start()
        freeze_at_deletion(scene)
        deleted = scene.send("d", DeleteScope("sc"))
        await until(lambda: is_being_deleted(scene))
        created = scene.send("b", CreateStream("sc", "st", StreamConfig()))
        await asyncio.sleep(1)
        assert not created.done()
        scene.first.log.thaw()
        assert await asyncio.wait_for(deleted, 30) == Reply(Status.SUCCESS)
        assert (await asyncio.wait_for(created, 30)).status == "SCOPE_NOT_FOUND"

    run(scenario)


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
