"""What a workflow needs of other keys: how much is sent, how often, under which ids, and what ends the waiting."""

import asyncio
from collections import Counter as Count
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest
from support.counters import Added, AnyEvent, WorkCancelled, WorkEnded, WorkRetried, WorkStarted, entry, record
from support.engine_world import MODEL, EngineWorld

from sluice.engine.decision import Decision
from sluice.engine.dependencies import MAX_UNDER_WAY, Dependencies, Dependency
from sluice.engine.fold import PartitionView
from sluice.engine.offsets import RequestFacts
from sluice.engine.ports import SendError

AGGREGATE = "mine:w"


class Ask(msgspec.Struct, frozen=True):
    """A command that a dependency sends."""

    key: str


class HandBlockers:
    """See Blockers: what the test says."""

    def __init__(self) -> None:
        self.ahead: str | None = None
        self.work: str | None = None

    def ahead_of(self, _view: PartitionView, _command: Ask) -> str | None:
        return self.ahead

    def at_work(self, _view: PartitionView, _command: Ask) -> str | None:
        return self.work


class Scene:
    """A workflow that is under way. `sent` has when, under which id, and what. The next `refusals` are not taken."""

    def __init__(self, world: EngineWorld) -> None:
        self.world = world
        world.seed(AGGREGATE.partition(":")[0], WorkStarted(AGGREGATE))
        self.sent: list[tuple[float, str, Ask]] = []
        self.refusals = 0
        self.blockers = HandBlockers()

    async def begin(self) -> None:
        await asyncio.sleep(0.001)
        workflow = MODEL.running(self.world.view("mine").get(AGGREGATE))
        self.began = self.world.broker.loop.time()
        self.dependencies = Dependencies(self.world.journal, MODEL, self._send, self.blockers, AGGREGATE, workflow)

    async def _send(self, id: str, command: Ask) -> None:
        if self.refusals:
            self.refusals -= 1
            raise SendError("away")
        self.sent.append((self.now, id, command))

    @property
    def now(self) -> float:
        """Seconds since the begin."""
        return self.world.broker.loop.time() - self.began

    async def wait(self, unmet: list[Dependency]) -> float:
        """Seconds until it was worth to look once more."""
        before = self.now
        async with asyncio.timeout(120):
            await self.dependencies.wait_for(unmet, "mine")
        return self.now - before

    async def wait_until_s(self, unmet: list[Dependency], seconds: float) -> None:
        while self.now < seconds:
            await self.wait(unmet)

    async def sent_within_s(self, unmet: list[Dependency], seconds: float) -> int:
        """How often something was sent from now on."""
        before = len(self.sent)
        await self.wait_until_s(unmet, self.now + seconds)
        return len(self.sent) - before

    def later(self, seconds: float, change: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_later(seconds, change)


@pytest.fixture
async def made(world: EngineWorld) -> AsyncIterator[Scene]:
    made = Scene(world)
    await made.begin()
    yield made
    made.dependencies.forget()
    await asyncio.sleep(0)
    assert world.journal.replies_expected == 0, "no reply is awaited any more"


def wants(count: int, holds: Callable[[int], bool] = lambda _n: False) -> list[Dependency]:
    def want(n: int) -> Dependency:
        return Dependency(f"x{n}", f"x{n}", lambda _reader: holds(n), Ask(f"x{n}"))

    return [want(n) for n in range(count)]


async def test_what_does_not_come_is_sent_less_and_less_often_each_time_under_its_own_id(made: Scene) -> None:
    await made.wait_until_s(wants(1), 3600)
    times = [at for at, _, _ in made.sent]
    assert 8 <= len(times) < 130 and times[0] == 0 and times[1] < 3
    assert len({id for _, id, _ in made.sent}) == len(times)


async def test_of_many_only_some_are_sent_at_once_but_each_soon(made: Scene) -> None:
    many = wants(3 * MAX_UNDER_WAY + 1)
    await made.wait_until_s(many, 10)
    assert {command for _, _, command in made.sent} == {d.command for d in many}
    assert max(Count(int(at) for at, _, _ in made.sent).values()) <= MAX_UNDER_WAY


async def test_many_that_never_come_do_not_flood_the_topic(made: Scene) -> None:
    await made.wait_until_s(wants(1000), 600)
    assert await made.sent_within_s(wants(1000), 3600) <= 100 * MAX_UNDER_WAY


async def test_commands_that_are_alike_are_sent_once(made: Scene) -> None:
    await made.wait([*wants(1), *wants(1)])
    assert len(made.sent) == 1


async def test_what_is_met_is_forgotten_and_sent_at_once_if_it_is_unmet_later(made: Scene) -> None:
    await made.wait_until_s(wants(2), 300)
    await made.wait(wants(1))
    before, at = len(made.sent), made.now
    await made.wait(wants(2))
    assert (at, Ask("x1")) in [(when, command) for when, _, command in made.sent[before:]]


async def test_what_comes_ends_the_waiting_at_once(made: Scene) -> None:
    other = Dependency("it counts", "other", lambda reader: reader.get("other") is not None)
    made.later(0.003, lambda: made.world.seed("other", Added("other")))
    assert await made.wait([other]) < 0.0032 and made.sent == []


async def test_some_of_many_bring_a_look_soon_after(made: Scene) -> None:
    there: set[int] = set()

    def arrive() -> None:
        there.add(3)
        made.world.seed("x3", Added("x3"))

    made.later(0.1, arrive)
    assert 0.1 < await made.wait(wants(20, there.__contains__)) < 0.2


async def test_a_retry_that_comes_before_the_waiting_begins_counts(made: Scene) -> None:
    await made.wait_until_s(wants(1), 300)
    made.world.seed("mine", WorkRetried(AGGREGATE))
    await asyncio.sleep(0.001)
    retried_at, before = made.now, len(made.sent)
    assert await made.wait(wants(1)) == 0, "the step may have looked before the retry"
    assert await made.wait(wants(1)) < 5
    assert made.sent[before][0] == retried_at


@pytest.mark.parametrize(
    "change", [WorkRetried(AGGREGATE), WorkCancelled(AGGREGATE), WorkEnded(AGGREGATE)], ids=["retry", "cancel", "end"]
)
async def test_a_workflow_that_is_retried_cancelled_or_over_waits_no_longer(made: Scene, change: AnyEvent) -> None:
    await made.wait_until_s(wants(1), 300)
    made.later(0.5, lambda: made.world.seed("mine", change))
    assert await made.wait(wants(1)) < 0.51


async def test_a_cancellation_beyond_the_point_of_no_return_ends_nothing(made: Scene) -> None:
    await made.wait_until_s(wants(1), 300)
    made.later(0.5, lambda: made.world.seed("mine", Added(AGGREGATE), WorkCancelled(AGGREGATE)))
    assert await made.wait(wants(1)) > 1


async def test_nothing_is_sent_a_second_time_while_its_queue_is_held_up(made: Scene) -> None:
    made.blockers.ahead = "held up"
    assert await made.sent_within_s(wants(1), 3600) == 1
    made.blockers.ahead = None
    assert await made.sent_within_s(wants(1), 200) > 1


@pytest.mark.parametrize("ahead", [None, "held up"])
async def test_what_could_not_be_sent_is_due_at_once(made: Scene, ahead: str | None) -> None:
    made.blockers.ahead, made.refusals = ahead, 3
    for _ in range(3):
        with pytest.raises(SendError):
            await made.wait(wants(1))
    await made.wait(wants(1))
    assert [at for at, _, _ in made.sent] == [0]


async def test_what_could_not_be_sent_does_not_have_the_others_sent_twice(made: Scene) -> None:
    made.refusals = 1
    with pytest.raises(SendError):
        await made.wait(wants(5))
    await made.wait(wants(5))
    assert len({command for _, _, command in made.sent}) == len(made.sent) == 5


async def test_what_could_not_be_sent_a_second_time_is_due_at_once_too(made: Scene) -> None:
    await made.wait_until_s(wants(1), 300)
    made.refusals = 1
    with pytest.raises(SendError):
        await made.wait_until_s(wants(1), 600)
    failed_at, before = made.now, len(made.sent)
    await made.wait(wants(1))
    assert [at for at, _, _ in made.sent[before:]] == [failed_at]


async def test_operators_see_the_first_few_and_what_runs_there(made: Scene) -> None:
    assert made.dependencies.describe(wants(5)) == "waits: x0; x1; x2; 2 more"
    made.blockers.work = "seal-stream runs there"
    assert made.dependencies.describe(wants(1)) == "waits: x0 (seal-stream runs there)"


async def test_operators_see_what_was_replied_last(made: Scene) -> None:
    for reply in ("first", "second"):
        await made.wait_until_s(wants(1), made.now + 10)
        _, id, command = made.sent[-1]
        decision = Decision(reply=reply)
        await made.world.journal.propose(command.key, lambda _r, _c, said=decision: said, RequestFacts(id))  # type: ignore[misc]
        assert made.dependencies.describe(wants(1)) == f"waits: x0 (replied {reply})"


async def test_operators_see_that_the_partition_of_what_is_awaited_has_stopped(made: Scene) -> None:
    other = made.world.key_at((made.world.journal.partition_of("mine") + 1) % 4)
    far = Dependency("far", "mine", lambda _reader: False, Ask(other))
    await made.wait([far])
    made.world.broker.land("sluice.journal", other, b"no record")
    await asyncio.sleep(0.001)
    assert "cannot be applied" in made.dependencies.describe([far])


async def test_what_is_unmet_is_recorded_first_after_a_while_and_then_less_often(made: Scene) -> None:
    times = []
    for second in range(1, 3600):
        await asyncio.sleep(second - made.now)
        if made.dependencies.is_due_for_record():
            times.append(second)
    assert times[0] <= 2 and 8 < len(times) < 130


async def test_a_record_of_another_aggregate_does_not_end_the_waiting(made: Scene) -> None:
    unrelated = record(entry(Added("mine:other"), expect={"mine:other": 0}))
    made.later(0.5, lambda: made.world.land("mine", unrelated))
    assert await made.wait(wants(1)) > 1
