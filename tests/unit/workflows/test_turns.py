"""Workflows and commits take turns: neither starves the other, and nobody waits for ever for one that is dead."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from support import virtual_time
from support.endings_world import KEY, SCOPE, STREAM, EndingsWorld, clock_ms, use_virtual_clock

from sluice.domain import events as ev
from sluice.domain.commands import SealStream, UpdateStream
from sluice.domain.config import ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.errors import BusyError
from sluice.domain.stream import decide as stream_decide
from sluice.domain.transaction.batch import YIELD_MS
from sluice.messaging.keyed_consumer import Delivery
from stream_workflows.turns import COMMITS_FIRST_S, SAY_AGAIN_S, Turns

COMMAND = SealStream(SCOPE, STREAM)

Scenario = Callable[[EndingsWorld, Turns], Coroutine[Any, Any, None]]
Run = Callable[..., None]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a scenario on a stream of one segment; the turns are those of the last instance."""
    use_virtual_clock(monkeypatch)

    def run(scenario: Scenario, instances: int = 1, most: int = 100) -> None:
        async def scene() -> None:
            world = EndingsWorld(instances, most)
            await world.create()
            await scenario(world, Turns(world.world.instances[-1].journal))

        virtual_time.run(scene())

    return run


def time_s() -> float:
    return asyncio.get_running_loop().time()


def delivery(world: EndingsWorld) -> Delivery:
    return Delivery(world.ender.consumer, 0, KEY, None)


def end_batch(world: EndingsWorld) -> None:
    world.seed(ev.CommitBatchEnded(scope=SCOPE, stream=STREAM))


# A workflow waits for a batch.


def test_a_request_that_finds_a_batch_says_so_and_goes_on_when_it_has_ended(run: Run) -> None:
    async def scenario(world: EndingsWorld, turns: Turns) -> None:
        world.begin(await world.open("a"))
        waits = asyncio.ensure_future(turns.wait(COMMAND))
        await asyncio.sleep(1)
        waiting = world.stream.waiting
        assert waiting is not None and waiting.kind == "SealStream" and not waits.done()
        end_batch(world)
        await waits
        assert time_s() == pytest.approx(1)

    run(scenario)


def test_a_request_that_waits_says_so_again_before_commits_stop_to_heed_it(run: Run) -> None:
    async def scenario(world: EndingsWorld, turns: Turns) -> None:
        world.begin(await world.open("a"))
        for again in range(1, 4):
            await turns.wait(COMMAND)
            assert time_s() == pytest.approx(again * SAY_AGAIN_S)
            assert again * SAY_AGAIN_S < again * YIELD_MS / 1000
        said = [e for r in world.world.records(KEY) for e in r.events if isinstance(e, ev.WorkflowWaiting)]
        assert len(said) == 3

    run(scenario)


def test_nothing_is_said_where_no_batch_runs(run: Run) -> None:
    async def scenario(world: EndingsWorld, turns: Turns) -> None:
        before = len(world.world.records(KEY))
        await turns.wait(COMMAND)
        assert len(world.world.records(KEY)) == before and time_s() == 0

    run(scenario)


def test_a_workflow_of_the_stream_is_waited_for_as_well(run: Run) -> None:
    async def scenario(world: EndingsWorld, turns: Turns) -> None:
        world.seed(ev.StreamSealStarted(scope=SCOPE, stream=STREAM, at=clock_ms()))
        waits = asyncio.ensure_future(turns.wait(COMMAND))
        await asyncio.sleep(0.5)
        assert not waits.done()
        world.seed(ev.StreamSealed(scope=SCOPE, stream=STREAM))
        await waits
        assert time_s() == pytest.approx(0.5)

    run(scenario)


# Commits wait for a workflow.


def test_without_a_workflow_before_nobody_lets_commits_go_first(run: Run) -> None:
    async def scenario(world: EndingsWorld, turns: Turns) -> None:
        world.commit(await world.open("a"))
        await turns.commits_first(COMMAND, delivery(world))
        assert time_s() == 0

    run(scenario)


def test_a_workflow_that_ended_while_nothing_waited_lets_nobody_go_first(run: Run) -> None:
    async def scenario(world: EndingsWorld, turns: Turns) -> None:
        turns.ended(COMMAND)
        world.commit(await world.open("a"))
        await turns.commits_first(COMMAND, delivery(world))
        assert time_s() == 0

    run(scenario)


