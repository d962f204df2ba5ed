"""Waiting for other keys: how much is asked for, how often, under which ids, and what ends it."""

import asyncio
from collections import Counter
from collections.abc import Callable

from support.memory_journal import JournalWorld
from support.virtual_time import run

from sluice.domain import events as ev
from sluice.domain.commands import Command, SealStream
from sluice.domain.decision import Decision, Reply
from sluice.domain.names import scope_aggregate, stream_key
from sluice.domain.scope import find_scope
from sluice.domain.workflow import Workflow, running
from sluice.workflows.waiting import AT_ONCE, Need, Waiting

AGGREGATE = scope_aggregate("sc")


class Scene:
    """A scope that is being deleted, and what its workflow asks for: `sent` has when, and under which id."""

    def __init__(self) -> None:
        self.world = JournalWorld()
        started = ev.ScopeDeletionStarted(scope="sc", request="r", at=0)
        self.world.seed("sc", ev.ScopeCreated(scope="sc", at=0), started)
        workflow = running(self.world.view("sc").get(AGGREGATE))
        assert isinstance(workflow, Workflow)
        self.sent: list[tuple[float, str, Command]] = []
        self.waiting = Waiting(self.world.first.journal, self._ask, AGGREGATE, workflow)

    async def _ask(self, id: str, command: Command) -> None:
        self.sent.append((self.now, id, command))

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def wait(self, needs: list[Need]) -> float:
        """Seconds until it was worth to look again."""
        before = self.now
        async with asyncio.timeout(120):
            await self.waiting.wait_for(needs, "sc")
        return self.now - before

    async def wait_for_s(self, needs: list[Need], seconds: float) -> None:
        while self.now < seconds:
            await self.wait(needs)


def seals(count: int, holds: Callable[[int], bool] = lambda _i: False) -> list[Need]:
    def need(i: int) -> Need:
        command = SealStream("sc", f"x{i}")
        return Need(f"x{i}", command.key, lambda _reader: holds(i), command)

    return [need(i) for i in range(count)]


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
