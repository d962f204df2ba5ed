"""A workflow that cannot get on: it says why, it can be retried, and before its point of no return cancelled."""

from simulation import invariants
from simulation.scene import in_a_world
from simulation.world import World

from sluice.domain.config import ReaderGroupConfig, StreamConfig, TableConfig
from sluice.domain.decision import Reply
from sluice.domain.reader_group.commands import CreateReaderGroup
from sluice.domain.status import Status
from sluice.domain.stream.commands import CreateStream, ScaleStream, SealStream
from sluice.domain.table.commands import CreateTable
from sluice.domain.workflow import RetryWorkflow, Workflow

STREAM = "stream:sc/st"
HALVES = ((0.0, 0.5), (0.5, 1.0))


async def stuck(world: World, aggregate: str) -> Workflow:
    """Wait until the attempts of a workflow show."""

    await world.until(lambda: (found := world.workflow(aggregate)) is not None and found.attempts >= 8)
    workflow = world.workflow(aggregate)
    assert workflow is not None
    return workflow


async def make_stream(world: World) -> None:
    assert await world.do(CreateStream("sc", "st", StreamConfig())) == "SUCCESS"


@in_a_world(World)
async def test_what_keeps_a_workflow_is_shown_and_a_retry_ends_the_waiting(world: World) -> None:
    world.failing = {"CreateSegment"}
    request = world.post(CreateStream("sc", "st", StreamConfig()))
    workflow = await stuck(world, STREAM)
    assert workflow.step == "create-segments" and "RouteStale" in workflow.last_error
    await world.until(lambda: workflow.attempts >= 16)
    world.heal()
    before = world.now_ms()
    retried = world.post(RetryWorkflow(STREAM))
    assert (await world.replied(request)).status == "SUCCESS"
    assert world.now_ms() - before <= 100
    assert (await world.replied(retried)).status == "SUCCESS"
    assert await world.do(RetryWorkflow(STREAM)) == "NOT_RUNNING"


@in_a_world(World)
async def test_a_creation_is_cancelled_and_leaves_nothing(world: World) -> None:
    world.failing = {"CreateSegment"}
    request = world.post(CreateStream("sc", "st", StreamConfig()))
    await stuck(world, STREAM)
    assert (await world.ask(world.cancellation(STREAM))).status == "SUCCESS"
    assert await world.replied(request) == Reply(Status.FAILURE, "cancelled")
    world.heal()
    await make_stream(world)


@in_a_world(World)
async def test_a_scale_is_cancelled_before_its_epoch_is_named_and_can_begin_anew(world: World) -> None:
    await make_stream(world)
    world.failing = {"CreateSegment"}
    world.post(ScaleStream("sc", "st", (0,), HALVES, 0))
    await stuck(world, STREAM)
    assert (await world.ask(world.cancellation(STREAM))).status == "SUCCESS"
    world.heal()
    invariants.check(world)
    assert (await world.ask(ScaleStream("sc", "st", (0,), HALVES, 0))).status == "STARTED"


@in_a_world(World)
async def test_a_scale_past_its_point_of_no_return_goes_on(world: World) -> None:
    await make_stream(world)
    world.failing = {"SealSegment"}
    world.post(ScaleStream("sc", "st", (0,), HALVES, 0))
    await stuck(world, STREAM)
    assert await world.do(world.cancellation(STREAM)) == "TOO_LATE"
    world.heal()
    assert (await world.ask(SealStream("sc", "st"))).status == "SUCCESS"


@in_a_world(World)
async def test_groups_and_tables_are_cancelled(world: World) -> None:
    await make_stream(world)
    world.failing = {"CreateSegment", "CreateTableSegment"}
    group = world.post(CreateReaderGroup("sc", "g", ReaderGroupConfig(id="i", starts={"sc/st": {}})))
    table = world.post(CreateTable("sc", "t", TableConfig(2, 4)))
    for aggregate in ("group:sc/g", "table:sc/t"):
        await stuck(world, aggregate)
        world.post(world.cancellation(aggregate))
    for request in (group, table):
        assert (await world.replied(request)).reason == "cancelled"
    assert (await world.ask(world.cancellation("table:sc/t"))).status == "NOT_RUNNING"
