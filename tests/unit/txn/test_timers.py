"""Timers kept true to a journal on a real Redis: whatever happens to Redis, no lease's end goes unasked."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from prometheus_client import REGISTRY
from support.redis_server import PrivateRedis, private_redis
from support.wait import eventually_async

from txn_manager.timers import Timers
from txn_manager.wheel.errors import SlotLostError, WheelUnavailableError
from txn_manager.wheel.wheel import Change, Claimed, TimerWheel

HOUR = 3_600_000
LONG_S = 60


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateRedis]:
    with private_redis() as server:
        yield server


class Journal:
    """Leases as a folded journal has them: when each ends, in seconds of the loop's clock."""

    def __init__(self) -> None:
        self.ends_s: dict[int, dict[str, float]] = {}
        self.broken: set[int] = set()

    def lease(self, partition: int, timer: str, delay_ms: int) -> None:
        self.ends_s.setdefault(partition, {})[timer] = now_s() + delay_ms / 1000

    def end(self, partition: int, timer: str) -> None:
        self.ends_s.get(partition, {}).pop(timer, None)

    def open_leases(self, partition: int) -> dict[str, int]:
        if partition in self.broken:
            raise KeyError("the journal cannot be read")
        return {timer: int((end_s - now_s()) * 1000) for timer, end_s in self.ends_s.get(partition, {}).items()}


class Instance:
    """One txn-manager's timers. Asking is noted; it ends the transaction if `ending`."""

    def __init__(
        self,
        server: PrivateRedis,
        journal: Journal,
        claim_ms: int,
        ending: bool,
        timeout_s: float = 10.0,
        **options: Any,
    ) -> None:
        self.wheel = TimerWheel(server.url, "test", claim_ms, timeout_s)
        self.journal = journal
        self.asked: list[tuple[int, str]] = []
        self.heard: list[int] = []
        self.ending = ending
        self.failing = False
        self.hanging = False
        self.timers = Timers(
            self.wheel,
            self.on_due,
            journal.open_leases,
            lambda: self.heard,
            **{"tick_s": 0.02, "flush_s": 0.005, "again_s": 0.1} | options,
        )

    async def on_due(self, partition: int, timers: list[str]) -> None:
        if self.hanging:
            await asyncio.Event().wait()
        if self.failing:
            raise ConnectionError("Kafka is away")
        self.asked += [(partition, timer) for timer in timers]
        if self.ending:
            for timer in timers:
                self.end(partition, timer)

    def lease(self, partition: int, timer: str, delay_ms: int) -> None:
        self.journal.lease(partition, timer, delay_ms)
        self.timers.lease(partition, timer, delay_ms)

    def end(self, partition: int, timer: str) -> None:
        self.journal.end(partition, timer)
        self.timers.end(partition, timer)

    async def kill(self) -> None:
        """Nothing of this instance does anything any more."""
        await self.timers.stop()
        await self.wheel.close()

    async def filled(self, *partitions: int) -> None:
        await until(lambda: all(self.timers.slots[p].state.value == "filled" for p in partitions), "slots are filled")


Make = Callable[..., Instance]


@pytest_asyncio.fixture
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


def now_s() -> float:
    return asyncio.get_running_loop().time()


async def until(predicate: Callable[[], object], message: str) -> None:
    """The predicate may be a coroutine function, too."""
    await eventually_async(predicate, LONG_S, message)


def redis_ms(server: PrivateRedis) -> float:
    seconds, micros = server.client.time()
    return float(seconds * 1000 + micros / 1000)


def held(server: PrivateRedis, partition: int) -> dict[str, float]:
    """The timers in Redis, in ms from its now."""
    now_ms = redis_ms(server)
    members = server.client.zrange(f"sluice:{{test}}:timers:v1:{partition}", 0, -1, withscores=True)
    return {timer: score - now_ms for timer, score in members if score != float("inf")}


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def down(server: PrivateRedis) -> AsyncIterator[None]:
    """Redis is away meanwhile and comes back empty."""
    server.kill()
    try:
        yield
    finally:
        server.start()


@asynccontextmanager
async def frozen(server: PrivateRedis, instance: Instance) -> AsyncIterator[None]:
    """Redis stands still meanwhile, and the instance gives its calls up soon; before and after it is patient."""
    patient_s, instance.wheel.timeout_s = instance.wheel.timeout_s, 0.5
    server.freeze()
    try:
        yield
    finally:
        instance.wheel.timeout_s = patient_s
        server.thaw()


