"""Waiting for other keys: how much is asked for, how often, under which ids, and what ends it."""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
from support.memory_journal import JournalWorld
from support.virtual_time import run

from sluice.domain import events as ev
from sluice.domain.commands import AbortReason, AbortTransaction, Command, ReleaseName, SealStream
from sluice.domain.commands import NameKind as Kind
from sluice.domain.config import ReaderGroupConfig, StreamConfig, TableConfig
from sluice.domain.decision import Context, Decision, Reader, Reply
from sluice.domain.names import MAX_NAME_LENGTH, key_of, scope_aggregate, stream_key
from sluice.domain.scope import find_scope
from sluice.domain.transaction.batch import YIELD_MS
from sluice.domain.workflow import Workflow, running
from sluice.journal.journal import now_ms
from sluice.messaging.producer import ProduceError
from sluice.workflows.lanes import aggregates_of
from sluice.workflows.waiting import AT_ONCE, Need, Waiting

AGGREGATE = scope_aggregate("sc")
KEY = stream_key("sc", "x0")
SEGMENTS = (ev.Segment(0, 0.0, 1.0),)
DELETION = (ev.ScopeCreated(scope="sc", at=0), ev.ScopeDeletionStarted(scope="sc", request="r", at=0))


class Scene:
    """A scope that is being deleted, or what else `events` begin, and what its workflow asks for.

    `sent` has when, and under which id. The next `refusals` are not taken.
    """

    def __init__(self, aggregate: str = AGGREGATE, events: tuple[ev.Event, ...] = DELETION) -> None:
        self.world = JournalWorld()
        self.key = key_of(aggregate)
        self.world.seed(self.key, *events)
        workflow = running(self.world.view(self.key).get(aggregate))
        assert isinstance(workflow, Workflow)
        self.sent: list[tuple[float, str, Command]] = []
        self.refusals = 0
        self.waiting = Waiting(self.world.first.journal, self._ask, aggregate, workflow)

    async def _ask(self, id: str, command: Command) -> None:
        if self.refusals:
            self.refusals -= 1
            raise ProduceError("away")
        self.sent.append((self.now, id, command))

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def wait(self, needs: list[Need]) -> float:
        """Seconds until it was worth to look again."""
        before = self.now
        async with asyncio.timeout(120):
            await self.waiting.wait_for(needs, self.key)
        return self.now - before

    async def wait_for_s(self, needs: list[Need], seconds: float) -> None:
        while self.now < seconds:
            await self.wait(needs)

    async def asked_within_s(self, needs: list[Need], seconds: float) -> int:
        """How often something was asked for from now on."""
        before = len(self.sent)
        await self.wait_for_s(needs, self.now + seconds)
        return len(self.sent) - before


def seals(count: int, holds: Callable[[int], bool] = lambda _i: False) -> list[Need]:
    def need(i: int) -> Need:
        command = SealStream("sc", f"x{i}")
        return Need(f"x{i}", command.key, lambda _reader: holds(i), command)

    return [need(i) for i in range(count)]


def stream_created(name: str) -> ev.StreamCreationStarted:
    return ev.StreamCreationStarted(
        scope="sc", stream=name, incarnation="i", config=StreamConfig(), created_at=0, segments=SEGMENTS
    )


def table_created(name: str) -> ev.TableCreationStarted:
    return ev.TableCreationStarted(
        scope="sc", table=name, incarnation="i", config=TableConfig(2, 4), created_at=0, segments=SEGMENTS
    )


def group_created(name: str) -> ev.ReaderGroupCreationStarted:
    return ev.ReaderGroupCreationStarted(
        scope="sc", group=name, incarnation="i", config=ReaderGroupConfig(id="g", starts={}), created_at=0
    )


def refuse_all(reason: str, _reader: Reader, _context: Context) -> Decision:
    return Decision(reply=Reply("FAILURE", reason))


def said_at(name: str, at_ms: int) -> ev.WorkflowWaiting:
    """A request for the stream waits for a batch of commits."""
    return ev.WorkflowWaiting(scope="sc", stream=name, kind="TruncateStream", at=at_ms)


def test_what_does_not_come_is_asked_for_less_and_less_often_under_one_id() -> None:
    async def scene() -> None:
        made = Scene()
        await made.wait_for_s(seals(1), 3600)
        times = [at for at, _, _ in made.sent]
        assert 8 <= len(times) < 130 and times[0] == 0 and times[1] < 3
        assert len({id for _, id, _ in made.sent}) == 1

    run(scene())


def test_of_many_things_only_some_are_asked_for_at_once_but_each_soon() -> None:
    async def scene() -> None:
        made = Scene()
        await made.wait_for_s(seals(3 * AT_ONCE + 1), 10)
        assert {command for _, _, command in made.sent} == {need.ask for need in seals(3 * AT_ONCE + 1)}
        assert max(Counter(int(at) for at, _, _ in made.sent).values()) <= AT_ONCE

    run(scene())


