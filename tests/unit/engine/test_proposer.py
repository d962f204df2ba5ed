"""Many requests in one record: which come together, in which order, and what becomes of each when something fails."""

import asyncio
from collections.abc import Awaitable

import pytest
from support.counters import Added, add, entry, record
from support.engine_world import REQUESTS, EngineWorld, engine_world, origin, settle

from sluice.engine.decision import Context, Decision, Reader
from sluice.engine.fold import GuardedReader
from sluice.engine.journal import PartitionFailedError
from sluice.engine.offsets import Offsets, RequestFacts
from sluice.engine.proposer import RETRY_S, Decide

KEY = "k"

Decided = asyncio.Future[Decision | None]


def ask(world: EngineWorld, name: str, request: str, by: int = 1, at: int | None = None) -> Decided:
    """Have one be added to a counter of the partition; `at` is where the request stands."""
    source = origin(at) if at is not None else None
    return world.journal.propose(KEY, add(f"{KEY}:{name}", by), RequestFacts(request, source))


def total(world: EngineWorld, name: str) -> int:
    return world.first.total(f"{KEY}:{name}")


async def reply(decided: Awaitable[Decision | None]) -> str | None:
    decision = await decided
    return decision.reply if decision is not None else None


def nothing(_reader: Reader, _context: Context) -> Decision:
    return Decision()


def refuse(_reader: Reader, _context: Context) -> Decision:
    return Decision(reply="no")


def add_text(name: str, text: str) -> Decide:
    """Add to a counter, with a reply that is so long, or cannot be said at all."""

    def decide(reader: Reader, _context: Context) -> Decision:
        reader.get(name)
        return Decision((Added(name),), text)

    return decide


async def test_requests_that_come_together_share_a_record_as_entries_of_their_own(world: EngineWorld) -> None:
    decided = [ask(world, str(n), f"r{n}", at=n) for n in range(5)]
    assert [await reply(d) for d in decided] == ["0"] * 5
    assert world.requests_of(KEY) == [[f"r{n}" for n in range(5)]]
    (written,) = world.records(KEY)
    assert [e.expect for e in written.entries] == [{f"{KEY}:{n}": 0} for n in range(5)]
    assert [e.source.offset for e in written.entries if e.source] == list(range(5))


async def test_a_request_that_reads_what_one_before_it_changes_waits_for_the_next_record(world: EngineWorld) -> None:
    decided = [ask(world, name, request) for name, request in (("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"))]
    assert [await reply(d) for d in decided] == ["0", "0", "1", "0"]
    assert world.requests_of(KEY) == [["1", "2"], ["3", "4"]]


async def test_no_record_has_more_entries_than_it_may() -> None:
    async with engine_world(max_entries=3) as world:
        await asyncio.gather(*(ask(world, str(n), f"r{n}") for n in range(7)))
        assert [len(requests) for requests in world.requests_of(KEY)] == [3, 3, 1]


async def test_requests_gather_while_a_record_is_on_its_way(world: EngineWorld) -> None:
    world.first.log.freeze()
    first = ask(world, "a", "1")
    await settle()
    later = [ask(world, str(n), f"r{n}") for n in range(3)]
    await settle()
    assert world.requests_of(KEY) == [["1"]] and world.journal.undecided == 3
    world.first.log.thaw()
    await asyncio.gather(first, *later)
    assert world.requests_of(KEY) == [["1"], ["r0", "r1", "r2"]]


async def test_a_stale_entry_is_decided_anew_without_its_neighbours(world: EngineWorld) -> None:
    world.first.log.freeze()
    name = f"{KEY}:a"
    world.land(KEY, record(entry(Added(name, 10), expect={name: 0}), id="other"))
    decided = [ask(world, "a", "1", at=1), ask(world, "b", "2", at=2)]
    await settle()
    behind = ask(world, "c", "3", at=3)
    world.first.log.thaw()
    assert [await reply(d) for d in (*decided, behind)] == ["10", "0", "0"]
    assert world.requests_of(KEY)[1:] == [["1", "2"], ["1", "3"]]
    assert (total(world, "a"), total(world, "b")) == (11, 1)


async def test_a_redelivered_request_is_none_and_takes_no_entry(world: EngineWorld) -> None:
    assert await reply(ask(world, "a", "1", at=4)) == "0"
    assert await ask(world, "a", "1", at=4) is None
    assert total(world, "a") == 1 and len(world.records(KEY)) == 1


async def test_a_request_that_another_process_decides_meanwhile_is_none() -> None:
    async with engine_world(processes=2) as world:
        world.first.log.freeze()
        mine = ask(world, "a", "1", at=4)
        beside = ask(world, "b", "2", at=5)
        await settle()
        theirs = world.processes[1].journal.propose(KEY, add(f"{KEY}:a"), RequestFacts("1", origin(4)))
        world.first.log.thaw()
        decisions = [await mine, await theirs]
        assert decisions.count(None) == 1 and await reply(beside) == "0"
        assert total(world, "a") == 1


