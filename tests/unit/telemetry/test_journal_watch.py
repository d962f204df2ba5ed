"""How far behind the journal a process is, and what it tells of workflows."""

from typing import Any

import pytest
from prometheus_client import REGISTRY
from support.memory_journal import JournalWorld, settle

from sluice.domain import events as ev
from sluice.domain.config import StreamConfig
from sluice.domain.transaction.batch import YIELD_MS
from sluice.journal import watch as module
from sluice.journal.barrier import BarrierError
from sluice.journal.watch import STATES, JournalWatch

KEY = "sc/st"
SEGMENTS = (ev.Segment(0, 0.0, 1.0),)
BEGAN_MS = 1_000_000


@pytest.fixture
def now_ms(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time, to be set."""
    now = [BEGAN_MS]
    monkeypatch.setattr(module, "now_ms", lambda: now[0])
    return now


def creation(stream: str = "st") -> ev.StreamCreationStarted:
    return ev.StreamCreationStarted(
        scope="sc",
        stream=stream,
        incarnation="1",
        config=StreamConfig(),
        created_at=BEGAN_MS,
        segments=SEGMENTS,
        request="r",
        at=BEGAN_MS,
    )


def workflows(workflow: str) -> dict[str, tuple[float | None, float | None]]:
    """How many and how old, in seconds, by state; states without any are left out."""
    found = {}
    for state in STATES:
        labels = {"workflow": workflow, "state": state}
        count = REGISTRY.get_sample_value("sluice_workflows", labels)
        if count != 0:
            found[state] = (count, REGISTRY.get_sample_value("sluice_workflow_oldest_seconds", labels))
    return found


async def test_an_instance_that_learns_nothing_is_behind_until_it_has_what_was_there() -> None:
    world = JournalWorld()
    world.seed(KEY, creation())
    watch, partition = JournalWatch(world.first.journal), world.first.journal.partition_of(KEY)
    watch.heard(await world.first.journal.ends(), 100.0)
    assert (watch.lag(partition), watch.behind_s(partition, 105.0)) == (0, 0.0)
    world.first.frozen = True
    world.seed(KEY, ev.StreamCreated(scope="sc", stream="st"))
    watch.heard(await world.first.journal.ends(), 110.0)
    world.seed(KEY, creation("other"))
    watch.heard(await world.first.journal.ends(), 115.0)
    assert (watch.lag(partition), watch.behind_s(partition, 118.0)) == (2, 8.0)
    world.first.thaw()
    assert (watch.lag(partition), watch.behind_s(partition, 120.0)) == (0, 0.0)


async def test_one_that_keeps_folding_is_never_behind_for_longer_than_since_it_was_asked() -> None:
    world = JournalWorld()
    watch, partition = JournalWatch(world.first.journal), world.first.journal.partition_of(KEY)
    for turn in range(5):
        watch.heard({partition: (turn + 1) * 10}, turn * 5.0)
        assert watch.lag(partition) == 10
        assert watch.behind_s(partition, turn * 5.0 + 4.0) == 4.0
        world.first.journal.views()[partition].next_offset = (turn + 1) * 10


async def test_it_asks_kafka_by_itself_and_goes_on_when_kafka_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    world = JournalWorld()
    watch = JournalWatch(world.first.journal)
    monkeypatch.setattr(module, "ASK_S", 0.0)
    outage: list[BaseException] = [BarrierError("away")]
    ask = world.first.ask

    def answer() -> Any:
        if outage:
            raise outage.pop()
        return ask()

    monkeypatch.setattr(world.first, "ask", answer)
    world.first.frozen = True
    world.seed(KEY, creation())
    watching = world.first.journal._loop.create_task(watch.watch())
    await settle()
    watching.cancel()
    assert not outage and watch.lag(world.first.journal.partition_of(KEY)) == 1


async def test_a_workflow_shows_from_its_beginning_to_its_end(now_ms: list[int]) -> None:
    world = JournalWorld()
    watch = JournalWatch(world.first.journal)
    world.seed(KEY, creation())
    now_ms[0] += 5_000
    watch.publish_workflows()
    assert workflows("create-stream") == {"running": (1, 5.0)}
    world.seed(KEY, ev.WorkflowStepFailed(aggregate="stream:sc/st", step="create-segments", attempts=2, error="away"))
    now_ms[0] += 5_000
    watch.publish_workflows()
    assert workflows("create-stream") == {"failing": (1, 10.0)}
    world.seed(KEY, ev.StreamCreated(scope="sc", stream="st"))
    watch.publish_workflows()
    assert workflows("create-stream") == {}


async def test_what_waits_for_its_turn_shows_until_it_says_so_no_more(now_ms: list[int]) -> None:
    world = JournalWorld()
    watch = JournalWatch(world.first.journal)
    world.seed(KEY, creation(), ev.StreamCreated(scope="sc", stream="st"))
    world.seed(KEY, ev.WorkflowWaiting(scope="sc", stream="st", kind="ScaleStream", at=BEGAN_MS))
    watch.publish_workflows()
    waiting = workflows("scale-stream")
    assert set(waiting) == {"waiting"} and waiting["waiting"][0] == 1
    now_ms[0] += YIELD_MS
    watch.publish_workflows()
    assert workflows("scale-stream") == {}, "given up"
    world.seed(KEY, ev.WorkflowWaiting(scope="sc", stream="st", kind="ScaleStream", at=now_ms[0]))
    world.seed(KEY, ev.WorkflowTurnTaken(scope="sc", stream="st"))
    assert dict(world.view(KEY).under_way()) == {}


async def test_many_workflows_are_counted_only_so_far(now_ms: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COUNTED_MOST", 3)
    world = JournalWorld()
    for number in range(5):
        world.seed(f"sc/s{number}", creation(f"s{number}"))
    JournalWatch(world.first.journal).publish_workflows()
    assert workflows("create-stream") == {"running": (3, 0.0)}
