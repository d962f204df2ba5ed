"""The service in memory: which workflows it runs, whatever recorded their beginning."""

import asyncio
from typing import cast

import pytest
from support.memory_world import MemoryWorld, Process, settle, until

from sluice.domain.commands import Command
from sluice.domain.config import ScaleType, ScalingPolicy, StreamConfig, TableConfig
from sluice.domain.decision import Reply
from sluice.domain.ids import StreamId, TableId
from sluice.domain.names import MARK_PREFIX
from sluice.domain.scope.commands import DeleteScopeRecursive
from sluice.domain.scope.events import ScopeCreated
from sluice.domain.scope.fences import all_raised
from sluice.domain.scope.state import find_scope
from sluice.domain.segment import Segment
from sluice.domain.stream.commands import (
    CreateStream,
    DeleteStream,
    NoteWriterTime,
    RemoveWriter,
    ScaleStream,
    SealStream,
    TruncateStream,
    UpdateStream,
)
from sluice.domain.stream.events import StreamSealed, StreamTruncationStarted, WorkflowQueued
from sluice.domain.stream.state import Stream, StreamState, find_stream
from sluice.domain.table.events import TableCreationStarted
from sluice.domain.table.state import TableState, find_table
from sluice.domain.workflow import CancelWorkflow
from sluice.kafka.topics import JOURNAL
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import Moment
from sluice.pravega.wire.refusals import TOKEN_EXPIRED
from stream_workflows.service import WorkflowService
from stream_workflows.settings import WorkflowSettings
from stream_workflows.step_context import StreamStepContext
from stream_workflows.stream_steps import update_policies

REFUSED = 0


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

    def stream(self, name: str, process: Process | None = None) -> Stream:
        """As the process knows it, or else the instance."""
        id = StreamId("sc", name)
        found = find_stream((process or self.first).journal.reader(id.key), id)
        assert found is not None
        return found

    async def reply_to(self, id: str, command: Command) -> Reply:
        reply = self.first.journal.expect_reply(id, (command.key,))
        self.request(id, command)
        return cast(Reply, await asyncio.wait_for(reply, 60))

    def is_table_there(self) -> bool:
        found = find_table(self.view("sc/kv"), TableId("sc", "kv"))
        return found is not None and found.state is TableState.ACTIVE


def scaled_at(rate: int) -> StreamConfig:
    return StreamConfig(scaling=ScalingPolicy(ScaleType.EVENTS, rate, scale_factor=2, min_segments=2))


def away(_moment: Moment, _request: str, segment: str) -> None:
    """The store that has the segments of the stream does not answer."""
    if segment.startswith("sc/st/"):
        raise ConnectionFailure(Failure.CONNECT_FAILED)


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
    assert (await scene.reply_to("b", command)).status == "SUCCESS"
    assert scene.stream("st").state is StreamState.ACTIVE
    created = {name for name in scene.store.segments if name.startswith("sc/")}
    assert created == {"sc/st/0.#epoch.0", f"sc/{MARK_PREFIX}st/0.#epoch.0"}


async def test_a_truncation_rests_on_the_lengths_in_the_segment_store(scene: Scene) -> None:
    await scene.reply_to("b", CreateStream("sc", "st", StreamConfig()))
    scene.store.segments["sc/st/0.#epoch.0"].data = bytes(40)
    beyond = await scene.reply_to("c", TruncateStream("sc", "st", {0: 41}))
    assert beyond.status == "FAILURE" and "which has 40 bytes" in beyond.reason
    assert not scene.events(StreamTruncationStarted)
    assert (await scene.reply_to("d", TruncateStream("sc", "st", {0: 40}))).status == "SUCCESS"


async def test_a_truncation_waits_for_a_segment_store_that_does_not_answer(scene: Scene) -> None:
    await scene.reply_to("b", CreateStream("sc", "st", StreamConfig()))
    scene.store.fault = away
    reply = asyncio.create_task(scene.reply_to("c", TruncateStream("sc", "st", {0: 1})))
    other = await scene.reply_to("d", CreateStream("sc", "other", StreamConfig()))
    await asyncio.sleep(30)
    assert other.status == "SUCCESS" and not reply.done()
    assert scene.stream("st").waiting is not None and len(scene.events(WorkflowQueued)) == 1, "it shows"
    scene.store.fault = None
    assert "which has 0 bytes" in (await reply).reason and scene.stream("st").waiting is None