def test_many_things_that_never_come_do_not_flood_the_topic() -> None:
    async def scene() -> None:
        made = Scene()
        await made.wait_for_s(seals(1000), 600)
        before = len(made.sent)
        await made.wait_for_s(seals(1000), 4200)
        assert len(made.sent) - before <= 100 * AT_ONCE

    run(scene())


def test_a_kick_ends_the_pause_and_asks_again() -> None:
    async def scene() -> None:
        made = Scene()
        await made.wait_for_s(seals(1), 300)
        asked = len(made.sent)
        loop = asyncio.get_running_loop()
        loop.call_later(0.5, made.world.seed, "sc", ev.WorkflowKicked(aggregate=AGGREGATE))
        assert await made.wait(seals(1)) <= 0.5
        await made.wait(seals(1))
        assert len(made.sent) > asked

    run(scene())


def test_what_is_there_at_once_is_not_waited_for_any_longer() -> None:
    async def scene() -> None:
        made = Scene()
        gone = Need("it is gone", "sc", lambda reader: find_scope(reader, "other") is not None)
        loop = asyncio.get_running_loop()
        loop.call_later(0.003, made.world.seed, "sc", ev.ScopeCreated(scope="other", at=0))
        assert await made.wait([gone]) <= 0.0031

    run(scene())


def test_some_of_many_things_bring_a_look_soon_after() -> None:
    async def scene() -> None:
        made = Scene()
        there: set[int] = set()

        def arrive() -> None:
            there.add(3)
            made.world.seed(stream_key("sc", "x3"), ev.ScopeCreated(scope="other", at=0))

        asyncio.get_running_loop().call_later(0.1, arrive)
        assert 0.1 < await made.wait(seals(20, there.__contains__)) < 0.2

    run(scene())


def test_an_id_that_was_refused_is_followed_by_the_next_one() -> None:
    async def scene() -> None:
        made = Scene()
        await made.wait(seals(1))
        ((_, first, command),) = made.sent
        journal = made.world.first.journal
        await journal.execute(command.key, first, lambda _r, _c: Decision(reply=Reply("FAILURE")))
        await made.wait_for_s(seals(1), 5)
        assert [id for _, id, _ in made.sent[:2]] == [first, f"{first}.2"]

    run(scene())


def test_people_are_told_the_first_few_things() -> None:
    async def scene() -> None:
        made = Scene()
        assert made.waiting.says(seals(5)) == "waits: x0; x1; x2; 2 more"
        assert not made.waiting.is_worth_a_note()
        await made.wait_for_s(seals(1), 2)
        assert made.waiting.is_worth_a_note() and not made.waiting.is_worth_a_note()

    run(scene())


@pytest.mark.parametrize(
    ("begun", "ended", "told"),
    [
        (stream_created("x0"), ev.StreamCreated(scope="sc", stream="x0"), "create-stream runs there"),
        (
            stream_created("_MARKx0"),
            ev.StreamCreated(scope="sc", stream="_MARKx0"),
            "stream:sc/_MARKx0: create-stream runs",
        ),
        (table_created("x0"), ev.TableCreated(scope="sc", table="x0"), "table:sc/x0: create-table runs"),
    ],
)
def test_nothing_is_asked_for_again_while_anything_holds_the_lane_of_the_key(
    begun: ev.Event, ended: ev.Event, told: str
) -> None:
    async def scene() -> None:
        made = Scene()
        made.world.seed(KEY, begun)
        assert await made.asked_within_s(seals(1), 3600) == 1
        assert made.waiting.says(seals(1)) == f"waits: x0 ({told})"
        made.world.seed(KEY, ended)
        assert await made.asked_within_s(seals(1), 200) > 1
        assert made.waiting.says(seals(1)) == "waits: x0"

    run(scene())


def test_a_lane_has_all_aggregates_of_its_key_but_those_that_have_lanes_of_their_own() -> None:
    found = list(aggregates_of("sc/x"))
    assert found[:2] == ["stream:sc/x", "stream:sc/_MARKx"] and found[-1] == "table:sc/x"
    assert next(aggregates_of("sc/_RGg")) == "group:sc/g"
    for key in ("sc/x", "sc/_RGg", "sc/_MARK", f"sc/{'n' * MAX_NAME_LENGTH}"):
        assert {key_of(aggregate) for aggregate in aggregates_of(key)} == {key}


def test_a_group_holds_the_lane_of_its_state_stream() -> None:
    async def scene() -> None:
        made = Scene()
        seal = SealStream("sc", "_RGg")
        need = Need("it runs", seal.key, lambda _reader: False, seal)
        made.world.seed(seal.key, group_created("g"), stream_created("_RGg"), stream_created("_MARK_RGg"))
        assert await made.asked_within_s([need], 3600) == 1
        assert made.waiting.says([need]) == "waits: it runs (group:sc/g: create-reader-group runs)"

    run(scene())


