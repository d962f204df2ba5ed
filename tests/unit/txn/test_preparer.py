"""Preparing transactions: what an open costs then, and what becomes of what is left, whichever process left it."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from support.memory_world import settle, until
from support.opening_world import Opener, OpenerWorld
from support.transaction_world import KEY, STREAM
from unit.txn.other_stream import other_stream, slow_with_the_first

from sluice.domain.decision import Context, Reply
from sluice.domain.registry import decide
from sluice.domain.stream import scale
from sluice.domain.stream.commands import ScaleStream
from sluice.domain.stream.events import StreamSealStarted
from sluice.domain.transaction import events as ev
from sluice.domain.transaction.index import transactions_of
from sluice.domain.transaction.prepared import segments_of
from sluice.domain.transaction_ids import first_of_range, ids_of_range
from sluice.kafka.topics import JOURNAL
from txn_manager import preparer
from txn_manager.demand import MIN_PREPARED, Demand, PreparedLimits

IDLE_S = 60.0


class World(OpenerWorld):
    """A stream of two segments whose transactions are prepared."""

    def __init__(self) -> None:
        super().__init__(PreparedLimits(idle_s=IDLE_S), segments=2)

    @property
    def prepared(self) -> list[str]:
        return list(self.transactions.prepared)

    async def open_one(self, request: str) -> str:
        reply = await asyncio.wait_for(self.send(request), 60)
        assert reply.status == "OK", reply
        for name in self.names([reply.transaction]):
            assert name in self.store.segments
        return reply.transaction

    async def use(self, opens: int = 2) -> None:
        """Open so many transactions; return when others are prepared."""
        for number in range(opens):
            await self.open_one(f"before-{number}")
        await until(lambda: bool(self.prepared))
        await settle()

    def names(self, ids: list[str]) -> list[str]:
        return segments_of(self.stream, ids)

    def reserved(self) -> list[str]:
        """The names of all segments that were ever reserved."""
        ranges = self.events(ev.TransactionRangeReserved)
        return self.names([id for event in ranges for id in ids_of_range(event.first, event.count)])

    def left_over(self) -> list[str]:
        """Those that are stored and of no transaction that is open."""
        live = self.names([*self.transactions.open, *self.transactions.committing])
        return [name for name in self.reserved() if name in self.store.segments and name not in live]

    async def split(self) -> None:
        split = ScaleStream(*STREAM, seals=(0,), ranges=((0.0, 0.25), (0.25, 0.5)), at=self.now_ms)
        await self.seed(KEY, *decide(self.view(KEY), split, Context(self.now_ms, "scale")).events)
        await self.finish_scale()

    async def successor(self) -> Opener:
        """Another process owns the partition from now on, and has taken it over."""
        await self.opener.consumer.stop()
        other = Opener(self, self.process(), self.limits)
        await other.start()
        return other


@pytest.fixture
async def world(virtual_time: None) -> AsyncIterator[World]:
    world = World()
    await world.create()
    world.created_at_s.clear()
    await world.opener.start()
    yield world
    assert world.opener.failures == []


async def test_an_open_of_a_stream_in_use_is_one_record_and_no_call_on_the_store(world: World) -> None:
    await world.use()
    before, records, calls = world.prepared, len(world.log_of(KEY)), len(world.created_at_s)
    id = await world.open_one("r")
    assert id in before and len(world.log_of(KEY)) == records + 1 and len(world.created_at_s) == calls
    entry = world.entries(KEY)[-1]
    assert entry.source is not None and entry.request == "r" and entry.reply is not None
    assert [type(event) for event in entry.events] == [ev.TransactionOpened]


async def test_opens_at_one_moment_take_different_ids_in_one_record(world: World) -> None:
    world.limits = PreparedLimits(horizon_s=1e9, idle_s=1e9)
    other = await world.successor()
    await world.use(80)
    await until(lambda: len(world.prepared) >= 32)
    records, opened = len(world.log_of(KEY)), len(world.events(ev.TransactionOpened))
    world.refuse(JOURNAL, 1)  # so all have come when the next record is put together
    replies: list[Reply] = await asyncio.gather(*(world.send(f"r{n}") for n in range(32)))
    assert len({reply.transaction for reply in replies}) == 32 and {reply.status for reply in replies} == {"OK"}
    assert len(world.events(ev.TransactionOpened)) - opened == 32, "none of them was decided twice"
    assert all(event.prepared for event in world.events(ev.TransactionOpened)[-32:])
    assert len(world.log_of(KEY)) - records <= 3, "two of them may be of a new range"
    assert other.failures == []


async def test_the_first_open_after_a_while_prepares_nothing(world: World) -> None:
    await world.open_one("r")
    await asyncio.sleep(2 * IDLE_S)
    await world.open_one("s")
    await asyncio.sleep(2 * IDLE_S)
    assert world.reserved() == []


async def test_an_idle_stream_has_nothing_prepared_and_no_record_is_written_for_it(world: World) -> None:
    await world.use()
    await asyncio.sleep(IDLE_S - 1)
    assert world.prepared
    await asyncio.sleep(5)
    assert world.prepared == [] and world.transactions.ranges == {} and world.left_over() == []
    records = len(world.log_of(KEY))
    await asyncio.sleep(10 * IDLE_S)
    assert len(world.log_of(KEY)) == records


async def test_what_a_stream_wants_no_more_is_discarded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparer, "SEGMENTS_AT_ONCE", 8)
    await world.use(40)
    await until(lambda: len(world.prepared) > 20)
    for number in range(8):
        await asyncio.sleep(IDLE_S / 6)
        await world.open_one(f"r{number}")
    assert MIN_PREPARED / 2 < len(world.prepared) < 2 * MIN_PREPARED, "it opens but one in ten seconds"
    assert world.left_over() == world.names(world.prepared), "the segments of the others are deleted"


async def test_a_scale_has_what_is_prepared_discarded_and_the_next_ones_are_of_its_epoch(world: World) -> None:
    await world.use()
    before = world.prepared
    await world.split()
    await until(lambda: not set(world.names(before)) & set(world.store.segments))
    assert not set(before) & set(world.prepared)
    epoch = f"{world.stream.active_epoch.reference:08x}"
    await until(lambda: bool(world.prepared))
    assert {id[:8] for id in world.prepared} == {epoch}
    assert await world.open_one("after") not in before


async def test_a_scale_that_is_folded_together_with_the_last_record_of_a_range_has_it_discarded(world: World) -> None:
    world.create_s = 1.0
    for request in ("r", "s"):
        world.send(request)
    await until(lambda: bool(world.transactions.ranges))
    log, partition = world.first.log, world.first.journal.partition_of(KEY)
    view = world.process().journal.reader(KEY)
    log.freeze(partition)
    await until(lambda: bool(transactions_of(view, STREAM).prepared))
    split = ScaleStream(*STREAM, seals=(0,), ranges=((0.0, 0.25), (0.25, 0.5)), at=world.now_ms)
    await world.seed(KEY, *decide(view, split, Context(world.now_ms, "scale")).events)
    await world.seed(KEY, *scale.add_epoch(view, STREAM).events)
    await world.seed(KEY, *scale.finish_scale(view, STREAM, {0: 0}).events)
    late = list(transactions_of(view, STREAM).prepared)
    log.thaw(partition)
    await until(lambda: world.stream.active == 1)
    assert late
    await until(lambda: not set(world.names(late)) & set(world.store.segments), 5)


async def test_a_seal_has_what_is_prepared_discarded(world: World) -> None:
    await world.use()
    await world.seed(KEY, StreamSealStarted(*STREAM, at=world.now_ms))
    await until(lambda: world.transactions.ranges == {})
    assert world.left_over() == []


async def test_a_range_whose_owner_died_before_it_was_prepared_is_discarded(world: World) -> None:
    world.create_s = 20.0
    for request in ("r", "s"):
        world.send(request)
    await until(lambda: bool(world.transactions.ranges))
    await world.opener.preparer.stop()
    await world.successor()
    await until(lambda: len(world.events(ev.TransactionRangeDeleted)) == 1)
    await asyncio.sleep(120)
    assert world.events(ev.TransactionPrepared) == [] and world.left_over() == []


async def test_what_a_former_owner_creates_late_is_deleted(world: World) -> None:
    world.create_s = 20.0
    for request in ("r", "s"):
        world.send(request)
    await until(lambda: bool(world.transactions.ranges))
    [range_] = world.events(ev.TransactionRangeReserved)
    late = world.names(ids_of_range(range_.first, range_.count))
    await world.successor()
    await until(lambda: len(world.events(ev.TransactionRangeDeleted)) == 1, 5)
    assert not set(late) & set(world.store.segments), "nothing of it has been created yet"
    await until(lambda: set(late) <= set(world.created), 60)
    await until(lambda: not set(late) & set(world.store.segments), 5)
    assert range_.first not in {event.first for event in world.events(ev.TransactionRangePrepared)}


async def test_a_new_owner_uses_what_is_prepared_and_discards_it_when_the_stream_is_idle(world: World) -> None:
    await world.use()
    before = world.prepared
    await world.successor()
    assert await world.open_one("r") in before
    await asyncio.sleep(IDLE_S + 5)
    assert world.prepared == [] and world.left_over() == []


async def test_a_range_that_was_reserved_unknown_to_its_process_is_discarded(world: World) -> None:
    await world.use()
    first = world.events(ev.TransactionRangeReserved)[0].first
    lost = f"{first[:-4]}7700"
    await world.seed(KEY, ev.TransactionRangeReserved(*STREAM, lost, count=4, at=world.now_ms))
    await until(lambda: lost not in world.transactions.ranges)
    assert [event.first for event in world.events(ev.TransactionRangeDeleted)] == [lost]


async def test_ranges_that_a_silent_store_keeps_leave_room_to_other_streams(
    virtual_time: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparer, "DISCARD_CONCURRENCY", 2)
    monkeypatch.setattr(preparer, "DISCARD_CONCURRENCY_OF_STREAM", 1)
    world = World()
    await world.create()
    other = await other_stream(world)
    await world.opener.start()
    world.store.fault = slow_with_the_first
    for stream, token in ((STREAM, "a"), (STREAM, "b"), (other, "c")):
        lost = ev.TransactionRangeReserved(*stream, first_of_range(0, token), count=1, at=world.now_ms)
        await world.seed(stream.key, lost)
    await until(lambda: bool(world.events(ev.TransactionRangeDeleted)), max_s=5)
    assert [event.stream_id for event in world.events(ev.TransactionRangeDeleted)] == [other]
    await until(lambda: len(world.events(ev.TransactionRangeDeleted)) == 3)


async def test_a_range_that_cannot_be_created_is_discarded_and_another_one_follows(world: World) -> None:
    await world.open_one("r")
    world.silent = True
    reply = world.send("s")
    await until(lambda: bool(world.events(ev.TransactionRangeDiscarded)))
    assert world.prepared == [] and not reply.done()
    world.silent = False
    assert (await asyncio.wait_for(reply, 60)).status == "OK"
    await asyncio.sleep(5)
    await world.open_one("t")
    await until(lambda: bool(world.prepared))
    await asyncio.sleep(IDLE_S + 5)
    assert world.left_over() == []


async def test_no_more_are_prepared_than_an_instance_may_have(world: World) -> None:
    world.limits = PreparedLimits(total=3, horizon_s=1e9, idle_s=1e9)
    await world.successor()
    await world.use(20)
    assert max(event.count for event in world.events(ev.TransactionRangeReserved)) <= 3
    assert sum(world.transactions.ranges.values()) <= 3


async def test_ranges_of_a_stream_with_many_segments_are_small(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparer, "SEGMENTS_AT_ONCE", 5)
    monkeypatch.setattr(preparer, "MAX_SEGMENTS", 7)
    await world.use(20)
    assert max(event.count for event in world.events(ev.TransactionRangeReserved)) == 2
    assert 1 < sum(world.transactions.ranges.values()) <= 3


async def test_records_that_are_refused_for_a_while_reserve_no_id_twice(world: World) -> None:
    await world.open_one("r")
    world.refuse(JOURNAL, 30)
    await world.open_one("s")
    await world.use(10)
    firsts = [event.first for event in world.events(ev.TransactionRangeReserved)]
    assert len(firsts) == len(set(firsts))
    await asyncio.sleep(IDLE_S + 5)
    assert world.left_over() == []


def test_demand_follows_the_rate_and_has_bounds() -> None:
    limits = PreparedLimits(per_stream=50, horizon_s=4.0, idle_s=60.0)
    demand = Demand(limits, 0.0)
    assert demand.wanted == 0
    demand.opened(0.0)
    assert demand.wanted == 0, "it may be the only one"
    demand.opened(30.0)
    assert demand.wanted == MIN_PREPARED
    for number in range(200):
        demand.opened(31.0 + number / 10)
    assert 35 <= demand.wanted <= 45, "ten a second for four seconds"
    for number in range(200):
        demand.opened(51.0 + number / 100)
    assert demand.wanted == 50
    assert demand.idle_for(60.0) > 0 >= demand.idle_for(120.0)
    demand.opened(120.0)
    assert demand.wanted == 0, "the first one after a while"
