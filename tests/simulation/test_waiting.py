"""Waiting for other keys: it takes no place, floods nothing, shows, and ends on a retry or a cancellation."""

import asyncio
from typing import Any
from unittest.mock import patch

from simulation.scene import in_a_world
from simulation.world import World

from sluice.domain.commands import Command
from sluice.domain.config import GroupRetention, ReaderGroupConfig, ScalingPolicy, StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.model import decode_record
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup, UpdateReaderGroup
from sluice.domain.scope.commands import DeleteScopeRecursive
from sluice.domain.scope.state import find_scope
from sluice.domain.stream.commands import AddSubscriber, CreateStream, DeleteStream, SealStream
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.workflow import RetryWorkflow, WorkflowStepFailed
from sluice.engine import dependencies
from sluice.kafka.topics import JOURNAL

ONE = StreamConfig(scaling=ScalingPolicy(min_segments=1))


class Waiting(World):
    """A world of which tests look at one scope."""

    async def all_of(self, *commands: Command) -> None:
        """Request all of them at once; each succeeds."""
        ids = [self.post(command) for command in commands]
        assert {(await self.replied(id)).status for id in ids} == {"SUCCESS"}

    def stream(self, name: str) -> Stream | None:
        return find_stream(self.view(StreamId("sc", name).key), StreamId("sc", name))

    def recorded(self, aggregate: str) -> int:
        """How many entries of the journal say how the workflow of an aggregate fares."""
        records = (decode_record(message.value()) for log in self.journal for message in log)
        events = (event for record in records for entry in record.entries for event in entry.events)
        return sum(isinstance(event, WorkflowStepFailed) and event.aggregate == aggregate for event in events)


def crowded() -> Waiting:
    """No more than two steps are carried out at once."""
    return Waiting(max_steps=2)


def group(name: str, *streams: str) -> CreateReaderGroup:
    starts: dict[str, dict[int, int]] = {f"sc/{stream}": {} for stream in streams}
    return CreateReaderGroup("sc", name, ReaderGroupConfig(id=name, starts=starts, retention=GroupRetention.MANUAL))


async def stuck_while_sealed(world: Waiting, stream: str) -> str:
    """Have a stream hang in its seal; the id of that request."""
    world.away = (f"sc/{stream}/",)
    request = world.post(SealStream("sc", stream))
    await world.until(lambda: world.workflow(f"stream:sc/{stream}"))
    return request


def hold_notes(world: Waiting, stream: str) -> asyncio.Event:
    """Have what is to be noted on a stream wait until the event is set, as if nobody owned its partition."""
    key, go = StreamId("sc", stream).key, asyncio.Event()

    async def wait() -> None:
        await go.wait()

    partition = world.process.journal.partition_of(key)
    world.process.consumer.executor.run(partition, f"{key} beside", wait)
    return go


@in_a_world(crowded)
async def test_an_instance_that_takes_over_many_deletions_finds_its_way_out(world: Waiting) -> None:
    names = [f"x{i}" for i in range(6)]
    await world.all_of(*(CreateStream("sc", name, ONE) for name in names))
    await world.all_of(*(SealStream("sc", name) for name in names))
    world.away = ("sc/",)
    deletions = [world.post(DeleteStream("sc", name)) for name in names]
    await world.until(lambda: all(world.workflow(f"stream:sc/{name}") for name in names))
    world.restart()
    world.heal()
    for id in deletions:
        await world.replied(id)


@in_a_world(crowded)
async def test_retries_and_cancellations_need_no_place_of_steps_that_hang(world: Waiting) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    go, create, begun = asyncio.Event(), world.store.create_segment, list[str]()

    async def slow(name: str, *facts: Any) -> None:
        begun.append(name)
        await go.wait()
        await create(name, *facts)

    with patch.object(world.store, "create_segment", slow):
        hanging = [world.post(CreateStream("sc", f"x{i}", ONE)) for i in range(3)]
        await asyncio.sleep(1)
        assert len({name.split("/")[1].removeprefix("_MARK") for name in begun}) == 2
        assert await world.do(RetryWorkflow("stream:sc/st")) == "NOT_RUNNING"
        go.set()
        for id in hanging:
            assert (await world.replied(id)).status == "SUCCESS"


@in_a_world(Waiting)
async def test_what_a_group_waits_for_shows_without_flooding_anything(world: Waiting) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    before = world.now_ms()
    go = hold_notes(world, "st")
    request = world.post(group("g", "st"))
    await world.until(lambda: (found := world.workflow("group:sc/g")) is not None and found.last_error)
    found = world.workflow("group:sc/g")
    assert found is not None and (found.step, found.kind.value) == ("subscribe", "create-reader-group")
    assert found.last_error == "waits: stream sc/st has not yet added the subscriber"
    assert world.now_ms() - before < 20_000
    await asyncio.sleep(3600)
    assert len(world.requested(AddSubscriber)) < 80 and world.recorded("group:sc/g") < 80
    go.set()
    await world.replied(request)
    stream = world.stream("st")
    assert stream is not None and "sc/g" in stream.subscribers


