"""The runner: whatever a step fails with, the workflow goes on, and operators can see it."""

import asyncio
import logging
from typing import Any

import msgspec
import pytest
from support.counters import Added, Counter, Kind, WorkCancelled, WorkEnded, WorkFailed, WorkRetried, WorkStarted
from support.engine_world import JOURNAL, MODEL, EngineWorld

from sluice.engine.crash_points import CrashPoints
from sluice.engine.decision import Context, Decision, Reader
from sluice.engine.dependencies import DependenciesPending, Dependency
from sluice.engine.executor import KeyedExecutor
from sluice.engine.runner import Runner, UnendedError
from sluice.engine.step import AT_ONCE, Step, all_done

KEY = "mine"
AGGREGATE = "mine:w"


class Ask(msgspec.Struct, frozen=True):
    key: str


def ended(reader: Reader, _context: Context, _state: Counter, _outcome: Any) -> Decision:
    reader.get(AGGREGATE)
    return Decision((WorkEnded(AGGREGATE),), "done")


def counted(reader: Reader, _context: Context, _state: Counter, outcome: int) -> Decision:
    reader.get(AGGREGATE)
    return Decision((Added(AGGREGATE, outcome),))


async def succeed(_context: None, _state: Counter) -> None:
    pass


class Scene:
    """A workflow of the steps, of which one is carried out at a time. `sent` are the commands of its dependencies."""

    def __init__(self, world: EngineWorld, *steps: Step[None]) -> None:
        self.world = world
        self.sent: list[Ask] = []
        self.executor = KeyedExecutor()
        self.limit = asyncio.Semaphore(1)
        workflows = {Kind.TIDY: steps}
        self.runner = Runner(world.journal, MODEL, workflows, None, CrashPoints(""), self._send)
        self.seed(WorkStarted(AGGREGATE))

    async def _send(self, _id: str, command: Ask) -> None:
        self.sent.append(command)

    def seed(self, *events: Any) -> None:
        self.world.seed(KEY, *events)

    async def begin(self) -> "asyncio.Future[None]":
        """Run it behind what was seeded, as an executor's job; done when that has ended."""
        await asyncio.sleep(0.001)
        done = asyncio.get_running_loop().create_future()

        async def job() -> None:
            await self.runner.run_to_completion(AGGREGATE, self.limit)
            done.set_result(None)

        self.executor.run(0, KEY, job)
        return done

    async def run(self) -> None:
        await asyncio.wait_for(await self.begin(), 3600)

    def events(self, kind: type) -> list[Any]:
        records = self.world.records(KEY)
        return [event for r in records for e in r.entries for event in e.events if isinstance(event, kind)]

    @property
    def state(self) -> Counter:
        state = self.world.view(KEY).get(AGGREGATE)
        assert isinstance(state, Counter)
        return state

    @property
    def now(self) -> float:
        return self.world.broker.loop.time()


class Failing:
    """A step that fails so often."""

    def __init__(self, times: int, error: Exception) -> None:
        self.left = times
        self.error = error
        self.carried_out = 0

    async def __call__(self, _context: None, _state: Counter) -> int:
        self.carried_out += 1
        if self.left:
            self.left -= 1
            raise self.error
        return 5


async def test_steps_run_in_order_and_what_they_found_is_recorded(world: EngineWorld) -> None:
    found = Failing(0, ValueError())
    made = Scene(world, Step("look", found, counted), Step("rest", succeed), Step("end", succeed, ended))
    awaited = world.journal.expect_reply("r", [KEY])
    await asyncio.sleep(0.001)
    work = made.state.work
    assert work is not None
    work.request = "r"
    await made.run()
    assert made.state == Counter(AGGREGATE, total=5) and await awaited == "done"


async def test_a_workflow_of_another_service_is_left_alone(world: EngineWorld) -> None:
    made = Scene(world, Step("end", succeed, ended))
    made.seed(WorkEnded(AGGREGATE), WorkStarted(AGGREGATE, kind=Kind.OTHER))
    await made.run()
    assert made.state.work is not None and made.runner.workflow_of(made.state) is None


async def test_a_step_that_fails_is_tried_until_it_succeeds_and_shows_each_doubling(
    world: EngineWorld, caplog: pytest.LogCaptureFixture
) -> None:
    # Processes of tests cannot pass such a text on with a captured log.
    caplog.set_level(logging.CRITICAL)

    failing = Failing(9, OSError("no such file: \udcff"))
    made = Scene(world, Step("look", failing, counted), Step("end", succeed, ended))
    await made.run()
    shown = made.events(WorkFailed)
    assert [(e.step, e.attempts) for e in shown] == [("look", 2), ("look", 4), ("look", 8)]
    assert shown[0].error == "OSError: no such file: ?" and made.state.total == 5