def test_what_is_at_work_elsewhere_keeps_nothing_from_being_asked_for_again() -> None:
    async def scene() -> None:
        made = Scene()
        batch = ev.CommitBatchStarted(scope="sc", stream="x0", transactions=("t",), at=0)
        aborting = ev.TransactionAborting(scope="sc", stream="x0", transaction="t", at=0, reason=AbortReason.USER)
        opened = ev.TransactionOpened(scope="sc", stream="x0", transaction="t", at=0, lease_ms=1000)
        made.world.seed(KEY, batch, opened, aborting)
        other = next(name for name in (f"y{i}" for i in range(99)) if _meet(made, stream_key("sc", name), KEY))
        made.world.seed(KEY, stream_created(other))
        assert await made.asked_within_s(seals(1), 300) > 5
        assert made.waiting.says(seals(1)) == "waits: x0"

    run(scene())


def _meet(made: Scene, key: str, other: str) -> bool:
    journal = made.world.first.journal
    return journal.partition_of(key) == journal.partition_of(other)


def test_a_request_that_waits_for_a_batch_holds_the_lane_as_long_as_it_says_so() -> None:
    async def scene() -> None:
        made, now = Scene(), now_ms()
        idle = (stream_created("x0"), ev.StreamCreated(scope="sc", stream="x0"))
        made.world.seed(KEY, *idle, said_at("x0", now + 60_000))
        assert await made.asked_within_s(seals(1), 3600) == 1
        assert made.waiting.says(seals(1)) == "waits: x0 (TruncateStream waits its turn there)"
        made.world.seed(KEY, said_at("x0", now - YIELD_MS))
        assert await made.asked_within_s(seals(1), 200) > 1
        assert made.waiting.says(seals(1)) == "waits: x0"

    run(scene())


def test_a_seal_asks_again_for_aborts_though_it_holds_the_lane_of_its_stream_itself() -> None:
    async def scene() -> None:
        created = (stream_created("x0"), ev.StreamCreated(scope="sc", stream="x0"))
        made = Scene("stream:sc/x0", (*created, ev.StreamSealStarted(scope="sc", stream="x0", request="r", at=0)))
        abort = AbortTransaction("sc", "x0", "t", AbortReason.SEAL)
        open = Need("t is open", abort.key, lambda _reader: False, abort)
        assert await made.asked_within_s([open], 300) > 5
        assert made.waiting.says([open]) == "waits: t is open"

    run(scene())


def test_a_scope_at_work_keeps_no_request_of_its_key() -> None:
    async def scene() -> None:
        made = Scene()
        release = ReleaseName("sc", Kind.STREAM, "x", "i")
        held = Need("held", release.key, lambda _reader: False, release)
        assert await made.asked_within_s([held], 300) > 5

    run(scene())


@pytest.mark.parametrize("holds_the_lane", [(), (table_created("x0"),)])
def test_what_could_not_be_sent_is_due_at_once(holds_the_lane: tuple[ev.Event, ...]) -> None:
    async def scene() -> None:
        made = Scene()
        made.world.seed(KEY, *holds_the_lane)
        made.refusals = 3
        for _ in range(3):
            with pytest.raises(ProduceError):
                await made.wait(seals(1))
        await made.wait(seals(1))
        assert [at for at, _, _ in made.sent] == [0]

    run(scene())


def test_what_could_not_be_sent_keeps_the_others_from_being_sent_twice() -> None:
    async def scene() -> None:
        made = Scene()
        made.refusals = 1
        with pytest.raises(ProduceError):
            await made.wait(seals(5))
        await made.wait(seals(5))
        assert len(made.sent) == len({id for _, id, _ in made.sent}) == 5

    run(scene())


def test_what_could_not_be_sent_again_is_due_at_once_too() -> None:
    async def scene() -> None:
        made = Scene()
        await made.wait_for_s(seals(1), 300)
        made.refusals = 1
        with pytest.raises(ProduceError):
            await made.wait_for_s(seals(1), 600)
        failed_at, before = made.now, len(made.sent)
        await made.wait(seals(1))
        assert [at for at, _, _ in made.sent[before:]] == [failed_at]

    run(scene())


def test_a_kick_that_comes_before_the_waiting_begins_is_heard() -> None:
    async def scene() -> None:
        made = Scene()
        await made.wait_for_s(seals(1), 300)
        kicked_at, before = made.now, len(made.sent)
        made.world.seed("sc", ev.WorkflowKicked(aggregate=AGGREGATE))
        assert await made.wait(seals(1)) == 0, "the step may have looked before the kick"
        assert await made.wait(seals(1)) < 5
        assert made.sent[before][0] == kicked_at

    run(scene())


def test_people_are_told_why_it_was_refused() -> None:
    async def scene() -> None:
        made = Scene()
        for reason in ("first", "second"):
            await made.wait_for_s(seals(1), made.now + 10)
            _, id, command = made.sent[-1]
            await made.world.first.journal.execute(command.key, id, partial(refuse_all, reason))
            assert made.waiting.says(seals(1)) == f"waits: x0 (answered FAILURE: {reason})"

    run(scene())