async def test_a_lease_that_runs_out_is_asked_about_once(make: Make, server: PrivateRedis) -> None:
    instance = make()
    instance.timers.own(3)
    await instance.filled(3)
    instance.lease(3, "soon", 30)
    instance.lease(3, "late", HOUR)
    await until(lambda: instance.asked, "the lease runs out")
    await until(lambda: set(held(server, 3)) == {"late"}, "the timer is cancelled")
    assert instance.asked == [(3, "soon")]
    assert instance.timers.problem() is None


async def test_what_was_open_before_is_asked_about_after_a_take_over(make: Make, server: PrivateRedis) -> None:
    journal = Journal()
    first, second = make(journal), make(journal)
    first.timers.own(3)
    await first.filled(3)
    first.lease(3, "a", 100)
    first.lease(3, "b", HOUR)
    first.lease(3, "c", 100)
    await first.kill()
    journal.end(3, "c")
    second.timers.own(3)
    await until(lambda: second.asked, "the lease runs out")
    assert second.asked == [(3, "a")] and not first.asked
    await until(lambda: set(held(server, 3)) == {"b"}, "only what is open stays")


async def test_only_owned_partitions_are_claimed(make: Make, server: PrivateRedis) -> None:
    journal = Journal()
    owner, other = make(journal), make(journal)
    owner.timers.own(3)
    other.timers.own(4)
    await owner.filled(3)
    await other.filled(4)
    other.timers.lease(3, "a", 0)
    owner.lease(3, "b", 0)
    await until(lambda: owner.asked, "the owner asks")
    owner.timers.disown(3)
    owner.lease(3, "c", 0)
    owner.lease(3, "d", 0)
    other.lease(4, "e", 0)
    await until(lambda: other.asked, "the other asks about its own")
    assert other.asked == [(4, "e")] and owner.asked == [(3, "b")]
    other.timers.own(3)
    await until(lambda: len(other.asked) == 3, "what the journal has is asked about by the next owner")
    assert sorted(other.asked[1:]) == [(3, "c"), (3, "d")]


async def test_the_last_word_on_a_timer_counts(make: Make, server: PrivateRedis) -> None:
    instance = make()
    instance.timers.own(3)
    await instance.filled(3)
    for number in range(200):
        instance.lease(3, f"t{number}", 0)
        instance.lease(3, f"t{number}", HOUR)
        if number % 2:
            instance.end(3, f"t{number}")
    instance.lease(3, "last", 0)
    await until(lambda: (3, "last") in instance.asked, "the last one fires")
    assert instance.asked == [(3, "last")]
    await until(lambda: set(held(server, 3)) == {f"t{number}" for number in range(0, 200, 2)}, "only open ones stay")


async def test_random_leases_leave_redis_as_the_journal_is(make: Make, server: PrivateRedis) -> None:
    instance, chance = make(), random.Random(7)
    for partition in range(3):
        instance.timers.own(partition)
    for step in range(3_000):
        partition, timer = chance.randrange(3), f"t{chance.randrange(50)}"
        if chance.random() < 0.3:
            instance.end(partition, timer)
        else:
            instance.lease(partition, timer, HOUR + chance.randrange(HOUR))
        if step % 50 == 0:
            await asyncio.sleep(0)
        if step % 700 == 350:
            server.client.flushall()
        if step % 700 == 650:
            await instance.filled(0, 1, 2)
    for partition in range(3):
        await until(partial(_same, instance.journal, server, partition), "Redis has what the journal has")


def _same(journal: Journal, server: PrivateRedis, partition: int) -> bool:
    expected, found = journal.open_leases(partition), held(server, partition)
    return expected.keys() == found.keys() and all(abs(found[each] - expected[each]) < 5_000 for each in expected)


@pytest.mark.parametrize("lose", ["flushall", "one key"])
async def test_what_redis_lost_is_filled_again(make: Make, server: PrivateRedis, lose: str) -> None:
    instance = make()
    for partition in (3, 4):
        instance.timers.own(partition)
    await instance.filled(3, 4)
    for partition in (3, 4):
        instance.lease(partition, "a", HOUR)
        instance.lease(partition, "b", HOUR)
    await until(lambda: len(held(server, 3)) == len(held(server, 4)) == 2, "all are set")
    before = counted("sluice_timer_refills_total", why="lost")
    if lose == "flushall":
        server.client.flushall()
    else:
        server.client.delete("sluice:{test}:timers:v1:3")
    await until(lambda: len(held(server, 3)) == len(held(server, 4)) == 2, "all are there again")
    refills = before + (2 if lose == "flushall" else 1)
    # Redis has them a moment before the instance has its answer.
    await until(lambda: counted("sluice_timer_refills_total", why="lost") >= refills, "all refills are counted")
    instance.lease(3, "a", 0)
    await until(lambda: instance.asked == [(3, "a")], "what is set afterwards fires")
    assert counted("sluice_timer_refills_total", why="lost") == refills