async def test_attempts_that_all_end_alike_show_that_the_trouble_may_not_pass(world: EngineWorld) -> None:
    failing = Failing(33, OSError("closed"))
    made = Scene(world, Step("look", failing, counted), Step("end", succeed, ended))
    done = await made.begin()
    await asyncio.sleep(75)
    failing.error = TimeoutError("away")
    await asyncio.wait_for(done, 3600)
    assert [(e.attempts, e.error) for e in made.events(WorkFailed)[2:]] == [
        (8, "OSError: closed"),
        (16, "OSError: closed; each of the last 16 attempts ended like this"),
        (32, "TimeoutError: away"),
    ]


async def test_only_the_step_that_failed_is_tried_anew_with_those_before_it(world: EngineWorld) -> None:
    first, second = Failing(0, ValueError()), Failing(1, ValueError("once"))
    made = Scene(world, Step("first", first), Step("second", second), Step("end", succeed, ended))
    await made.run()
    assert (first.carried_out, second.carried_out) == (2, 2)


async def test_a_workflow_whose_last_step_does_not_end_it_shows(world: EngineWorld) -> None:
    made = Scene(world, Step("look", succeed))
    done = await made.begin()
    await asyncio.sleep(10)
    assert not done.done() and UnendedError.__name__ in made.events(WorkFailed)[0].error
    made.executor.cancel()


async def test_a_retry_ends_the_pause_between_two_attempts(world: EngineWorld) -> None:
    failing = Failing(10**6, ValueError("away"))
    made = Scene(world, Step("look", failing, counted), Step("end", succeed, ended))
    done = await made.begin()
    await asyncio.sleep(300)
    failing.left = 0
    made.seed(WorkRetried(AGGREGATE))
    before = made.now
    await done
    assert made.now - before < 0.01


@pytest.mark.parametrize("is_waiting", [False, True])
async def test_a_workflow_that_is_cancelled_in_time_ends_without_another_attempt(
    world: EngineWorld, is_waiting: bool
) -> None:
    async def wait(_context: None, _state: Counter) -> None:
        raise DependenciesPending([Dependency("never", "x", lambda _reader: False, Ask("x"))])

    failing = Failing(10**6, ValueError("away"))
    made = Scene(world, Step("look", wait if is_waiting else failing), Step("end", succeed, ended))
    done = await made.begin()
    await asyncio.sleep(100)
    attempts = failing.carried_out
    made.seed(WorkCancelled(AGGREGATE))
    await asyncio.wait_for(done, 0.1)
    assert failing.carried_out == attempts


async def test_a_cancellation_during_the_last_step_ends_the_workflow_as_cancelled(world: EngineWorld) -> None:
    go = asyncio.Event()

    async def look(_context: None, _state: Counter) -> int:
        await go.wait()
        return 5

    made = Scene(world, Step("look", look, counted))
    done = await made.begin()
    made.seed(WorkCancelled(AGGREGATE))
    await asyncio.sleep(0.001)
    go.set()
    await asyncio.wait_for(done, 0.1)
    assert made.state == Counter(AGGREGATE), "what the step found is not recorded"


async def test_a_cancellation_beyond_the_point_of_no_return_is_no_end(world: EngineWorld) -> None:
    failing = Failing(3, ValueError("away"))
    made = Scene(world, Step("look", failing), Step("end", succeed, ended))
    made.seed(Added(AGGREGATE), WorkCancelled(AGGREGATE))
    await made.run()
    assert failing.left == 0 and len(made.events(WorkEnded)) == 1


async def test_a_step_with_unmet_dependencies_is_carried_out_anew_when_they_are_met(world: EngineWorld) -> None:
    looked: list[float] = []
    need = Dependency("x", "x", lambda reader: reader.get("x") is not None, Ask("x"))

    async def look(_context: None, _state: Counter) -> None:
        looked.append(world.broker.loop.time())
        if not need.holds(world.view("x")):
            raise DependenciesPending([need])

    made = Scene(world, Step("look", look), Step("end", succeed, ended))
    done = await made.begin()
    asyncio.get_running_loop().call_later(100, world.seed, "x", Added("x"))
    await done
    assert made.sent and looked[-1] == pytest.approx(looked[0] + 100, abs=0.01)
    assert made.events(WorkFailed)[0].error == "waits: x" and made.events(WorkFailed)[0].attempts == 0
    assert world.journal.replies_expected == 0