async def test_one_request_delivered_twice_in_one_record_is_decided_once(world: EngineWorld) -> None:
    twice = [world.journal.propose(KEY, refuse, RequestFacts("1", origin(4))) for _ in range(2)]
    decisions = [await d for d in twice]
    assert decisions == [Decision(reply="no"), None]
    assert len(world.records(KEY)) == 1


async def test_a_request_without_effect_leaves_an_entry_if_it_has_an_origin(world: EngineWorld) -> None:
    assert await world.journal.propose(KEY, nothing) == Decision()
    assert world.records(KEY) == []
    assert await world.journal.propose(KEY, nothing, RequestFacts("1", origin(4))) == Decision()
    (written,) = world.records(KEY)
    assert [(e.events, e.request, e.reply) for e in written.entries] == [((), None, None)]
    assert world.view(KEY).is_decided(origin(4).source)


async def test_a_refusal_is_appended_and_answered(world: EngineWorld) -> None:
    awaited = world.journal.expect_reply("1", [KEY])
    assert await reply(world.journal.propose(KEY, refuse, RequestFacts("1"))) == "no"
    assert await awaited == "no"


async def test_an_entry_names_whom_its_request_was_sent_for_and_others_name_nobody(world: EngineWorld) -> None:
    await world.journal.propose(KEY, add(f"{KEY}:a"), RequestFacts(origin=origin(4), principal="alice"))
    await world.journal.propose(KEY, add(f"{KEY}:b"), RequestFacts(origin=origin(5)))
    assert [entry.principal for record in world.records(KEY) for entry in record.entries] == ["alice", ""]


async def test_a_record_carries_the_floors_of_those_who_delivered_its_requests(world: EngineWorld) -> None:
    offsets = Offsets()
    for offset in (3, 4, 5):
        offsets.took((1, offset), 0)
    offsets.acknowledge(3)
    await world.journal.propose(KEY, add(KEY), RequestFacts(origin=origin(4, offsets, epoch=1)))
    await world.journal.propose(KEY, add(KEY))
    first, second = world.records(KEY)
    assert first.floors == {f"{REQUESTS}@0": (1, 4)} and second.floors == {}
    assert world.view(KEY).is_decided(origin(3, epoch=1).source)


async def test_what_decides_with_an_error_fails_alone(world: EngineWorld) -> None:
    def fail(_reader: GuardedReader, _context: Context) -> Decision:
        raise ZeroDivisionError("a defect")

    before = ask(world, "a", "1")
    failing = world.journal.propose(KEY, fail, RequestFacts("2", origin(2)))
    no_decision = world.journal.propose(KEY, lambda _r, _c: None, RequestFacts("3"))  # type: ignore[arg-type,return-value]
    after = ask(world, "b", "4")
    assert [await reply(before), await reply(after)] == ["0", "0"]
    with pytest.raises(ZeroDivisionError, match="a defect"):
        await failing
    with pytest.raises(AttributeError):
        await no_decision
    assert world.requests_of(KEY) == [["1", "4"]]


async def test_while_the_log_refuses_requests_wait_and_keep_their_order(world: EngineWorld) -> None:
    began = world.broker.loop.time()
    world.broker.refusals = 3
    decided = [ask(world, str(n), f"r{n}") for n in range(3)]
    await settle()
    assert world.broker.refusals == 2 and not any(d.done() for d in decided)
    decided.append(ask(world, "later", "later"))
    await asyncio.gather(*decided)
    assert world.requests_of(KEY) == [["r0", "r1", "r2", "later"]]
    assert world.broker.loop.time() - began == pytest.approx(3 * RETRY_S, abs=0.01)


@pytest.mark.parametrize("has_origin", [True, False])
async def test_a_record_whose_acknowledgement_was_lost_is_not_decided_twice(
    world: EngineWorld, has_origin: bool
) -> None:
    world.broker.lost_acks = 1
    decided = ask(world, "a", "1", at=1 if has_origin else None)
    await asyncio.wait_for(decided, 30)
    assert total(world, "a") == 1 and len(world.records(KEY)) == 1, "its own fold acknowledges it"


async def test_a_record_that_is_folded_too_late_leaves_its_request_a_duplicate(world: EngineWorld) -> None:
    world.first.log.freeze()
    decided = ask(world, "a", "1", at=1)
    await asyncio.sleep(10.05)
    world.first.log.thaw()
    assert await decided is None, "decided, though not by this attempt"
    assert total(world, "a") == 1