async def test_nothing_is_lost_when_redis_dies_with_timers_pending(make: Make, server: PrivateRedis) -> None:
    instance = make()
    for partition in range(4):
        instance.timers.own(partition)
    await instance.filled(0, 1, 2, 3)
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
    await until(lambda: expected <= set(instance.asked), "everything is asked about")
    assert expected == set(instance.asked)
    await until(lambda: all(_same(instance.journal, server, partition) for partition in range(4)), "the rest is there")
    assert instance.timers.problem() is None


async def test_a_frozen_redis_blocks_nothing_and_is_filled_again(make: Make, server: PrivateRedis) -> None:
    instance = make()
    instance.timers.own(3)
    await instance.filled(3)
    before = counted("sluice_timer_refills_total", why="redis away")
    async with frozen(server, instance):
        began_s = now_s()
        for number in range(5_000):
            instance.lease(3, f"t{number}", HOUR)
        assert now_s() - began_s < 10, "the callers do not wait"
        await until(lambda: instance.timers.problem(), "the outage is seen")
        instance.lease(3, "meanwhile", 0)
    await until(lambda: instance.asked == [(3, "meanwhile")], "asked about as soon as Redis answers")
    await until(lambda: len(held(server, 3)) == 5_000, "all are there")
    assert counted("sluice_timer_refills_total", why="redis away") > before


async def test_a_redis_that_kept_everything_is_not_filled_again(make: Make, server: PrivateRedis) -> None:
    instance = make()
    for partition in (3, 4):
        instance.timers.own(partition)
    await instance.filled(3, 4)
    before = {why: counted("sluice_timer_refills_total", why=why) for why in ("redis away", "lost")}
    async with frozen(server, instance):
        await until(lambda: instance.timers.problem(), "the outage is seen")
        instance.lease(3, "a", HOUR)
        await until(lambda: instance.timers.slots[3].state.value == "stale", "the change failed")
    await until(lambda: set(held(server, 3)) == {"a"} and not instance.timers.problem(), "the change is there")
    instance.lease(4, "b", 0)
    await until(lambda: instance.asked == [(4, "b")], "the other slot goes on")
    assert counted("sluice_timer_refills_total", why="redis away") == before["redis away"] + 1
    assert counted("sluice_timer_refills_total", why="lost") == before["lost"]


async def test_timers_start_while_redis_is_away(make: Make, server: PrivateRedis) -> None:
    journal = Journal()
    journal.lease(3, "a", 0)
    async with down(server):
        instance = make(journal)
        instance.timers.own(3)
        await until(lambda: instance.timers.problem(), "the outage is seen")
    await until(lambda: instance.asked == [(3, "a")], "the lease is asked about")


async def test_too_much_pending_is_left_to_a_fill(make: Make, server: PrivateRedis) -> None:
    instance = make(max_pending=100)
    instance.timers.own(3)
    await instance.filled(3)
    before = counted("sluice_timer_refills_total", why="too many changes pending")
    for number in range(1_000):
        instance.lease(3, f"t{number}", HOUR)
        assert len(instance.timers.slots[3].pending) <= 100
    await until(lambda: len(held(server, 3)) == 1_000, "all are there")
    await until(lambda: counted("sluice_timer_refills_total", why="too many changes pending") == before + 1, "noted")


async def test_a_timer_fires_again_if_nobody_could_ask(make: Make, server: PrivateRedis) -> None:
    instance = make(claim_ms=100)
    before = counted("sluice_timers_on_due_failures_total")
    instance.failing = True
    instance.timers.own(3)
    instance.timers.own(4)
    instance.lease(3, "a", 0)
    instance.lease(4, "b", 0)
    await until(lambda: counted("sluice_timers_on_due_failures_total") >= before + 4, "it is tried again")
    instance.failing = False
    await until(lambda: {(3, "a"), (4, "b")} <= set(instance.asked), "asked in the end")


async def test_a_question_without_an_effect_is_asked_again(make: Make) -> None:
    instance = make(claim_ms=50, ending=False)
    instance.timers.own(3)
    instance.lease(3, "a", 0)
    await until(lambda: instance.asked.count((3, "a")) >= 3, "it fires until the lease ends or moves")
    instance.lease(3, "a", HOUR)
    await until(lambda: instance.timers.slots[3].pending == {}, "it is moved")


