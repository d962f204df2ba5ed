"""A workflow that another service runs: stream-workflows sees it on its streams and leaves it alone."""

import logging

import pytest
from simulation import invariants
from simulation.lives import run
from simulation.world import World

from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.names import key_of
from sluice.domain.scope.commands import CreateScope
from sluice.domain.stream.commands import CreateStream, SealStream, UpdateStream
from sluice.domain.workflow import RetryWorkflow, Workflow, WorkflowKind, running
from stream_workflows import service
from stream_workflows.workflows import WORKFLOWS

STREAM = "stream:sc/st"
CONFIG = StreamConfig(scaling=ScalingPolicy(min_segments=1))
TAKEN_OVER = "workflow taken over"


def sealing(world: World) -> Workflow | None:
    return running(world.view(key_of(STREAM)).get(STREAM))


async def another_process(world: World) -> None:
    world.restart()
    await world.until(world.is_at_rest)


def test_a_workflow_of_a_kind_that_is_not_in_the_table_is_neither_run_nor_taken_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "stream_workflows.service")
    others = {kind: steps for kind, steps in WORKFLOWS.items() if kind is not WorkflowKind.SEAL_STREAM}

    async def scenario() -> None:
        world = World()
        await world.ask(CreateScope("sc"))
        await world.ask(CreateStream("sc", "st", CONFIG))

        with monkeypatch.context() as patch:
            patch.setattr(service, "WORKFLOWS", others)
            await another_process(world)
            request = world.post(SealStream("sc", "st"))
            await world.until(lambda: sealing(world) is not None and world.is_at_rest())
            retry = await world.ask(RetryWorkflow(STREAM))
            await another_process(world)
            left = sealing(world)
            assert left is not None and left.kind is WorkflowKind.SEAL_STREAM
            assert (retry.status, left.attempts) == ("SUCCESS", 0) and left.retry_requests >= 1
            assert world.reply(request) is None
            assert TAKEN_OVER not in caplog.messages
            assert (await world.ask(CreateStream("sc", "other", CONFIG))).status == "SUCCESS"

        await another_process(world)
        assert TAKEN_OVER in caplog.messages
        reply = world.reply(request)
        assert reply is not None and reply.status == "SUCCESS"
        assert (await world.ask(UpdateStream("sc", "st", CONFIG))).status == "STREAM_SEALED"
        invariants.check(world)

    run(scenario())