async def test_a_truncation_that_becomes_a_dead_letter_is_no_longer_queued(scene: Scene) -> None:
    await scene.reply_to("b", CreateStream("sc", "st", StreamConfig()))
    scene.store.fault = away
    reply = asyncio.create_task(scene.reply_to("c", TruncateStream("sc", "st", {0: 1})))
    await until(lambda: scene.stream("st").waiting is not None)
    del scene.store.segments["sc/st/0.#epoch.0"]
    scene.store.fault = None
    assert "stored as a dead letter" in (await reply).reason
    assert scene.stream("st").waiting is None


async def test_what_is_only_noted_on_a_stream_does_not_wait_for_its_workflow(scene: Scene) -> None:
    await scene.reply_to("b", CreateStream("sc", "st", StreamConfig()))
    scene.store.fault = away
    seal = asyncio.create_task(scene.reply_to("c", SealStream("sc", "st")))
    await until(lambda: scene.stream("st").workflow is not None)
    update = asyncio.create_task(scene.reply_to("d", UpdateStream("sc", "st", StreamConfig())))
    assert (await scene.reply_to("e", NoteWriterTime("sc", "st", "w", 5, {0: 0}))).status == "SUCCESS"
    assert (await scene.reply_to("f", RemoveWriter("sc", "st", "w"))).status == "SUCCESS"
    assert not seal.done() and not update.done()
    scene.store.fault = None
    assert (await seal).status == "SUCCESS" and (await update).status == "STREAM_SEALED"
    assert len(scene.events(StreamSealed)) == 1, "no second run of the workflow"


