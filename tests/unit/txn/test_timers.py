"""Timers kept true to a journal on a real Redis: whatever happens to Redis, no lease's end goes unasked."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest
from support.redis_server import PrivateRedis
from unit.txn.timer_world import (
    Held,
    Instance,
    Journal,
    counted,
    down,
    frozen,
    held,
    now_s,
    refills,
    same,
    until,
)

from txn_manager.wheel.errors import SlotLostError, WheelUnavailableError
from txn_manager.wheel.wheel import Change, Claimed, TimerWheel

HOUR = 3_600_000


Make = Callable[..., Instance]


@pytest.fixture
async def make(server: PrivateRedis) -> AsyncIterator[Make]:
    server.client.flushall()
    async with AsyncExitStack() as stack:

        def start(
            journal: Journal | None = None, claim_ms: int = HOUR, ending: bool = True, **options: Any
        ) -> Instance:
            instance = Instance(server, journal or Journal(), claim_ms, ending, **options)
            instance.timers.start()
            stack.push_async_callback(instance.kill)
            return instance

        yield start


@pytest.fixture
async def owner(make: Make) -> Instance:
    """Of partition 3, whose slot is filled."""
    instance = make()
    await instance.own(3)
    return instance


async def test_a_lease_that_runs_out_is_checked_once(owner: Instance, server: PrivateRedis) -> None:
    owner.lease(3, "soon", 30)
    owner.lease(3, "late", HOUR)
    await until(lambda: owner.due, "the lease runs out")
    await until(lambda: set(held(server, 3)) == {"late"}, "the timer is cancelled")
    assert owner.due == [(3, "soon")]
    assert owner.timers.problem() is None


async def test_only_owned_partitions_are_claimed(make: Make, server: PrivateRedis) -> None:
    journal = Journal()
    owner, other = make(journal), make(journal)
    await owner.own(3)
    await other.own(4)
    other.timers.lease(3, "a", 0)
    owner.lease(3, "b", 0)
    await until(lambda: owner.due, "the owner asks")
    owner.timers.disown(3)
    owner.lease(3, "c", 0)
    owner.lease(3, "d", 0)
    other.lease(4, "e", 0)
    await until(lambda: other.due, "the other asks about its own")
    assert other.due == [(4, "e")] and owner.due == [(3, "b")]
    other.timers.own(3)
    await until(lambda: len(other.due) == 3, "what the journal has is checked by the next owner")
    assert sorted(other.due[1:]) == [(3, "c"), (3, "d")]


async def test_random_leases_leave_redis_as_the_journal_is(make: Make, server: PrivateRedis) -> None:
    instance, chance = make(), random.Random(7)
    await instance.own(0, 1, 2)
    for step in range(3_000):
        partition, timer = chance.randrange(3), f"t{chance.randrange(50)}"
        if chance.random() < 0.3:
            instance.end(partition, timer)
        else:
            instance.lease(partition, timer, 0)
            instance.lease(partition, timer, HOUR + chance.randrange(HOUR))
        if step % 50 == 0:
            await asyncio.sleep(0)
        if step % 700 == 350:
            server.client.flushall()
        if step % 700 == 650:
            await instance.filled(0, 1, 2)
    for partition in range(3):
        await until(partial(same, instance.journal, server, partition), "Redis has what the journal has")
    assert instance.due == [], "the later delay counts"


async def test_a_slot_that_redis_lost_is_reloaded(make: Make, server: PrivateRedis) -> None:
    instance = make()
    await instance.own(3, 4)
    for partition in (3, 4):
        instance.lease(partition, "a", HOUR)
        instance.lease(partition, "b", HOUR)
    await until(lambda: len(held(server, 3)) == len(held(server, 4)) == 2, "all are set")
    before = refills("lost")
    server.client.delete("sluice:{test}:timers:v1:3")
    await until(lambda: len(held(server, 3)) == len(held(server, 4)) == 2, "all are there again")
    # Redis has them a moment before the instance has its answer.
    await until(lambda: refills("lost") > before, "the refill is counted")
    instance.lease(3, "a", 0)
    await until(lambda: instance.due == [(3, "a")], "what is set afterwards fires")
    assert refills("lost") == before + 1, "of the one slot"


async def test_nothing_is_lost_when_redis_dies_with_timers_pending(make: Make, server: PrivateRedis) -> None:
    instance = make()
    await instance.own(0, 1, 2, 3)
    expected, number = set(), 0

    def some(count: int) -> None:
        nonlocal number
        for _ in range(count):
            number += 1
            partition, timer = number % 4, f"t{number}"
            instance.lease(partition, timer, 50 if number % 3 else 2 * HOUR)
            if number % 5 == 0:
                instance.end(partition, timer)
            elif number % 3:
                expected.add((partition, timer))

    some(500)
    async with down(server):
        some(500)
        await until(lambda: instance.timers.problem(), "the outage is seen")
        some(500)
        await until(lambda: not any(slot.pending for slot in instance.timers.slots.values()), "nothing is kept")
        assert "Redis away since" in (instance.timers.problem() or "")
    some(500)
    await until(lambda: expected <= set(instance.due), "everything is checked")
    assert expected == set(instance.due)
    await until(lambda: all(same(instance.journal, server, partition) for partition in range(4)), "the rest is there")
    assert instance.timers.problem() is None


async def test_a_frozen_redis_blocks_nothing_and_is_reloaded(owner: Instance, server: PrivateRedis) -> None:
    before = refills("redis away")
    async with frozen(server, owner):
        began_s = now_s()
        for number in range(5_000):
            owner.lease(3, f"t{number}", HOUR)
        assert now_s() - began_s < 10, "the callers do not wait"
        await until(lambda: owner.timers.problem(), "the outage is seen")
        owner.lease(3, "meanwhile", 0)
    await until(lambda: owner.due == [(3, "meanwhile")], "checked as soon as Redis answers")
    await until(lambda: len(held(server, 3)) == 5_000, "all are there")
    await until(lambda: refills("redis away") > before, "it was reloaded")


async def test_a_redis_that_kept_everything_is_not_reloaded(make: Make, server: PrivateRedis) -> None:
    instance = make()
    await instance.own(3, 4)
    before = {why: refills(why) for why in ("redis away", "lost")}
    async with frozen(server, instance):
        await until(lambda: instance.timers.problem(), "the outage is seen")
        instance.lease(3, "a", HOUR)
        await until(lambda: instance.timers.slots[3].state.value == "stale", "the change failed")
    await until(lambda: set(held(server, 3)) == {"a"} and not instance.timers.problem(), "the change is there")
    instance.lease(4, "b", 0)
    await until(lambda: instance.due == [(4, "b")], "the other slot goes on")
    assert refills("redis away") == before["redis away"] + 1
    assert refills("lost") == before["lost"]


async def test_timers_start_while_redis_is_away(make: Make, server: PrivateRedis) -> None:
    journal = Journal()
    journal.lease(3, "a", 0)
    async with down(server):
        instance = make(journal)
        instance.timers.own(3)
        await until(lambda: instance.timers.problem(), "the outage is seen")
    await until(lambda: instance.due == [(3, "a")], "the lease is checked")


async def test_too_much_pending_is_left_to_a_fill(make: Make, server: PrivateRedis) -> None:
    instance = make(max_pending=100)
    await instance.own(3)
    before = refills("too many changes pending")
    for number in range(1_000):
        instance.lease(3, f"t{number}", HOUR)
        assert len(instance.timers.slots[3].pending) <= 100
    await until(lambda: len(held(server, 3)) == 1_000, "all are there")
    await until(lambda: refills("too many changes pending") == before + 1, "noted")


async def test_a_timer_fires_until_its_lease_ends_or_moves(make: Make, server: PrivateRedis) -> None:
    instance = make(claim_ms=50, ending=False)

    async def fires_three_times_more(timer: str) -> None:
        wanted = instance.due.count((3, timer)) + 3
        await until(lambda: instance.due.count((3, timer)) >= wanted, f"{timer} fires again and again")

    async def is_silent_while_another_fires(timer: str, other: str) -> None:
        """Whatever was claimed before the other one is asked about before it."""
        instance.lease(3, other, 0)
        await until(lambda: (3, other) in instance.due, f"{other} fires")
        before = instance.due.count((3, timer))
        await fires_three_times_more(other)
        assert instance.due.count((3, timer)) == before

    await instance.own(3)
    instance.lease(3, "a", 0)
    await fires_three_times_more("a")
    instance.lease(3, "a", HOUR)
    await until(lambda: held(server, 3).get("a", 0) > HOUR / 2, "it is moved")
    await is_silent_while_another_fires("a", "b")
    instance.lease(3, "a", 0)
    await fires_three_times_more("a")
    instance.end(3, "a")
    await until(lambda: "a" not in held(server, 3), "it is ended")
    await is_silent_while_another_fires("a", "c")


@pytest.mark.parametrize("trouble", ["asking fails", "asking hangs"])
async def test_a_timer_fires_anew_when_its_claim_ends_and_asking_failed_or_hung(make: Make, trouble: str) -> None:
    instance = make(claim_ms=50)
    before = counted("sluice_timers_on_due_failures_total")
    instance.trouble = trouble
    await instance.own(3, 4)
    instance.lease(3, "a", 0)
    instance.lease(4, "b", 0)
    await until(lambda: counted("sluice_timers_on_due_failures_total") >= before + 4, "it is tried again")
    instance.trouble = ""
    await until(lambda: {(3, "a"), (4, "b")} <= set(instance.due), "checked in the end")


async def test_after_a_dead_claimer_the_next_owner_asks_about_what_is_open(make: Make, server: PrivateRedis) -> None:
    journal = Journal()
    first, second = make(journal, ending=False), make(journal)
    await first.own(3)
    for timer, delay_ms in {"a": 0, "b": HOUR, "c": 0}.items():
        first.lease(3, timer, delay_ms)
    await until(lambda: len(first.due) == 2, "the first asks, to no effect")
    await first.kill()
    journal.end(3, "c")
    second.timers.own(3)
    await until(lambda: second.due == [(3, "a")], "the second asks")
    await until(lambda: set(held(server, 3)) == {"b"}, "only what is open stays")


async def test_more_than_one_claim_is_due_in_a_tick(make: Make) -> None:
    instance = make(tick_s=1.0)
    for partition in range(3):
        for number in range(900):
            instance.journal.lease(partition, f"t{number}", -5)
        instance.timers.own(partition)
    await until(lambda: len(instance.due) == 2_700, "all are checked")
    assert len(set(instance.due)) == 2_700


async def test_a_load_by_another_instance_is_replaced(make: Make, server: PrivateRedis) -> None:
    instance = make()
    instance.timers.own(3)
    instance.lease(3, "a", HOUR)
    await until(lambda: set(held(server, 3)) == {"a"}, "it is set")
    stale = TimerWheel(server.url, "test", timeout_s=10)
    await stale.refill(3, {"of an older journal": HOUR})
    await stale.close()
    await until(lambda: set(held(server, 3)) == {"a"}, "what the other did not know is there, and nothing else")
    instance.lease(3, "a", 0)
    await until(lambda: instance.due == [(3, "a")], "it is checked")


async def test_changes_made_during_a_fill_come_after_it(make: Make, server: PrivateRedis) -> None:
    instance = make()
    instance.journal.lease(3, "moved", HOUR)
    instance.journal.lease(3, "ended", HOUR)
    fill = Held(instance.wheel, "refill")
    instance.timers.own(3)
    await fill.begun.wait()
    instance.lease(3, "moved", 0)
    instance.lease(3, "new", 0)
    instance.end(3, "ended")
    fill.go_on.set()
    await until(lambda: sorted(instance.due) == [(3, "moved"), (3, "new")], "both fire")
    await until(lambda: held(server, 3) == {}, "all are ended")


async def test_a_fill_waits_for_a_write_under_way(owner: Instance, server: PrivateRedis) -> None:
    write = Held(owner.wheel, "change")
    owner.lease(3, "a", HOUR)
    await write.begun.wait()
    server.client.flushall()
    await until(lambda: owner.timers.slots[3].state.value == "stale", "the loss is seen")
    owner.lease(3, "a", 0)
    write.go_on.set()
    await until(lambda: owner.due == [(3, "a")], "the older delay does not win")


@pytest.mark.parametrize("error", [WheelUnavailableError("away"), KeyError("a defect")])
async def test_a_failed_write_keeps_the_order(owner: Instance, server: PrivateRedis, error: Exception) -> None:
    change, failed = owner.wheel.change, asyncio.Event()

    async def fail_after_all(changes: dict[int, dict[str, Change]], fills: dict[int, str]) -> list[int]:
        owner.wheel.change = change  # type: ignore[method-assign]
        await change(changes, fills)
        failed.set()
        raise error

    owner.wheel.change = fail_after_all  # type: ignore[method-assign,assignment]
    owner.lease(3, "a", HOUR)
    owner.lease(3, "b", HOUR)
    await until(failed.is_set, "it has failed")
    owner.end(3, "a")
    owner.lease(3, "b", 0)
    owner.lease(3, "c", HOUR)
    await until(lambda: owner.due == [(3, "b")], "the later delay wins")
    await until(lambda: set(held(server, 3)) == {"c"}, "what ended is gone")


async def test_a_journal_that_cannot_be_read_is_logged_and_holds_up_no_other_partition(
    make: Make, server: PrivateRedis, caplog: pytest.LogCaptureFixture
) -> None:
    instance = make()
    instance.journal.broken.add(3)
    instance.journal.lease(4, "b", 0)
    instance.journal.lease(3, "a", 0)
    with caplog.at_level(logging.CRITICAL):
        instance.timers.own(3)
        instance.timers.own(4)
        await until(lambda: instance.due == [(4, "b")], "the other partition is served")
        problem = instance.timers.problem()
        assert problem is not None and "partition 3 cannot be filled" in problem
        instance.journal.broken.clear()
        await until(lambda: (3, "a") in instance.due, "tried again")
    assert instance.timers.problem() is None


async def test_a_load_that_another_one_overtook_is_repeated(make: Make, server: PrivateRedis) -> None:
    instance = make()
    refill, tries = instance.wheel.refill, []

    async def overtaken(partition: int, delays_ms: dict[str, int]) -> str:
        tries.append(partition)
        if len(tries) < 3:
            raise SlotLostError(partition)
        return await refill(partition, delays_ms)

    instance.wheel.refill = overtaken  # type: ignore[method-assign,assignment]
    instance.journal.lease(3, "a", 0)
    instance.timers.own(3)
    await until(lambda: instance.due == [(3, "a")], "filled in the end")


async def test_a_redis_clock_that_was_set_back_makes_all_slots_be_reloaded(owner: Instance) -> None:
    before = refills("redis clock set back")
    claim, back_ms = owner.wheel.claim, 0

    async def other_clock(*args: Any) -> Claimed:
        claimed = await claim(*args)
        return Claimed(claimed.due, claimed.lost, claimed.fills, claimed.at_ms - back_ms)

    owner.wheel.claim = other_clock  # type: ignore[method-assign,assignment]
    ticks = counted("sluice_timer_tick_seconds_count")
    await until(lambda: counted("sluice_timer_tick_seconds_count") > ticks + 2, "some ticks with a good clock")
    assert refills("redis clock set back") == before
    back_ms = 60_000
    await until(lambda: refills("redis clock set back") == before + 1, "filled again")


async def test_what_happens_is_counted(owner: Instance, server: PrivateRedis) -> None:
    names = [f"sluice_timers_{each}_total" for each in ("set", "cancelled", "fired")]
    before = [counted(name) for name in names]
    owner.lease(3, "a", 0)
    owner.lease(3, "b", HOUR)
    assert counted("sluice_timers_pending") == 2
    await until(lambda: held(server, 3).keys() == {"b"} and counted("sluice_timers_pending") == 0, "all is done")
    await until(lambda: [counted(name) for name in names] == [before[0] + 2, before[1] + 1, before[2] + 1], "counted")
