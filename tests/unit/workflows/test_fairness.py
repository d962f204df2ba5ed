"""Fairness: neither workflows nor commits starve the other, and no one waits for ever for one that is dead."""

import asyncio
from typing import Any

import pytest
from support.memory_world import until
from support.transaction_world import KEY, STREAM, TransactionWorld
from support.txn_log import ids_of_ended

from sluice.domain.config import ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.errors import BusyError
from sluice.domain.stream import decide as stream_decide
from sluice.domain.stream.commands import SealStream, UpdateStream
from sluice.domain.stream.events import StreamSealed, StreamSealStarted, WorkflowQueued
from sluice.domain.stream.state import YIELD_MS
from sluice.domain.transaction.events import CommitBatchEnded, TransactionCommitted
from stream_workflows.fairness import COMMITS_FIRST_S, REPEAT_S, Fairness

COMMAND = SealStream(*STREAM)


@pytest.fixture
def most() -> int:
    """Commits in a batch."""
    return 100


@pytest.fixture
async def world(most: int) -> TransactionWorld:
    """A stream of one segment."""
    world = TransactionWorld(most=most)
    await world.create()
    return world


@pytest.fixture
def fairness(world: TransactionWorld) -> Fairness:
    return Fairness(world.first.journal)


def time_s() -> float:
    return asyncio.get_running_loop().time()


def about(seconds: float) -> Any:
    """The broker dates records a little apart."""
    return pytest.approx(seconds, abs=0.001)


async def end_batch(world: TransactionWorld) -> None:
    await world.seed(KEY, CommitBatchEnded(*STREAM))


# A workflow waits for a batch.


async def test_a_request_that_finds_a_batch_records_that_and_goes_on_behind_it(
    world: TransactionWorld, fairness: Fairness
) -> None:
    await world.begin(await world.open("a"))
    waits = asyncio.ensure_future(fairness.wait(COMMAND))
    await asyncio.sleep(1)
    waiting = world.stream.waiting
    assert waiting is not None and waiting.kind == "SealStream" and not waits.done()
    await end_batch(world)
    await waits
    assert time_s() == about(1)


async def test_a_request_that_waits_records_that_anew_before_commits_pass_it(
    world: TransactionWorld, fairness: Fairness
) -> None:
    await world.begin(await world.open("a"))
    for times in range(1, 4):
        await fairness.wait(COMMAND)
        assert time_s() == about(times * REPEAT_S)
        assert times * REPEAT_S < times * YIELD_MS / 1000
    assert len(world.events(WorkflowQueued)) == 3


async def test_a_request_that_finds_no_batch_records_nothing(world: TransactionWorld, fairness: Fairness) -> None:
    before = len(world.log_of(KEY))
    await fairness.wait(COMMAND)
    assert len(world.log_of(KEY)) == before and time_s() == about(0)


async def test_a_workflow_of_the_stream_is_waited_for_as_well(world: TransactionWorld, fairness: Fairness) -> None:
    await world.seed(KEY, StreamSealStarted(*STREAM, at=world.now_ms))
    waits = asyncio.ensure_future(fairness.wait(COMMAND))
    await asyncio.sleep(0.5)
    assert not waits.done()
    await world.seed(KEY, StreamSealed(*STREAM))
    await waits
    assert time_s() == about(0.5)


# Commits wait for a workflow.


@pytest.mark.parametrize("has_ended", [False, True], ids=["no workflow before", "one that ended before the commit"])
async def test_without_a_workflow_that_passed_it_no_commit_goes_first(
    world: TransactionWorld, fairness: Fairness, has_ended: bool
) -> None:
    if has_ended:
        fairness.ended(COMMAND)
    await world.commit(await world.open("a"))
    await fairness.commits_first(COMMAND)
    assert time_s() == about(0)


async def test_after_a_workflow_one_batch_goes_first(world: TransactionWorld, fairness: Fairness) -> None:
    a = await world.open("a")
    await world.commit(a)
    fairness.ended(COMMAND)
    waits = asyncio.ensure_future(fairness.commits_first(COMMAND))
    await asyncio.sleep(0.2)
    assert not waits.done()
    await world.begin(a)
    await waits
    assert time_s() == about(0.2)
    await fairness.commits_first(COMMAND)
    assert time_s() == about(0.2), "one batch, once"


async def test_commits_that_have_gone_otherwise_are_not_waited_for(world: TransactionWorld, fairness: Fairness) -> None:
    a = await world.open("a")
    await world.commit(a)
    fairness.ended(COMMAND)
    waits = asyncio.ensure_future(fairness.commits_first(COMMAND))
    await asyncio.sleep(0.1)
    await world.seed(KEY, TransactionCommitted(*STREAM, transaction=a, at=1))
    await waits
    assert time_s() == about(0.1)


# Both at once.


class Updates:
    """Requests for one workflow after the other, handled as stream-workflows does."""

    def __init__(self, world: TransactionWorld, fairness: Fairness) -> None:
        self.world = world
        self.fairness = fairness
        self.done: list[float] = []
        self.batches_at: list[int] = []

    async def one(self, rate: int) -> None:
        scaling = ScalingPolicy(scale_type=ScaleType.EVENTS, target_rate=rate, min_segments=1, scale_factor=2)
        command = UpdateStream(*STREAM, StreamConfig(scaling=scaling))
        await self.fairness.commits_first(command)
        while True:
            try:
                await self.world.decide(command)
                break
            except BusyError:
                await self.fairness.wait(command)
        await asyncio.sleep(0.05)
        await self.world.do(KEY, lambda reader, _: stream_decide.finish_update(reader, STREAM, {}))
        self.fairness.ended(command)
        self.done.append(time_s())
        commits = self.world.commits
        self.batches_at.append(commits.batches if commits is not None else 0)


@pytest.mark.parametrize("most", [2])
async def test_neither_starves_the_other(world: TransactionWorld, fairness: Fairness) -> None:
    world.slow_s = 0.2
    world.completer.take_over()
    ids = [await world.open(f"t{i}") for i in range(60)]
    await world.commit(*ids)
    updates = Updates(world, fairness)
    for rate in range(1, 11):
        await updates.one(rate)
    between = [after - before for before, after in zip(updates.batches_at, updates.batches_at[1:], strict=False)]
    assert set(between) == {1}, "one batch between two workflows"
    assert max(after - before for before, after in zip(updates.done, updates.done[1:], strict=False)) < 1
    await world.until_ended()
    assert ids_of_ended(world.transactions) == ids[::-1]


@pytest.mark.parametrize("most", [1])
async def test_a_workflow_that_died_while_it_waited_holds_commits_up_for_a_while_only(
    world: TransactionWorld, fairness: Fairness
) -> None:
    world.slow_s = 0.5
    world.completer.take_over()
    ids = [await world.open(f"t{i}") for i in range(4)]
    await world.commit(*ids)
    await until(lambda: world.merges == 1)
    dies = asyncio.ensure_future(fairness.wait(COMMAND))
    await asyncio.sleep(0.1)
    dies.cancel()
    await world.until_ended(max_s=YIELD_MS / 1000 + 5)


async def test_a_workflow_goes_on_while_the_owner_of_the_commits_is_dead(
    world: TransactionWorld, fairness: Fairness
) -> None:
    await world.commit(*[await world.open(f"t{i}") for i in range(3)])
    updates = Updates(world, fairness)
    for rate in range(1, 4):
        await updates.one(rate)
    assert time_s() < 3 * (COMMITS_FIRST_S + 0.2)
