"""How far behind the journal a process is, and what it shows of workflows."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from prometheus_client import REGISTRY
from support.engine_world import EngineWorld, engine_world, settle

from sluice import journal_watch as module
from sluice.domain.cluster.events import ContainersAssigned, ContainersUnresponsive, MemberJoined, MemberLeft
from sluice.domain.cluster.state import CLUSTER
from sluice.domain.config import StreamConfig
from sluice.domain.events import Event
from sluice.domain.host import Host
from sluice.domain.model import DomainModel
from sluice.domain.segment import Segment
from sluice.domain.stream.events import StreamCreated, StreamCreationStarted, WorkflowAdmitted, WorkflowQueued
from sluice.domain.stream.state import YIELD_MS
from sluice.domain.workflow import WorkflowStepFailed
from sluice.journal_watch import POLL_S, STATES, JournalWatch

KEY = "sc/st"
SEGMENTS = (Segment(0, 0.0, 1.0),)


@pytest.fixture
async def world(virtual_time: None) -> AsyncIterator[EngineWorld]:
    """A journal of the domain."""
    world = EngineWorld(model=DomainModel())
    await settle()
    yield world
    await world.stop()


@pytest.fixture
def watch(world: EngineWorld) -> JournalWatch:
    return JournalWatch(world.journal, 4)


async def seed(world: EngineWorld, *events: Event, key: str = KEY) -> None:
    world.seed(key, *events)
    await settle()


def creation(stream: str = "st") -> StreamCreationStarted:
    return StreamCreationStarted(
        scope="sc", stream=stream, creation_id="1", config=StreamConfig(), created_at=0, segments=SEGMENTS, at=0
    )


def created() -> StreamCreated:
    return StreamCreated(scope="sc", stream="st")


def workflows(workflow: str) -> dict[str, tuple[float | None, float]]:
    """How many and how old, in seconds, by state; states without any are left out."""
    found = {}
    for state in STATES:
        labels = {"workflow": workflow, "state": state}
        count = REGISTRY.get_sample_value("sluice_workflows", labels)
        if count != 0:
            oldest = REGISTRY.get_sample_value("sluice_workflow_oldest_seconds", labels)
            found[state] = (count, round(oldest or 0.0, 1))
    return found


async def test_unresponsive_containers_show_by_the_store_that_ran_them(world: EngineWorld, watch: JournalWatch) -> None:
    first, second = Host("first", 1), Host("second", 1)
    assigned = ContainersAssigned(containers={0: first, 1: second, 2: first}, hosts=(first, second), at=5)
    joined = MemberJoined(service="txn-manager", instance="a", endpoints={}, at=5)
    await seed(world, assigned, joined, ContainersUnresponsive("a", (0, 2), at=7_000), key=CLUSTER)
    watch.publish_containers()
    assert [silent(store) for store in ("first:1", "second:1", "none")] == [2, 0, 1]
    assert watch.unresponsive_containers() == (
        "containers 0, 2 of segment store first:1 have not answered a since 1970-01-01T00:00:07Z; "
        "no segment store runs container 3"
    )
    await seed(world, MemberLeft("a", at=9_000), key=CLUSTER)
    watch.publish_containers()
    assert (silent("first:1"), watch.unresponsive_containers()) == (0, "no segment store runs container 3")


def silent(store: str) -> float | None:
    return REGISTRY.get_sample_value("sluice_silent_containers", {"store": store})


async def test_a_process_that_does_not_fold_is_behind_until_it_has(world: EngineWorld, watch: JournalWatch) -> None:
    await seed(world, creation())
    partition = world.journal.partition_of(KEY)
    watch.observe(await world.journal.ends(), 100.0)
    assert (watch.lag(partition), watch.behind_s(partition, 105.0)) == (0, 0.0)
    world.first.log.freeze()
    await seed(world, created())
    watch.observe(await world.journal.ends(), 110.0)
    await seed(world, creation())
    watch.observe(await world.journal.ends(), 115.0)
    assert (watch.lag(partition), watch.behind_s(partition, 118.0)) == (2, 8.0)
    world.first.log.thaw()
    await settle()
    assert (watch.lag(partition), watch.behind_s(partition, 120.0)) == (0, 0.0)


async def test_a_process_that_keeps_folding_is_behind_since_the_last_ends(
    world: EngineWorld, watch: JournalWatch
) -> None:
    partition = world.journal.partition_of(KEY)
    for turn in range(5):
        world.first.log.freeze()
        await seed(world, *([creation()] if not turn else []))
        watch.observe(await world.journal.ends(), turn * 5.0)
        assert watch.lag(partition) == 1 and watch.behind_s(partition, turn * 5.0 + 4.0) == 4.0
        world.first.log.thaw()
        await settle()


async def test_services_that_share_a_process_show_the_one_that_is_furthest_behind(virtual_time: None) -> None:
    def shown(world: EngineWorld) -> float | None:
        partition = str(world.journal.partition_of(KEY))
        return REGISTRY.get_sample_value("sluice_journal_lag_records", {"partition": partition})

    async with engine_world(processes=2, model=DomainModel()) as world:
        behind, ahead = (JournalWatch(process.journal, 4) for process in world.processes)
        watching = [asyncio.get_running_loop().create_task(one.watch()) for one in (behind, ahead)]
        world.first.log.freeze()
        await seed(world, creation())
        await asyncio.sleep(2 * POLL_S)
        ahead.publish_lag()
        assert shown(world) == 1
        for one in watching:
            one.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        ahead.publish_lag()
        assert shown(world) == 0, "the other one has ended"


async def test_the_ends_are_requested_again_after_an_outage(world: EngineWorld, watch: JournalWatch) -> None:
    partition = world.journal.partition_of(KEY)
    world.broker.go_away(3 * POLL_S)
    watching = asyncio.get_running_loop().create_task(watch.watch())
    world.first.log.freeze()
    await seed(world, creation())
    await asyncio.sleep(2 * POLL_S)
    assert watch.lag(partition) == 0 and not watching.done()
    await asyncio.sleep(3 * POLL_S)
    assert watch.lag(partition) == 1
    watching.cancel()


async def test_a_workflow_shows_from_its_begin_to_its_end(world: EngineWorld, watch: JournalWatch) -> None:
    await seed(world, creation())
    await asyncio.sleep(5)
    watch.publish_workflows()
    assert workflows("create-stream") == {"running": (1, 5.0)}
    failed = WorkflowStepFailed(aggregate="stream:sc/st", step="create-segments", attempts=2, error="away")
    await seed(world, failed)
    await asyncio.sleep(5)
    watch.publish_workflows()
    assert workflows("create-stream") == {"failing": (1, 10.0)}
    await seed(world, created())
    watch.publish_workflows()
    assert workflows("create-stream") == {}


async def test_a_queued_workflow_shows_until_its_notice_expires(world: EngineWorld, watch: JournalWatch) -> None:
    def waiting() -> WorkflowQueued:
        return WorkflowQueued(scope="sc", stream="st", kind="ScaleStream", at=world.broker.now_ms())

    await seed(world, creation(), created(), waiting())
    watch.publish_workflows()
    shown = workflows("scale-stream")
    assert set(shown) == {"waiting"} and shown["waiting"][0] == 1
    await asyncio.sleep(YIELD_MS / 1000)
    watch.publish_workflows()
    assert workflows("scale-stream") == {}, "it has given up"
    await seed(world, waiting(), WorkflowAdmitted(scope="sc", stream="st"))
    assert dict(world.view(KEY).under_way()) == {}


async def test_workflows_are_counted_up_to_a_limit(
    world: EngineWorld, watch: JournalWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_COUNTED", 3)
    for number in range(5):
        await seed(world, creation(f"s{number}"), key=f"sc/s{number}")
    watch.publish_workflows()
    assert workflows("create-stream") == {"running": (3, 0.0)}