@in_a_world(Waiting)
async def test_a_group_does_not_wait_for_the_seal_of_its_stream(world: Waiting) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    seal = await stuck_while_sealed(world, "st")
    before = world.now_ms()
    await world.all_of(group("g", "st"))
    assert world.now_ms() - before < 1_000 and world.reply(seal) is None
    world.heal()
    await world.replied(seal)


@in_a_world(Waiting)
async def test_two_groups_that_read_each_others_state_are_deleted_at_once(world: Waiting) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    await world.all_of(group("a", "st"))
    await world.all_of(group("b", "_RGa"))
    reads_b = ReaderGroupConfig(id="a", starts={"sc/_RGb": {}}, retention=GroupRetention.MANUAL)
    await world.all_of(UpdateReaderGroup("sc", "a", reads_b))
    await world.all_of(DeleteReaderGroup("sc", "a"), DeleteReaderGroup("sc", "b"))
    assert world.stream("_RGa") is None and world.stream("_RGb") is None


@in_a_world(Waiting)
async def test_a_group_that_waits_is_cancelled_at_once_and_leaves_no_subscriber(world: Waiting) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    go = hold_notes(world, "st")
    request = world.post(group("g", "st"))
    await world.until(lambda: world.requested(AddSubscriber))
    before = world.now_ms()
    cancelled = world.post(world.cancellation("group:sc/g"))
    assert (await world.replied(request)).reason == "cancelled"
    assert world.now_ms() - before < 200
    assert (await world.replied(cancelled)).status == "SUCCESS"
    go.set()
    await world.until(world.is_at_rest)
    stream = world.stream("st")
    assert stream is not None and not stream.subscribers


@in_a_world(Waiting)
async def test_a_scope_that_cannot_be_emptied_asks_each_thing_once(world: Waiting) -> None:
    await world.all_of(*(CreateStream("sc", f"x{i}", ONE) for i in range(10)))
    world.away = ("sc/",)
    request = world.post(DeleteScopeRecursive("sc"))
    await asyncio.sleep(600)
    assert len(world.requested(SealStream)) == 10 and not world.requested(DeleteStream)
    assert world.process.consumer.open_requests == 0
    found = world.workflow("scope:sc")
    assert found is not None and not found.attempts and "seal-stream runs" in found.last_error
    assert world.recorded("scope:sc") < 20
    world.heal()
    await world.replied(request)
    assert find_scope(world.view("sc"), "sc") is None


@in_a_world(Waiting)
async def test_what_cannot_go_keeps_nothing_else_in_its_scope(world: Waiting) -> None:
    names = [f"x{i}" for i in range(45)]
    await world.all_of(*(CreateStream("sc", name, ONE) for name in names))
    world.away = tuple(f"sc/{name}/" for name in names[:30])
    before = world.now_ms()
    with patch.object(dependencies, "MAX_UNDER_WAY", 10):
        request = world.post(DeleteScopeRecursive("sc"))
        await world.until(lambda: all(world.stream(name) is None for name in names[30:]))
    assert world.now_ms() - before < 60_000 and world.reply(request) is None


@in_a_world(Waiting)
async def test_the_deletion_of_a_scope_waits_for_what_is_being_created_in_it(world: Waiting) -> None:
    world.away = ("sc/",)
    creation = world.post(CreateStream("sc", "late", ONE))
    await world.until(lambda: world.workflow("stream:sc/late"))
    request = world.post(DeleteScopeRecursive("sc"))
    await asyncio.sleep(60)
    assert not world.requested(SealStream)
    world.heal()
    await world.replied(request)
    assert (await world.replied(creation)).status == "SUCCESS"


@in_a_world(Waiting)
async def test_a_request_that_no_record_can_hold_is_answered_and_keeps_nothing(world: Waiting) -> None:
    await world.all_of(CreateStream("sc", "st", ONE))
    large = world.post(group("g", *(f"missing-{i}" for i in range(200))))
    limit = world.broker.max_bytes = max(len(message.value()) for log in world.requests for message in log)
    await world.all_of(CreateStream("sc", "other", ONE))
    answer = await world.replied(large)
    assert answer.status == "FAILURE" and str(limit) in answer.reason
    assert len(world.dead_letters) == 1


@in_a_world(crowded)
async def test_a_journal_partition_that_takes_no_records_holds_up_no_other(world: Waiting) -> None:
    names = [StreamId("sc", f"x{i}") for i in range(40)]
    partition = world.process.journal.partition_of(names[0].key)
    stuck = [name for name in names if world.process.journal.partition_of(name.key) == partition]
    others = [name for name in names if name not in stuck]
    world.broker.unwritable.add((JOURNAL.name, partition))
    waiting = [world.post(CreateStream(*name, ONE)) for name in stuck]
    await asyncio.sleep(1)
    await world.all_of(*(CreateStream(*name, ONE) for name in others))
    assert len(waiting) > 2 and not any(world.reply(id) for id in waiting)
    world.broker.unwritable.clear()
    for id in waiting:
        assert (await world.replied(id)).status == "SUCCESS"