async def test_asking_that_hangs_ends_with_the_claim(make: Make) -> None:
    instance = make(claim_ms=50)
    before = counted("sluice_timers_on_due_failures_total")
    instance.hanging = True
    instance.timers.own(3)
    instance.lease(3, "a", 0)
    await until(lambda: counted("sluice_timers_on_due_failures_total") >= before + 2, "the next tick tries again")


async def test_after_a_dead_claimer_the_next_owner_asks(make: Make) -> None:
    journal = Journal()
    first, second = make(journal, ending=False), make(journal, ending=False)
    first.timers.own(3)
    first.lease(3, "a", 0)
    await until(lambda: first.asked, "the first asks, to no effect")
    await first.kill()
    second.timers.own(3)
    await until(lambda: second.asked == [(3, "a")], "the second asks")


async def test_more_than_one_claim_is_due_in_a_tick(make: Make) -> None:
    instance = make(tick_s=1.0)
    for partition in range(3):
        for number in range(900):
            instance.journal.lease(partition, f"t{number}", -5)
        instance.timers.own(partition)
    await until(lambda: len(instance.asked) == 2_700, "all are asked about")
    assert len(set(instance.asked)) == 2_700


async def test_a_fill_by_somebody_else_is_put_right(make: Make, server: PrivateRedis) -> None:
    instance = make()
    instance.timers.own(3)
    instance.lease(3, "a", HOUR)
    await until(lambda: set(held(server, 3)) == {"a"}, "it is set")
    stale = TimerWheel(server.url, "test", timeout_s=10)
    await stale.refill(3, {"of an older journal": HOUR})
    await stale.close()
    await until(lambda: set(held(server, 3)) == {"a"}, "what the other did not know is there, and nothing else")
    instance.lease(3, "a", 0)
    await until(lambda: instance.asked == [(3, "a")], "it is asked about")


async def test_two_that_believe_to_own_a_partition_lose_nothing(make: Make, server: PrivateRedis) -> None:
    journal = Journal()
    instances = [make(journal, ending=False), make(journal, ending=False)]
    for instance in instances:
        instance.timers.own(3)
    for number in range(300):
        journal.lease(3, f"t{number}", number)
        for instance in instances:
            instance.timers.lease(3, f"t{number}", number)
        if number % 10 == 0:
            await asyncio.sleep(0.001)
    await until(lambda: len({*instances[0].asked, *instances[1].asked}) == 300, "all are asked about")


class Held:
    """Holds up the next call of one method of the wheel until it is let go; notes that it began."""

    def __init__(self, wheel: TimerWheel, name: str) -> None:
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        method = getattr(wheel, name)

        async def held_up(*args: Any) -> Any:
            setattr(wheel, name, method)
            self.begun.set()
            await self.go_on.wait()
            return await method(*args)

        setattr(wheel, name, held_up)


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
    await until(lambda: sorted(instance.asked) == [(3, "moved"), (3, "new")], "both fire")
    await until(lambda: held(server, 3) == {}, "all are ended")


async def test_a_fill_waits_for_a_write_under_way(make: Make, server: PrivateRedis) -> None:
    instance = make()
    instance.timers.own(3)
    await instance.filled(3)
    write = Held(instance.wheel, "change")
    instance.lease(3, "a", HOUR)
    await write.begun.wait()
    server.client.flushall()
    await until(lambda: instance.timers.slots[3].state.value == "stale", "the loss is seen")
    instance.lease(3, "a", 0)
    write.go_on.set()
    await until(lambda: instance.asked == [(3, "a")], "the older delay does not win")


@pytest.mark.parametrize("error", [WheelUnavailableError("away"), KeyError("a defect")])
async def test_a_failed_write_keeps_the_order(make: Make, server: PrivateRedis, error: Exception) -> None:
    instance = make()
    instance.timers.own(3)
    await instance.filled(3)
    change, failed = instance.wheel.change, asyncio.Event()

    async def fail_after_all(changes: dict[int, dict[str, Change]], fills: dict[int, str]) -> list[int]:
        instance.wheel.change = change  # type: ignore[method-assign]
        await change(changes, fills)
        failed.set()
        raise error

    instance.wheel.change = fail_after_all  # type: ignore[method-assign,assignment]
    instance.lease(3, "a", HOUR)
    instance.lease(3, "b", HOUR)
    await until(failed.is_set, "it has failed")
    instance.end(3, "a")
    instance.lease(3, "b", 0)
    instance.lease(3, "c", HOUR)
    await until(lambda: instance.asked == [(3, "b")], "the later delay wins")
    await until(lambda: set(held(server, 3)) == {"c"}, "what ended is gone")