@pytest.mark.parametrize("waits_for", ["an attempt", "a dependency", "the journal"])
async def test_a_workflow_that_carries_nothing_out_leaves_its_place_to_others(
    world: EngineWorld, waits_for: str
) -> None:
    async def look(_context: None, _state: Counter) -> int:
        if waits_for == "a dependency":
            raise DependenciesPending([Dependency("never", "x", lambda _reader: False)])
        if waits_for == "an attempt":
            raise ValueError("away")
        world.broker.unwritable.add((JOURNAL, world.journal.partition_of(KEY)))
        return 5

    made = Scene(world, Step("look", look, counted))
    await made.begin()
    await asyncio.sleep(100)
    assert not made.limit.locked() and made.executor.keys_at_work == 1
    made.executor.drop([0])
    await asyncio.sleep(0.001)
    assert made.executor.keys_at_work == 0 and world.journal.replies_expected == 0


async def test_no_more_steps_are_carried_out_than_the_limit_has_places(world: EngineWorld) -> None:
    looked = Failing(0, ValueError())
    made = Scene(world, Step("look", looked, counted), Step("end", succeed, ended))
    async with made.limit:
        done = await made.begin()
        await asyncio.sleep(100)
        assert looked.carried_out == 0
    await done
    assert looked.carried_out == 1 and made.state.total == 5


async def test_a_step_that_waits_only_for_the_journal_needs_no_place(world: EngineWorld) -> None:
    looked = Failing(0, ValueError())
    made = Scene(world, Step("look", looked, counted, is_limited=False), Step("end", succeed, ended))
    async with made.limit:
        await made.begin()
        await asyncio.sleep(100)
        assert looked.carried_out == 1 and made.state.total == 5 and made.state.work is not None


async def test_a_step_that_is_cancelled_gives_its_place_back(world: EngineWorld) -> None:
    async def hang(_context: None, _state: Counter) -> None:
        await asyncio.Event().wait()

    made = Scene(world, Step("hang", hang))
    await made.begin()
    await asyncio.sleep(1)
    assert made.limit.locked()
    made.executor.drop([0])
    await asyncio.sleep(0.001)
    assert not made.limit.locked()


async def test_what_a_step_found_is_not_recorded_for_a_later_workflow(world: EngineWorld) -> None:
    go = asyncio.Event()

    async def look(_context: None, _state: Counter) -> int:
        await go.wait()
        return 5

    made = Scene(world, Step("look", look, counted), Step("end", succeed, ended))
    done = await made.begin()
    await asyncio.sleep(0.001)
    world.first.log.freeze()
    made.seed(WorkEnded(AGGREGATE), WorkStarted(AGGREGATE, id="next"))
    go.set()
    await asyncio.sleep(0.001)
    world.first.log.thaw()
    await done
    assert made.state == Counter(AGGREGATE, total=5), "of the later one alone"


async def test_the_workflow_goes_on_through_an_outage_of_the_log(world: EngineWorld) -> None:
    failing = Failing(3, ValueError("away"))
    made = Scene(world, Step("look", failing, counted), Step("end", succeed, ended))
    await asyncio.sleep(0.001)
    world.broker.go_away(100)
    await made.run()
    assert made.state.work is None and made.state.total >= 5 and made.now >= 100


async def test_of_calls_side_by_side_all_are_awaited_and_the_first_failure_is_raised() -> None:
    ends: list[int] = []

    async def call(number: int, fails: bool) -> int:
        await asyncio.sleep(0)
        ends.append(number)
        if fails:
            raise ValueError(number)
        return number

    assert await all_done([call(0, False), call(1, False)]) == [0, 1]
    with pytest.raises(ValueError, match="1"):
        await all_done([call(0, False), call(1, True), call(2, True), call(3, False)])
    assert ends == [0, 1, 0, 1, 2, 3]


async def test_calls_are_made_so_many_at_once_and_none_behind_a_failure() -> None:
    """Otherwise a connection would refuse the same ones in each attempt of a step with very many."""
    under_way: list[int] = []
    most, begun = 0, 0

    async def call(number: int, fails: bool) -> int:
        nonlocal most, begun
        begun += 1
        under_way.append(number)
        most = max(most, len(under_way))
        await asyncio.sleep(0)
        under_way.remove(number)
        if fails:
            raise ValueError(number)
        return number

    assert await all_done(call(number, False) for number in range(3 * AT_ONCE + 1)) == list(range(3 * AT_ONCE + 1))
    assert most == AT_ONCE
    begun = 0
    with pytest.raises(ValueError, match="7"):
        await all_done((call(number, number == 7) for number in range(100)), at_once=10)
    assert begun == 10
