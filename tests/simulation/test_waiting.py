"""Waiting for other keys: it takes no slot, floods nothing, shows, and ends when somebody kicks or cancels."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any
from unittest.mock import patch

import pytest
from simulation import invariants
from simulation.world import World
from support.virtual_time import run

from sluice.domain import aggregates
from sluice.domain.commands import (
    AddSubscriber,
    CancelWorkflow,
    Command,
    CreateReaderGroup,
    CreateScope,
    CreateStream,
    CreateTable,
    DeleteReaderGroup,
    DeleteScopeRecursive,
    DeleteStream,
    KickWorkflow,
    SealStream,
)
from sluice.domain.config import GroupRetention, ReaderGroupConfig, ScalingPolicy, StreamConfig, TableConfig
from sluice.domain.decision import Decision
from sluice.domain.events import Event, WorkflowKicked, WorkflowStepFailed
from sluice.domain.names import key_of, stream_key
from sluice.domain.scope import find_scope
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.workflow import Workflow, running
from sluice.journal.record import Record, decode_record, encode_record
from sluice.messaging.producer import ProduceError
from sluice.messaging.requests import Request, decode_request
from sluice.segmentstore.failure import ConnectionFailure, Failure
from sluice.segmentstore.memory import Moment
from sluice.workflows import waiting

ONE = StreamConfig(scaling=ScalingPolicy(min_segments=1))


class Partial(World):
    """A world in which the segments of some streams are out of reach: those whose names begin as `away` says.

    The aggregate `kicked` is kicked right before it is noted next how its workflow fares.
    """

    def __init__(self, max_handlers: int = 256) -> None:
        self.away: tuple[str, ...] = ()
        self._refused: dict[type, int] = {}
        self._lost: set[type] = set()
        self.kicked = ""
        super().__init__(max_handlers)

    def refuse_next(self, kind: type, times: int) -> None:
        """Have the topic not take the next commands of a kind."""
        self._refused[kind] = times

    def lose_next(self, kind: type) -> None:
        """Have the topic forget the next command of a kind."""
        self._lost.add(kind)

    def append_request(self, request: Request) -> None:
        kind = type(request.command)
        if self._refused.get(kind):
            self._refused[kind] -= 1
            raise ProduceError("away")
        if kind in self._lost:
            self._lost.remove(kind)
            return
        super().append_request(request)

    def append_record(self, key: str, value: bytes) -> None:
        kicked = self.kicked
        if kicked and any(_is_note_of(kicked, event) for event in decode_record(value).events):
            self.kicked = ""
            kick = Record(id="kick", at=0, by="test", expect={}, events=(WorkflowKicked(aggregate=kicked),))
            super().append_record(key, encode_record(kick))
        super().append_record(key, value)

    def _touch_store(self, moment: Moment, request: str, segment: str) -> None:
        if segment.startswith(self.away):
            raise ConnectionFailure(Failure.TIMED_OUT)
        super()._touch_store(moment, request, segment)

    async def all_of(self, *commands: Command) -> None:
        """Ask for all of them at once; each succeeds."""
        ids = [self.post(command) for command in commands]
        await self.until(lambda: all(self.answer(id) is not None for id in ids))
        assert {self.answer(id).status for id in ids} == {"SUCCESS"}  # type: ignore[union-attr]

    def stream(self, name: str) -> Stream | None:
        return find_stream(self.view(stream_key("sc", name)), "sc", name)

    def workflow(self, aggregate: str) -> Workflow | None:
        return running(self.view(key_of(aggregate)).get(aggregate))

    def asked(self, kind: type) -> list[str]:
        """The ids under which commands of a kind stand in the topic."""
        requests = (decode_request(message.value()) for log in self.requests for message in log)
        return [request.id for request in requests if isinstance(request.command, kind)]

    def noted(self, aggregate: str) -> int:
        """How many records of the journal say how the workflow of an aggregate fares."""
        records = (decode_record(message.value()) for log in self.journal for message in log)
        events = (event for record in records for event in record.events)
        return sum(_is_note_of(aggregate, event) for event in events)


def _is_note_of(aggregate: str, event: Event) -> bool:
    return isinstance(event, WorkflowStepFailed) and event.aggregate == aggregate


Test = Callable[[Partial], Coroutine[Any, Any, None]]


def in_a_world(max_handlers: int = 256) -> Callable[[Test], Callable[[], None]]:
    """Run a test in a world with the scope `sc`. At its end every store answers, and all comes to rest."""

    def decorated(test: Test) -> Callable[[], None]:
        async def scene() -> None:
            world = Partial(max_handlers)
            await world.ask(CreateScope("sc"))
            await test(world)
            world.away = ()
            await world.until(lambda: not any(running(state) for state in world.states().values()))
            await world.until(world.process.is_idle)
            invariants.check(world)

        @wraps(test)
        def in_virtual_time() -> None:
            run(scene())

        del in_virtual_time.__wrapped__
        return in_virtual_time

    return decorated


def group(name: str, *streams: str) -> CreateReaderGroup:
    starts: dict[str, dict[int, int]] = {f"sc/{stream}": {} for stream in streams}
    return CreateReaderGroup("sc", name, ReaderGroupConfig(id=name, starts=starts, retention=GroupRetention.MANUAL))


async def stuck_while_sealed(world: Partial, stream: str) -> str:
    """Have a stream hang in its seal; the id of that request."""
    world.away = (f"sc/{stream}/",)
    request = world.post(SealStream("sc", stream))
    await world.until(lambda: world.workflow(f"stream:sc/{stream}"))
    return request


@in_a_world(max_handlers=2)
async def test_many_deletions_at_once_find_the_scope_at_work(world: Partial) -> None:
    names = [f"x{i}" for i in range(6)]
    await world.all_of(*(CreateStream("sc", name, ONE) for name in names))
    await world.all_of(*(SealStream("sc", name) for name in names))
    await world.all_of(*(DeleteStream("sc", name) for name in names))


@in_a_world(max_handlers=2)
async def test_many_groups_find_the_stream_that_they_wait_for_at_work(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    await world.all_of(*(group(f"g{i}", "st") for i in range(6)))
    await world.all_of(*(DeleteReaderGroup("sc", f"g{i}") for i in range(6)))


@in_a_world(max_handlers=2)
async def test_many_scopes_are_emptied_at_once(world: Partial) -> None:
    await world.all_of(*(CreateScope(scope) for scope in "abc"))
    await world.all_of(*(CreateStream(scope, f"x{i}", ONE) for scope in "abc" for i in range(5)))
    await world.all_of(*(DeleteScopeRecursive(scope) for scope in "abc"))


@in_a_world(max_handlers=2)
async def test_an_instance_that_takes_over_many_deletions_finds_its_way_out(world: Partial) -> None:
    names = [f"x{i}" for i in range(6)]
    await world.all_of(*(CreateStream("sc", name, ONE) for name in names))
    await world.all_of(*(SealStream("sc", name) for name in names))
    world.away = ("sc/",)
    deletions = [world.post(DeleteStream("sc", name)) for name in names]
    await world.until(lambda: all(world.workflow(f"stream:sc/{name}") for name in names))
    world.process.end()
    world._restart()
    world.away = ()
    await world.until(lambda: all(world.answer(id) for id in deletions))


@in_a_world(max_handlers=2)
async def test_kicks_and_cancellations_need_no_slot_of_the_others(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    slots = [await world.process.consumer.slots.acquire() for _ in range(2)]
    kick = world.post(KickWorkflow("stream:sc/st"))
    await world.until(lambda: world.answer(kick))
    for _ in slots:
        world.process.consumer.slots.release()


@in_a_world()
async def test_what_a_group_waits_for_shows_without_flooding_anything(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    await stuck_while_sealed(world, "st")
    request = world.post(group("g", "st"))
    await world.until(lambda: (found := world.workflow("group:sc/g")) is not None and found.last_error)
    found = world.workflow("group:sc/g")
    assert found is not None and (found.step, found.kind.value) == ("subscribe", "create-reader-group")
    assert found.last_error == "waits: stream sc/st has not yet added the subscriber (seal-stream runs there)"
    assert world.now_ms() < 20_000
    await asyncio.sleep(3600)
    assert len(world.asked(AddSubscriber)) == 1 and world.noted("group:sc/g") < 80
    world.away = ()
    await world.until(lambda: world.answer(request))
    stream = world.stream("st")
    assert stream is not None and "sc/g" in stream.subscribers


@in_a_world()
async def test_a_group_that_waits_is_cancelled_at_once_and_leaves_no_subscriber(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    await stuck_while_sealed(world, "st")
    request = world.post(group("g", "st"))
    await world.until(lambda: world.asked(AddSubscriber))
    before = world.now_ms()
    cancelled = world.post(CancelWorkflow("group:sc/g"))
    await world.until(lambda: world.answer(request))
    assert world.now_ms() - before < 200
    assert world.answer(cancelled).status == "SUCCESS"  # type: ignore[union-attr]
    assert world.answer(request).reason == "cancelled"  # type: ignore[union-attr]
    world.away = ()
    await world.until(lambda: (stream := world.stream("st")) is not None and stream.workflow is None)
    await world.until(world.process.is_idle)
    stream = world.stream("st")
    assert stream is not None and not stream.subscribers


@in_a_world()
async def test_a_kick_asks_again_under_the_same_id(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    await stuck_while_sealed(world, "st")
    world.post(group("g", "st"))
    await world.until(lambda: world.asked(AddSubscriber))
    await asyncio.sleep(300)
    world.post(KickWorkflow("group:sc/g"))
    before = world.now_ms()
    await world.until(lambda: len(world.asked(AddSubscriber)) == 2)
    assert world.now_ms() - before < 100
    assert len(set(world.asked(AddSubscriber))) == 1


@in_a_world()
async def test_a_mark_stream_that_is_stuck_lets_no_requests_for_its_stream_pile_up(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    await stuck_while_sealed(world, "_MARKst")
    request = world.post(group("g", "st"))
    await asyncio.sleep(600)
    found = world.workflow("group:sc/g")
    assert found is not None
    assert found.last_error == (
        "waits: stream sc/st has not yet added the subscriber (stream:sc/_MARKst: seal-stream runs)"
    )
    assert len(world.asked(AddSubscriber)) == 1
    world.away = ()
    await world.until(lambda: world.answer(request))


@in_a_world()
async def test_a_table_that_is_stuck_lets_no_requests_for_a_stream_of_its_name_pile_up(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    world.away = ("sc/st_kvtable/",)
    world.post(CreateTable("sc", "st", TableConfig(2, 4)))
    await world.until(lambda: world.workflow("table:sc/st"))
    request = world.post(DeleteScopeRecursive("sc"))
    await asyncio.sleep(600)
    assert len(world.asked(SealStream)) == 1 and world.process.consumer.open_records == 1
    world.away = ()
    await world.until(lambda: world.answer(request))


@in_a_world()
async def test_what_was_lost_while_the_lane_was_held_up_is_asked_for_again_when_it_is_free(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    await stuck_while_sealed(world, "_MARKst")
    world.lose_next(AddSubscriber)
    request = world.post(group("g", "st"))
    await asyncio.sleep(600)
    assert not world.asked(AddSubscriber) and world.answer(request) is None
    world.away = ()
    await world.until(lambda: world.answer(request))


@in_a_world()
async def test_what_the_topic_refuses_is_sent_as_soon_as_it_takes_it(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    world.refuse_next(AddSubscriber, 3)
    before = world.now_ms()
    await world.all_of(group("g", "st"))
    assert world.now_ms() - before < 1000 and len(world.asked(AddSubscriber)) == 1


@in_a_world()
async def test_a_kick_that_comes_while_the_waiting_is_noted_is_heard(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    await stuck_while_sealed(world, "st")
    world.post(group("g", "st"))
    await asyncio.sleep(300)
    world.kicked = "group:sc/g"
    assert len(world.asked(AddSubscriber)) == 1
    await world.until(lambda: not world.kicked)
    await asyncio.sleep(1)
    assert len(world.asked(AddSubscriber)) == 2


@in_a_world()
async def test_a_scope_that_cannot_be_emptied_asks_each_thing_once(world: Partial) -> None:
    await world.all_of(*(CreateStream("sc", f"x{i}", ONE) for i in range(10)))
    world.away = ("sc/",)
    request = world.post(DeleteScopeRecursive("sc"))
    await asyncio.sleep(600)
    assert len(world.asked(SealStream)) == 10 and not world.asked(DeleteStream)
    assert world.process.consumer.open_records == 0
    found = world.workflow("scope:sc")
    assert found is not None and not found.attempts and "seal-stream runs" in found.last_error
    assert world.noted("scope:sc") < 20
    world.away = ()
    await world.until(lambda: world.answer(request))
    assert find_scope(world.view("sc"), "sc") is None


@in_a_world()
async def test_what_cannot_go_keeps_nothing_else_in_its_scope(world: Partial) -> None:
    names = [f"x{i}" for i in range(45)]
    await world.all_of(*(CreateStream("sc", name, ONE) for name in names))
    world.away = tuple(f"sc/{name}/" for name in names[:30])
    with patch.object(waiting, "AT_ONCE", 10):
        request = world.post(DeleteScopeRecursive("sc"))
        await world.until(lambda: all(world.stream(name) is None for name in names[30:]))
    assert world.now_ms() < 60_000 and world.answer(request) is None


@in_a_world()
async def test_a_name_whose_thing_is_yet_to_come_is_waited_for(world: Partial) -> None:
    world.away = ("sc/",)
    creation = world.post(CreateStream("sc", "late", ONE))
    await world.until(lambda: world.workflow("stream:sc/late"))
    request = world.post(DeleteScopeRecursive("sc"))
    await asyncio.sleep(60)
    assert not world.asked(SealStream)
    world.away = ()
    await world.until(lambda: world.answer(request) and world.answer(creation))
    assert world.answer(creation).status == "SUCCESS"  # type: ignore[union-attr]


@in_a_world()
async def test_a_request_that_no_record_can_hold_is_answered_and_keeps_nothing(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    world.most_bytes = 2000
    large = world.post(group("g", *(f"missing-{i}" for i in range(200))))
    await world.all_of(CreateStream("sc", "other", ONE))
    await world.until(lambda: world.answer(large))
    answer = world.answer(large)
    assert answer is not None and answer.status == "FAILURE" and "2000" in answer.reason
    assert len(world.dead_letters) == 1


def test_what_was_refused_is_asked_for_under_another_id(monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = [ValueError("not yet")]
    decide_seal = aggregates.DECIDE[SealStream]

    def refuse_once(*args: Any) -> Decision:
        if refusals:
            raise refusals.pop()
        return decide_seal(*args)

    @in_a_world()
    async def scene(world: Partial) -> None:
        await world.all_of(CreateStream("sc", "st", ONE))
        await world.all_of(DeleteScopeRecursive("sc"))
        first, second = world.asked(SealStream)
        assert second == f"{first}.2" and len(world.dead_letters) == 1

    monkeypatch.setitem(aggregates.DECIDE, SealStream, refuse_once)
    scene()