def test_after_a_workflow_one_batch_goes_first(run: Run) -> None:
    async def scenario(world: EndingsWorld, turns: Turns) -> None:
        a = await world.open("a")
        world.commit(a)
        turns.ended(COMMAND)
        waits = asyncio.ensure_future(turns.commits_first(COMMAND, delivery(world)))
        await asyncio.sleep(0.2)
        assert not waits.done()
        world.begin(a)
        await waits
        assert time_s() == pytest.approx(0.2)
        await turns.commits_first(COMMAND, delivery(world))
        assert time_s() == pytest.approx(0.2), "one batch, once"

    run(scenario)


def test_commits_that_nobody_carries_out_are_not_waited_for_for_long(run: Run) -> None:
    async def scenario(world: EndingsWorld, turns: Turns) -> None:
        world.commit(await world.open("a"))
        turns.ended(COMMAND)
        await turns.commits_first(COMMAND, delivery(world))
        assert time_s() == pytest.approx(COMMITS_FIRST_S)

    run(scenario)


def test_commits_that_have_gone_otherwise_are_not_waited_for(run: Run) -> None:
    async def scenario(world: EndingsWorld, turns: Turns) -> None:
        a = await world.open("a")
        world.commit(a)
        turns.ended(COMMAND)
        waits = asyncio.ensure_future(turns.commits_first(COMMAND, delivery(world)))
        await asyncio.sleep(0.1)
        world.seed(ev.TransactionCommitted(scope=SCOPE, stream=STREAM, transaction=a, at=1))
        await waits
        assert time_s() == pytest.approx(0.1)

    run(scenario)


# Both at once.


class Updates:
    """Requests for one workflow after the other, handled as stream-workflows does."""

    def __init__(self, world: EndingsWorld, turns: Turns) -> None:
        self.world = world
        self.turns = turns
        self.done: list[float] = []
        self.batches_at: list[int] = []

    async def one(self, rate: int) -> None:
        scaling = ScalingPolicy(scale_type=ScaleType.EVENTS, target_rate=rate, min_segments=1, scale_factor=2)
        command = UpdateStream(SCOPE, STREAM, StreamConfig(scaling=scaling))
        await self.turns.commits_first(command, delivery(self.world))
        while True:
            try:
                await self.world.decide(command)
                break
            except BusyError:
                await self.turns.wait(command)
        await asyncio.sleep(0.05)
        await self.world.world.do(KEY, lambda reader: stream_decide.finish_update(reader, SCOPE, STREAM, {}))
        self.turns.ended(command)
        self.done.append(time_s())
        commits = self.world.commits
        self.batches_at.append(commits.batches if commits is not None else 0)


def test_neither_starves_the_other(run: Run) -> None:
    async def scenario(world: EndingsWorld, turns: Turns) -> None:
        world.slow_s = 0.2
        world.ender.take_over()
        ids = [await world.open(f"t{i}") for i in range(60)]
        world.commit(*ids)
        updates = Updates(world, turns)
        for rate in range(1, 11):
            await updates.one(rate)
        between = [after - before for before, after in zip(updates.batches_at, updates.batches_at[1:], strict=False)]
        assert set(between) == {1}, "one batch between two workflows"
        assert max(after - before for before, after in zip(updates.done, updates.done[1:], strict=False)) < 1
        await world.until_ended()
        assert list(world.transactions.ended()) == ids[::-1]

    run(scenario, most=2)


def test_a_workflow_gets_its_turn_while_commits_never_end(run: Run) -> None:
    async def scenario(world: EndingsWorld, turns: Turns) -> None:
        world.slow_s = 0.5
        world.ender.take_over()
        ids = [await world.open(f"t{i}") for i in range(40)]
        world.commit(*ids)
        await world.until(lambda: world.merges == 2)
        began = time_s()
        await Updates(world, turns).one(7)
        assert time_s() - began < 1.5 and world.transactions.committing

    run(scenario, most=1)


def test_a_workflow_that_died_while_it_waited_holds_commits_up_for_a_while_only(run: Run) -> None:
    async def scenario(world: EndingsWorld, turns: Turns) -> None:
        world.slow_s = 0.5
        world.ender.take_over()
        ids = [await world.open(f"t{i}") for i in range(4)]
        world.commit(*ids)
        await world.until(lambda: world.merges == 1)
        dies = asyncio.ensure_future(turns.wait(COMMAND))
        await asyncio.sleep(0.1)
        dies.cancel()
        await world.until_ended(most_s=YIELD_MS / 1000 + 5)

    run(scenario, most=1)


def test_a_workflow_goes_on_while_the_owner_of_the_commits_is_dead(run: Run) -> None:
    async def scenario(world: EndingsWorld, turns: Turns) -> None:
        world.commit(*[await world.open(f"t{i}") for i in range(3)])
        updates = Updates(world, turns)
        for rate in range(1, 4):
            await updates.one(rate)
        assert time_s() < 3 * (COMMITS_FIRST_S + 0.2)

    run(scenario)