async def test_a_journal_that_cannot_be_read_is_told_and_holds_up_nobody_else(
    make: Make, server: PrivateRedis, caplog: pytest.LogCaptureFixture
) -> None:
    instance = make()
    instance.journal.broken.add(3)
    instance.journal.lease(4, "b", 0)
    instance.journal.lease(3, "a", 0)
    with caplog.at_level(logging.CRITICAL):
        instance.timers.own(3)
        instance.timers.own(4)
        await until(lambda: instance.asked == [(4, "b")], "the other partition is served")
        problem = instance.timers.problem()
        assert problem is not None and "partition 3 cannot be filled" in problem
        instance.journal.broken.clear()
        await until(lambda: (3, "a") in instance.asked, "tried again")
    assert instance.timers.problem() is None


async def test_a_fill_that_another_one_overtook_is_done_again(make: Make, server: PrivateRedis) -> None:
    instance = make()
    refill, tries = instance.wheel.refill, []

    async def overtaken(partition: int, delays_ms: dict[str, int]) -> str:
        tries.append(partition)
        if len(tries) < 3:
            raise SlotLostError([partition])
        return await refill(partition, delays_ms)

    instance.wheel.refill = overtaken  # type: ignore[method-assign,assignment]
    instance.journal.lease(3, "a", 0)
    instance.timers.own(3)
    await until(lambda: instance.asked == [(3, "a")], "filled in the end")


async def test_a_redis_clock_that_was_set_back_makes_everything_be_filled_again(make: Make) -> None:
    instance = make()
    instance.timers.own(3)
    await instance.filled(3)
    before = counted("sluice_timer_refills_total", why="redis clock set back")
    claim, back_ms = instance.wheel.claim, 0

    async def other_clock(*args: Any) -> Claimed:
        claimed = await claim(*args)
        return Claimed(claimed.due, claimed.lost, claimed.fills, claimed.at_ms - back_ms)

    instance.wheel.claim = other_clock  # type: ignore[method-assign,assignment]
    ticks = counted("sluice_timer_tick_seconds_count")
    await until(lambda: counted("sluice_timer_tick_seconds_count") > ticks + 2, "some ticks with a good clock")
    assert counted("sluice_timer_refills_total", why="redis clock set back") == before
    back_ms = 60_000
    await until(lambda: counted("sluice_timer_refills_total", why="redis clock set back") == before + 1, "filled again")


async def test_listening_is_noted_for_owned_partitions_only(make: Make, server: PrivateRedis) -> None:
    instance = make()
    instance.heard = [3, 4]
    instance.timers.own(3)
    instance.timers.own(5)

    async def noted(partition: int) -> bool:
        return await instance.wheel.silent_for(partition) is not None

    await until(lambda: noted(3), "listening is noted")
    assert not await noted(4) and not await noted(5)
    instance.heard = []
    at = await instance.wheel.silent_for(3) or 0

    async def grows() -> bool:
        return (await instance.wheel.silent_for(3) or 0) > at + 100

    await until(grows, "the silence grows once listening ended")


async def test_a_freeze_before_the_note_is_not_taken_for_listening(make: Make, server: PrivateRedis) -> None:
    instance = make()
    instance.heard = [3]
    note = Held(instance.wheel, "mark_receiving")
    instance.timers.own(3)
    await note.begun.wait()
    instance.heard = []
    frozen_at_ms, frozen_at_s = redis_ms(server), now_s()
    await until(lambda: now_s() > frozen_at_s + 0.1, "some time passes")
    note.go_on.set()
    await until(lambda: server.client.hget("sluice:{test}:timers:v1:heard", "3"), "noted")
    assert int(server.client.hget("sluice:{test}:timers:v1:heard", "3")) <= frozen_at_ms


async def test_what_happens_is_counted(make: Make, server: PrivateRedis) -> None:
    names = [f"sluice_timers_{each}_total" for each in ("set", "cancelled", "fired")]
    instance = make()
    instance.timers.own(3)
    await instance.filled(3)
    before = [counted(name) for name in names]
    instance.lease(3, "a", 0)
    instance.lease(3, "b", HOUR)
    assert counted("sluice_timers_pending") == 2
    await until(lambda: held(server, 3).keys() == {"b"} and counted("sluice_timers_pending") == 0, "all is done")
    await until(lambda: [counted(name) for name in names] == [before[0] + 2, before[1] + 1, before[2] + 1], "counted")
