"""A workflow that cannot get on: it says why, it can be retried, and before its point of no return cancelled."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from simulation import invariants
from simulation.lives import run
from simulation.world import World

from sluice.domain.config import ReaderGroupConfig, ScalingPolicy, StreamConfig, TableConfig
from sluice.domain.names import key_of
from sluice.domain.reader_group.commands import CreateReaderGroup
from sluice.domain.scope.commands import CreateScope
from sluice.domain.stream.commands import CreateStream, ScaleStream, SealStream
from sluice.domain.table.commands import CreateTable
from sluice.domain.workflow import RetryWorkflow, Workflow, running

STREAM = "stream:sc/st"
HALVES = ((0.0, 0.5), (0.5, 1.0))


def in_a_world(test: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    async def with_scope() -> None:
        world = World()
        await world.ask(CreateScope("sc"))
        await test(world)
        invariants.check(world)

    @wraps(test)
    def in_virtual_time() -> None:
        run(with_scope())

    del in_virtual_time.__wrapped__
    return in_virtual_time


def workflow_of(world: World, aggregate: str) -> Workflow | None:
    return running(world.view(key_of(aggregate)).get(aggregate))


async def stuck(world: World, aggregate: str) -> Workflow:
    """Wait until the attempts of a workflow show."""

    def shows() -> bool:
        workflow = workflow_of(world, aggregate)
        return workflow is not None and workflow.attempts >= 8

    await world.until(shows)
    workflow = workflow_of(world, aggregate)
    assert workflow is not None
    return workflow


async def make_stream(world: World) -> None:
    reply = await world.ask(CreateStream("sc", "st", StreamConfig(scaling=ScalingPolicy(min_segments=1))))
    assert reply.status == "SUCCESS"


@in_a_world
async def test_what_keeps_a_workflow_is_shown_and_a_retry_ends_the_waiting(world: World) -> None:
    world.failing = {"CreateSegment"}
    request = world.post(CreateStream("sc", "st", StreamConfig()))
    workflow = await stuck(world, STREAM)
    assert workflow.step == "create-segments" and "RouteStale" in workflow.last_error
    await world.until(lambda: workflow.attempts >= 16)
    world.failing = set()
    before = world.now_ms()
    retried = world.post(RetryWorkflow(STREAM))
    await world.until(lambda: world.reply(request))
    assert world.now_ms() - before <= 100
    assert world.reply(retried).status == world.reply(request).status == "SUCCESS"  # type: ignore[union-attr]
    assert (await world.ask(RetryWorkflow(STREAM))).status == "NOT_RUNNING"


@in_a_world
async def test_a_creation_is_cancelled_and_leaves_nothing(world: World) -> None:
    world.failing = {"CreateSegment"}
    request = world.post(CreateStream("sc", "st", StreamConfig()))
    await stuck(world, STREAM)
    assert (await world.ask(world.cancellation(STREAM))).status == "SUCCESS"
    await world.until(lambda: world.reply(request))
    answer = world.reply(request)
    assert answer is not None and (answer.status, answer.reason) == ("FAILURE", "cancelled")
    world.failing = set()
    await make_stream(world)


@in_a_world
async def test_a_scale_is_cancelled_before_its_epoch_is_named_and_can_begin_anew(world: World) -> None:
    await make_stream(world)
    world.failing = {"CreateSegment"}
    world.post(ScaleStream("sc", "st", (0,), HALVES, 0))
    await stuck(world, STREAM)
    assert (await world.ask(world.cancellation(STREAM))).status == "SUCCESS"
    world.failing = set()
    invariants.check(world)
    assert (await world.ask(ScaleStream("sc", "st", (0,), HALVES, 0))).status == "STARTED"


@in_a_world
async def test_a_scale_past_its_point_of_no_return_goes_on(world: World) -> None:
    await make_stream(world)
    world.failing = {"SealSegment"}
    world.post(ScaleStream("sc", "st", (0,), HALVES, 0))
    await stuck(world, STREAM)
    refused = world.post(world.cancellation(STREAM))
    await world.until(lambda: world.reply(refused))
    assert world.reply(refused).status == "TOO_LATE"  # type: ignore[union-attr]
    world.failing = set()
    assert (await world.ask(SealStream("sc", "st"))).status == "SUCCESS"


@in_a_world
async def test_groups_and_tables_are_cancelled(world: World) -> None:
    await make_stream(world)
    world.failing = {"CreateSegment", "CreateTableSegment"}
    group = world.post(CreateReaderGroup("sc", "g", ReaderGroupConfig(id="i", starts={"sc/st": {}})))
    table = world.post(CreateTable("sc", "t", TableConfig(2, 4)))
    for aggregate in ("group:sc/g", "table:sc/t"):
        await stuck(world, aggregate)
        world.post(world.cancellation(aggregate))
    await world.until(lambda: world.reply(group) and world.reply(table))
    for request in (group, table):
        assert world.reply(request).reason == "cancelled"  # type: ignore[union-attr]
    assert (await world.ask(world.cancellation("table:sc/t"))).status == "NOT_RUNNING"


@in_a_world
async def test_other_streams_go_on_while_one_is_stuck(world: World) -> None:
    await make_stream(world)
    world.failing = {"SealSegment"}
    stuck_request = world.post(SealStream("sc", "st"))
    await stuck(world, STREAM)
    other = world.post(CreateStream("sc", "other", StreamConfig()))
    await world.until(lambda: world.reply(other))
    assert world.reply(stuck_request) is None
    world.failing = set()
    await world.until(lambda: world.reply(stuck_request))
    await world.ask(CreateScope("sc"))
