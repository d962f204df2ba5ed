"""A workflow that another service runs: stream-workflows sees it on its streams and leaves it alone."""

from unittest.mock import patch

from simulation.scene import in_a_world
from simulation.world import World

from sluice.domain.config import StreamConfig
from sluice.domain.stream.commands import CreateStream, SealStream, UpdateStream
from sluice.domain.workflow import RetryWorkflow, WorkflowKind
from stream_workflows import service
from stream_workflows.workflows import WORKFLOWS

STREAM = "stream:sc/st"


async def another_process(world: World) -> None:
    world.restart()
    await world.until(world.is_at_rest)


@in_a_world(World)
async def test_a_workflow_of_a_kind_that_is_not_in_the_table_is_neither_run_nor_taken_over(world: World) -> None:
    others = {kind: steps for kind, steps in WORKFLOWS.items() if kind is not WorkflowKind.SEAL_STREAM}
    await world.ask(CreateStream("sc", "st", StreamConfig()))

    with patch.object(service, "WORKFLOWS", others):
        await another_process(world)
        request = world.post(SealStream("sc", "st"))
        await world.until(lambda: world.workflow(STREAM) is not None and world.is_at_rest())
        retry = await world.ask(RetryWorkflow(STREAM))
        await another_process(world)
        left = world.workflow(STREAM)
        assert left is not None and left.kind is WorkflowKind.SEAL_STREAM
        assert (retry.status, left.attempts) == ("SUCCESS", 0) and left.retry_requests >= 1
        assert world.reply(request) is None
        assert (await world.ask(CreateStream("sc", "other", StreamConfig()))).status == "SUCCESS"

    await another_process(world)
    assert (await world.replied(request)).status == "SUCCESS"
    assert (await world.ask(UpdateStream("sc", "st", StreamConfig()))).status == "STREAM_SEALED"