async def test_a_step_that_a_segment_store_fails_is_a_line_in_the_log_without_a_stack(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    def away(_moment: Moment, _request: str, segment: str) -> None:
        if segment.startswith("sc/st/"):
            scene.store.fault = None
            raise ConnectionFailure(Failure.CONNECT_FAILED)

    scene.store.fault = away
    assert (await scene.reply_to("b", CreateStream("sc", "st", StreamConfig()))).status == "SUCCESS"
    [failed] = [record for record in caplog.records if record.getMessage() == "workflow step failed"]
    assert not failed.exc_info


async def test_a_truncation_of_a_segment_that_its_store_has_lost_is_refused(scene: Scene) -> None:
    await scene.reply_to("b", CreateStream("sc", "st", StreamConfig()))
    del scene.store.segments["sc/st/0.#epoch.0"]
    lost = await scene.reply_to("c", TruncateStream("sc", "st", {0: 1}))
    assert lost.status == "FAILURE" and "SegmentMissing" in lost.reason
    assert (await scene.reply_to("d", TruncateStream("sc", "gone", {0: 1}))).status == "STREAM_NOT_FOUND"


@pytest.mark.parametrize("refusal", [REFUSED, TOKEN_EXPIRED])
async def test_what_a_store_refuses_for_its_token_is_carried_out_once_the_token_counts(
    scene: Scene, refusal: int
) -> None:
    await scene.reply_to("b", CreateStream("sc", "st", StreamConfig()))
    scene.store.token_refusal = refusal
    truncated = asyncio.create_task(scene.reply_to("c", TruncateStream("sc", "st", {0: 0})))
    created = asyncio.create_task(scene.reply_to("d", CreateStream("sc", "other", StreamConfig())))
    await asyncio.sleep(30)
    assert not truncated.done() and not created.done()
    workflow = scene.stream("other").workflow
    assert workflow is not None and "our delegation token" in workflow.last_error, "it shows"
    scene.store.token_refusal = None
    assert {(await truncated).status, (await created).status} == {"SUCCESS"}


async def test_a_workflow_that_a_late_entry_of_an_earlier_owner_begins_is_run(scene: Scene) -> None:
    await asyncio.sleep(60)
    await scene.begin_table()
    await until(scene.is_table_there, 5)


async def test_what_a_cancelled_scale_of_a_mark_stream_created_is_deleted_with_the_stream(scene: Scene) -> None:
    await scene.reply_to("b", CreateStream("sc", "st", StreamConfig()))
    mark, there = StreamId("sc", "st").mark, len(scene.store.segments)

    def lost(moment: Moment, request: str, _segment: str) -> None:
        if (moment, request) == ("after", "CreateSegment"):
            raise ConnectionFailure(Failure.LOST)

    scene.store.fault = lost
    await scene.reply_to("c", ScaleStream(*mark, seals=(0,), ranges=((0.0, 1.0),), at=1))
    await until(lambda: len(scene.store.segments) > there)
    running = scene.stream(mark.name).workflow
    assert running is not None
    await scene.reply_to("d", CancelWorkflow(mark.aggregate, running.id))
    await until(lambda: scene.stream(mark.name).workflow is None)
    scene.store.fault = None
    assert (await scene.reply_to("e", SealStream("sc", "st"))).status == "SUCCESS"
    assert (await scene.reply_to("f", DeleteStream("sc", "st"))).status == "SUCCESS"
    assert not [name for name in scene.store.segments if name.startswith("sc/")]


@pytest.mark.parametrize("fails", [False, True])
async def test_an_owner_that_sends_an_old_policy_late_sends_the_present_one_too(scene: Scene, fails: bool) -> None:
    await scene.reply_to("b", CreateStream("sc", "st", scaled_at(1)))
    names = [f"sc/st/{number}.#epoch.0" for number in range(2)]
    late, update = scene.process(), asyncio.create_task(scene.reply_to("c", UpdateStream("sc", "st", scaled_at(2))))
    scene.store.fault = away
    await until(lambda: scene.stream("st", late).workflow is not None)
    late.log.freeze()
    scene.store.fault = None
    assert (await update).status == "SUCCESS"
    assert (await scene.reply_to("d", UpdateStream("sc", "st", scaled_at(3)))).status == "SUCCESS"

    def once(_moment: Moment, _request: str, segment: str) -> None:
        if segment == names[1]:
            scene.store.fault = None
            raise ConnectionFailure(Failure.CONNECT_FAILED)

    scene.store.fault = once if fails else None
    context = StreamStepContext(scene.store, late.journal, late.runtime.sender)
    step = asyncio.create_task(update_policies(context, scene.stream("st", late)))
    await until(lambda: scene.store.segments[names[0]].target_rate == 2)
    late.log.thaw()
    await step
    assert [scene.store.segments[name].target_rate for name in names] == [3, 3]


async def test_a_scope_goes_though_a_partition_without_any_of_it_stops_behind_its_fence(scene: Scene) -> None:
    await scene.reply_to("b", CreateStream("sc", "st", StreamConfig()))
    scene.store.fault = away
    scene.request("c", DeleteScopeRecursive("sc"))
    await until(lambda: all_raised(scene.view("sc"), "sc"))
    journal = scene.first.journal
    needed = {journal.partition_of(key) for key in ("sc", "sc/st")}
    stopped = next(key for key in map(str, range(99)) if journal.partition_of(key) not in needed)
    scene.broker.land(JOURNAL.name, stopped, b"no record")
    await until(lambda: bool(journal.failed))
    scene.consumer.revoked([journal.partition_of("sc")])
    scene.consumer.assigned([journal.partition_of("sc")])
    await settle()
    scene.store.fault = None
    await until(lambda: find_scope(scene.view("sc"), "sc") is None)


async def test_a_creation_that_is_cancelled_leaves_a_stream_that_was_there_before(scene: Scene) -> None:
    before = StreamId("sc", f"{MARK_PREFIX}st")
    await scene.reply_to("b", CreateStream(*before, StreamConfig()))
    scene.store.fault = away
    scene.request("c", CreateStream("sc", "st", StreamConfig()))
    await until(lambda: find_stream(scene.view("sc/st"), StreamId("sc", "st")) is not None)
    workflow = scene.stream("st").workflow
    assert workflow is not None
    scene.request("d", CancelWorkflow("stream:sc/st", workflow.id))
    await settle()
    scene.store.fault = None
    await until(lambda: find_stream(scene.view("sc/st"), StreamId("sc", "st")) is None)
    assert scene.stream(before.name).state is StreamState.ACTIVE
    assert f"sc/{before.name}/0.#epoch.0" in scene.store.segments


async def test_a_workflow_in_a_partition_of_another_owner_is_left_alone(scene: Scene) -> None:
    scene.consumer.revoked([scene.first.journal.partition_of("sc/kv")])
    await scene.begin_table()
    await asyncio.sleep(60)
    assert not scene.is_table_there()
