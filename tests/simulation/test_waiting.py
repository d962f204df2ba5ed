"""Waiting for other keys: it takes no slot, floods nothing, shows, and ends on a retry or a cancellation."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import Any
from unittest.mock import patch

import pytest
from simulation import invariants
from simulation.lives import run
from simulation.world import World

from sluice.domain import registry as aggregates
from sluice.domain.commands import Command
from sluice.domain.config import GroupRetention, ReaderGroupConfig, ScalingPolicy, StreamConfig, TableConfig
from sluice.domain.decision import Decision
from sluice.domain.ids import StreamId
from sluice.domain.model import JournalEntry, JournalRecord, decode_record, encode_record
from sluice.domain.names import key_of
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup
from sluice.domain.scope.commands import CreateScope, DeleteScopeRecursive
from sluice.domain.scope.state import find_scope
from sluice.domain.stream.commands import AddSubscriber, CreateStream, DeleteStream, SealStream
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.table.commands import CreateTable
from sluice.domain.workflow import RetryWorkflow, Workflow, WorkflowRetryRequested, WorkflowStepFailed, running
from sluice.engine import dependencies
from sluice.kafka.requests import decode_request
from sluice.kafka.topics import JOURNAL, REQUESTS_STREAMS
from sluice.memory.broker import Headers, MemoryBroker, MemoryMessage
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import Moment

ONE = StreamConfig(scaling=ScalingPolicy(min_segments=1))


class Partial(World):
    """A world in which the segments of some streams are out of reach: those whose names begin as `away` says.

    The aggregate `retried` is to be retried right before it is recorded next how its workflow fares.
    """

    def __init__(self, max_handlers: int = 256) -> None:
        self.away: tuple[str, ...] = ()
        self.retried = ""
        super().__init__(max_handlers)

    def make_broker(self, delays_s: Sequence[float]) -> MemoryBroker:
        return _Interrupting(self, delays_s)

    def refuse_next(self, times: int) -> None:
        """Have the topic not take the next requests of the process."""
        self.broker.faulty_topic, self.broker.refusals = REQUESTS_STREAMS.name, times

    def lose_next(self, kind: type) -> None:
        """Have the topic forget the next command of a kind, although it was acknowledged."""

        def lose(message: MemoryMessage) -> None:
            if message.topic() != REQUESTS_STREAMS.name:
                return
            if isinstance(decode_request(message.value()).command, kind):
                self.broker.lose_end(message.topic(), message.partition(), message.offset())
                self.broker.on_landed.remove(lose)

        self.broker.on_landed.append(lose)

    def _touch_store(self, moment: Moment, request: str, segment: str) -> None:
        if segment.startswith(self.away):
            raise ConnectionFailure(Failure.TIMED_OUT)
        super()._touch_store(moment, request, segment)

    async def all_of(self, *commands: Command) -> None:
        """Request all of them at once; each succeeds."""
        ids = [self.post(command) for command in commands]
        await self.until(lambda: all(self.reply(id) is not None for id in ids))
        assert {self.reply(id).status for id in ids} == {"SUCCESS"}  # type: ignore[union-attr]

    def stream(self, name: str) -> Stream | None:
        return find_stream(self.view(StreamId("sc", name).key), StreamId("sc", name))

    def workflow(self, aggregate: str) -> Workflow | None:
        return running(self.view(key_of(aggregate)).get(aggregate))

    def recorded(self, aggregate: str) -> int:
        """How many entries of the journal say how the workflow of an aggregate fares."""
        records = (decode_record(message.value()) for log in self.journal for message in log)
        return sum(_says_how_it_fares(aggregate, record) for record in records)


class _Interrupting(MemoryBroker):
    """Lets a request to retry land right before what the world has named."""

    def __init__(self, world: Partial, delays_s: Sequence[float]) -> None:
        super().__init__(world.partitions, world.random, delays_s)
        self._world = world

    def land(self, topic: str, key: str, value: bytes, headers: Headers = ()) -> MemoryMessage:
        """See MemoryBroker."""
        retried = self._world.retried
        if retried and topic == JOURNAL.name and _says_how_it_fares(retried, decode_record(value)):
            self._world.retried = ""
            retry = JournalEntry(events=(WorkflowRetryRequested(aggregate=retried),))
            super().land(topic, key, encode_record(JournalRecord(id="retry", at=0, by="test", entries=(retry,))))
        return super().land(topic, key, value, headers)


def _says_how_it_fares(aggregate: str, record: JournalRecord) -> int:
    events = (event for entry in record.entries for event in entry.events)
    return sum(isinstance(event, WorkflowStepFailed) and event.aggregate == aggregate for event in events)


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
            await world.until(world.is_at_rest)
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
async def test_many_streams_of_a_scope_are_deleted_at_once(world: Partial) -> None:
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
    world.restart()
    world.away = ()
    await world.until(lambda: all(world.reply(id) for id in deletions))


@in_a_world(max_handlers=2)
async def test_retries_and_cancellations_need_no_slot_of_the_others(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    slots = [await world.process.consumer.executor.limit.acquire() for _ in range(2)]
    retry = world.post(RetryWorkflow("stream:sc/st"))
    await world.until(lambda: world.reply(retry))
    for _ in slots:
        world.process.consumer.executor.limit.release()


@in_a_world()
async def test_what_a_group_waits_for_shows_without_flooding_anything(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    before = world.now_ms()
    await stuck_while_sealed(world, "st")
    request = world.post(group("g", "st"))
    await world.until(lambda: (found := world.workflow("group:sc/g")) is not None and found.last_error)
    found = world.workflow("group:sc/g")
    assert found is not None and (found.step, found.kind.value) == ("subscribe", "create-reader-group")
    assert found.last_error == "waits: stream sc/st has not yet added the subscriber (seal-stream runs there)"
    assert world.now_ms() - before < 20_000
    await asyncio.sleep(3600)
    assert len(world.requested(AddSubscriber)) == 1 and world.recorded("group:sc/g") < 80
    world.away = ()
    await world.until(lambda: world.reply(request))
    stream = world.stream("st")
    assert stream is not None and "sc/g" in stream.subscribers


@in_a_world()
async def test_a_group_that_waits_is_cancelled_at_once_and_leaves_no_subscriber(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    await stuck_while_sealed(world, "st")
    request = world.post(group("g", "st"))
    await world.until(lambda: world.requested(AddSubscriber))
    before = world.now_ms()
    cancelled = world.post(world.cancellation("group:sc/g"))
    await world.until(lambda: world.reply(request))
    assert world.now_ms() - before < 200
    assert world.reply(cancelled).status == "SUCCESS"  # type: ignore[union-attr]
    assert world.reply(request).reason == "cancelled"  # type: ignore[union-attr]
    world.away = ()
    await world.until(lambda: (stream := world.stream("st")) is not None and stream.workflow is None)
    await world.until(world.is_at_rest)
    stream = world.stream("st")
    assert stream is not None and not stream.subscribers


@in_a_world()
async def test_a_request_to_retry_sends_the_command_once_more(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    await stuck_while_sealed(world, "st")
    world.post(group("g", "st"))
    await world.until(lambda: world.requested(AddSubscriber))
    await asyncio.sleep(300)
    world.post(RetryWorkflow("group:sc/g"))
    before = world.now_ms()
    await world.until(lambda: len(world.requested(AddSubscriber)) == 2)
    assert world.now_ms() - before < 100
    first, second = world.requested(AddSubscriber)
    assert first.command == second.command


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
    assert len(world.requested(AddSubscriber)) == 1
    world.away = ()
    await world.until(lambda: world.reply(request))


@in_a_world()
async def test_a_table_that_is_stuck_lets_no_requests_for_a_stream_of_its_name_pile_up(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    world.away = ("sc/st_kvtable/",)
    world.post(CreateTable("sc", "st", TableConfig(2, 4)))
    await world.until(lambda: world.workflow("table:sc/st"))
    request = world.post(DeleteScopeRecursive("sc"))
    await asyncio.sleep(600)
    assert len(world.requested(SealStream)) == 1 and world.process.consumer.open_requests == 1
    world.away = ()
    await world.until(lambda: world.reply(request))


@in_a_world()
async def test_what_was_lost_while_the_lane_was_held_up_is_asked_for_again_when_it_is_free(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    await stuck_while_sealed(world, "_MARKst")
    world.lose_next(AddSubscriber)
    request = world.post(group("g", "st"))
    await asyncio.sleep(600)
    assert not world.requested(AddSubscriber) and world.reply(request) is None
    world.away = ()
    await world.until(lambda: world.reply(request))


@in_a_world()
async def test_what_the_topic_refuses_is_sent_as_soon_as_it_takes_it(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    world.refuse_next(3)
    before = world.now_ms()
    await world.all_of(group("g", "st"))
    assert world.now_ms() - before < 1000 and len(world.requested(AddSubscriber)) == 1


@in_a_world()
async def test_a_retry_that_comes_while_the_waiting_is_noted_is_heard(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    await stuck_while_sealed(world, "st")
    world.post(group("g", "st"))
    await asyncio.sleep(300)
    world.retried = "group:sc/g"
    assert len(world.requested(AddSubscriber)) == 1
    await world.until(lambda: not world.retried)
    await asyncio.sleep(1)
    assert len(world.requested(AddSubscriber)) == 2


@in_a_world()
async def test_a_scope_that_cannot_be_emptied_asks_each_thing_once(world: Partial) -> None:
    await world.all_of(*(CreateStream("sc", f"x{i}", ONE) for i in range(10)))
    world.away = ("sc/",)
    request = world.post(DeleteScopeRecursive("sc"))
    await asyncio.sleep(600)
    assert len(world.requested(SealStream)) == 10 and not world.requested(DeleteStream)
    assert world.process.consumer.open_requests == 0
    found = world.workflow("scope:sc")
    assert found is not None and not found.attempts and "seal-stream runs" in found.last_error
    assert world.recorded("scope:sc") < 20
    world.away = ()
    await world.until(lambda: world.reply(request))
    assert find_scope(world.view("sc"), "sc") is None


@in_a_world()
async def test_what_cannot_go_keeps_nothing_else_in_its_scope(world: Partial) -> None:
    names = [f"x{i}" for i in range(45)]
    await world.all_of(*(CreateStream("sc", name, ONE) for name in names))
    world.away = tuple(f"sc/{name}/" for name in names[:30])
    before = world.now_ms()
    with patch.object(dependencies, "MAX_UNDER_WAY", 10):
        request = world.post(DeleteScopeRecursive("sc"))
        await world.until(lambda: all(world.stream(name) is None for name in names[30:]))
    assert world.now_ms() - before < 60_000 and world.reply(request) is None


@in_a_world()
async def test_the_deletion_of_a_scope_waits_for_what_is_being_created_in_it(world: Partial) -> None:
    world.away = ("sc/",)
    creation = world.post(CreateStream("sc", "late", ONE))
    await world.until(lambda: world.workflow("stream:sc/late"))
    request = world.post(DeleteScopeRecursive("sc"))
    await asyncio.sleep(60)
    assert not world.requested(SealStream)
    world.away = ()
    await world.until(lambda: world.reply(request) and world.reply(creation))
    assert world.reply(creation).status == "SUCCESS"  # type: ignore[union-attr]


@in_a_world()
async def test_a_request_that_no_record_can_hold_is_answered_and_keeps_nothing(world: Partial) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    large = world.post(group("g", *(f"missing-{i}" for i in range(200))))
    limit = world.broker.max_bytes = max(len(message.value()) for log in world.requests for message in log)
    await world.all_of(CreateStream("sc", "other", ONE))
    await world.until(lambda: world.reply(large))
    answer = world.reply(large)
    assert answer is not None and answer.status == "FAILURE" and str(limit) in answer.reason
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
        first, second = world.requested(SealStream)
        assert first.id != second.id and len(world.dead_letters) == 1

    monkeypatch.setitem(aggregates.DECIDE, SealStream, refuse_once)
    scene()