async def test_requests_that_are_too_much_for_one_record_come_in_several(world: EngineWorld) -> None:
    world.broker.max_bytes = 3000
    decided = [world.journal.propose(KEY, add_text(f"{KEY}:{n}", "w" * 800), RequestFacts(f"{n}")) for n in range(7)]
    await asyncio.gather(*decided)
    assert [r for requests in world.requests_of(KEY) for r in requests] == [f"{n}" for n in range(7)]


async def test_a_request_that_no_record_can_say_fails_alone(world: EngineWorld) -> None:
    before = ask(world, "a", "1")
    failing = world.journal.propose(KEY, add_text(f"{KEY}:b", "\ud800"), RequestFacts("2"))
    after = [ask(world, f"c{n}", f"{n}") for n in range(4)]
    with pytest.raises(UnicodeEncodeError):
        await failing
    await asyncio.gather(before, *after)
    assert await reply(ask(world, "b", "3")) == "0", "the partition goes on"


async def test_a_partition_that_has_stopped_fails_its_requests_and_no_others(world: EngineWorld) -> None:
    world.broker.land("sluice.journal", KEY, b"no record")
    await settle()
    failing = [ask(world, f"{n}", f"{n}") for n in range(3)]
    for failed in failing:
        with pytest.raises(PartitionFailedError):
            await failed
    other = world.key_at((world.journal.partition_of(KEY) + 1) % 4)
    assert await reply(world.journal.propose(other, add(other))) == "0"


async def test_nothing_is_decided_on_a_partition_that_has_stopped(world: EngineWorld) -> None:
    seen: list[Context] = []

    def decide(_reader: Reader, context: Context) -> Decision:
        seen.append(context)
        return Decision()

    await ask(world, "a", "1", at=0)
    world.broker.land("sluice.journal", KEY, b"no record")
    await settle()
    redelivered = ask(world, "a", "1", at=0)
    for failing in (world.journal.propose(KEY, decide), world.journal.everything_before(KEY), redelivered):
        with pytest.raises(PartitionFailedError):
            await failing
    assert seen == [], "the view may show half of the record, or what the journal has no more"


async def test_a_cancelled_request_is_not_decided(world: EngineWorld) -> None:
    gone, stays = ask(world, "a", "1"), ask(world, "b", "2")
    gone.cancel()
    assert await reply(stays) == "0"
    assert world.requests_of(KEY) == [["2"]]


async def test_a_request_that_is_cancelled_on_its_way_is_not_decided_anew(world: EngineWorld) -> None:
    world.first.log.freeze()
    name = f"{KEY}:a"
    world.land(KEY, record(entry(Added(name), expect={name: 0}), id="other"))
    gone, stays = ask(world, "a", "1"), ask(world, "b", "2")
    await settle()
    gone.cancel()
    world.first.log.thaw()
    await stays
    await settle()
    assert world.requests_of(KEY)[1:] == [["1", "2"]] and total(world, "a") == 1


async def test_everything_before_is_done_when_all_before_it_is_decided(world: EngineWorld) -> None:
    first, second = ask(world, "a", "1"), ask(world, "a", "2")
    passed = world.journal.everything_before(KEY)
    later = ask(world, "b", "3")
    await passed
    assert first.done() and second.done()
    await later
    assert sum(len(requests) for requests in world.requests_of(KEY)) == 3, "it takes no entry of its own"
    assert await world.journal.everything_before(KEY) == Decision()


async def test_partitions_do_not_wait_for_each_other(world: EngineWorld) -> None:
    world.first.log.freeze(world.journal.partition_of(KEY))
    stuck = ask(world, "a", "1")
    other = world.key_at((world.journal.partition_of(KEY) + 1) % 4)
    assert await reply(world.journal.propose(other, add(other))) == "0"
    assert not stuck.done()


async def test_the_time_of_a_decision_is_never_before_its_request(world: EngineWorld) -> None:
    await asyncio.sleep(5)
    seen: list[Context] = []

    def decide(_reader: Reader, context: Context) -> Decision:
        seen.append(context)
        return Decision()

    now = world.broker.now_ms()
    for appended_at in (4000, now + 2000):
        await world.journal.propose(KEY, decide, RequestFacts("r", appended_at=appended_at))
    assert seen == [Context(now, "r", 4000), Context(now + 2000, "r", now + 2000)]


async def test_after_it_was_stopped_nothing_more_is_appended(world: EngineWorld) -> None:
    world.broker.refusals = 1000
    waiting = ask(world, "a", "1")
    await settle()
    await world.journal.stop()
    refusals = world.broker.refusals
    await asyncio.sleep(10)
    assert world.broker.refusals == refusals and not waiting.done()
