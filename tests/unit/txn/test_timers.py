"""Timers kept true to a journal, in virtual time: whatever happens to Redis, every lease that ends is checked."""

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any

import pytest
from unit.txn.timer_world import AGAIN_MS, LATENESS_MS, SLOW_MS, TICK_MS, TimerWorld, counted, passing, until

from txn_manager.wheel.timer_redis import EXPIRY_S, MAX_BATCH

HOUR = 3_600_000
TIMEOUT_MS = 2_000
FILL_MS = TIMEOUT_MS + 2 * TICK_MS
"""Within which a wheel is filled once Redis is there: a call that fails, a pause, and slots that are rounded up."""


@pytest.fixture
async def world(virtual_time: None) -> TimerWorld:
    return TimerWorld()


# Leases.


async def test_a_lease_that_runs_out_is_checked_once_and_within_a_slot_and_a_tick(world: TimerWorld) -> None:
    owner = await world.owner(3)
    for number in range(50):
        owner.lease(3, f"t{number}", 10_000 + 37 * number)
    owner.lease(3, "late", HOUR)
    await passing(20_000)
    assert sorted(owner.checked) == sorted((3, f"t{number}") for number in range(50))
    assert min(owner.late_ms) >= 0 and max(owner.late_ms) <= LATENESS_MS
    assert world.held().keys() == {"late"}
    assert owner.timers.problem() is None


async def test_a_lease_that_gets_longer_sends_nothing_to_redis(world: TimerWorld) -> None:
    owner = await world.owner(3)
    owner.lease(3, "a", 20_000)
    await passing(5_000)
    written, held = world.server.written, world.held()["a"]
    for _ in range(8):
        owner.lease(3, "a", 20_000)
        await passing(1_000)
    assert world.server.written == written and world.held()["a"] == held - 8_000
    await passing(10_000)
    assert owner.checked == [] and world.held()["a"] > 0, "it was put at its end"
    await until(lambda: owner.checked == [(3, "a")], 19_000 - 10_000 + LATENESS_MS)
    assert max(owner.late_ms) <= LATENESS_MS


async def test_a_lease_that_gets_shorter_is_checked_at_its_end(world: TimerWorld) -> None:
    owner = await world.owner(3)
    owner.lease(3, "a", HOUR)
    await passing(5_000)
    owner.lease(3, "a", 100)
    await until(lambda: owner.checked, 100 + LATENESS_MS)


async def test_a_transaction_that_is_shorter_than_a_tick_sends_nothing_to_redis(world: TimerWorld) -> None:
    owner = await world.owner(3)
    owner.lease(3, "a", HOUR)
    owner.end(3, "a")
    await passing(10 * TICK_MS)
    assert world.server.written == 0


async def test_a_check_that_leads_to_nothing_is_sent_again_until_the_lease_ends(world: TimerWorld) -> None:
    owner = await world.owner(3)
    owner.ending = False
    owner.lease(3, "a", 0)
    await passing(3 * (AGAIN_MS + LATENESS_MS))
    assert 3 <= len(owner.checked) <= 4
    owner.end(3, "a")
    owner.checked.clear()
    await passing(HOUR / 10)
    assert owner.checked == [] and world.held() == {}


async def test_more_than_a_batch_is_filled_and_due_within_a_tick(world: TimerWorld) -> None:
    for number in range(5 * MAX_BATCH):
        world.first.lease(3, f"t{number}", -5)
    await world.owner(3)
    await until(lambda: len(world.first.checked) == 5 * MAX_BATCH, LATENESS_MS)
    assert len(set(world.first.checked)) == 5 * MAX_BATCH
    await until(lambda: world.held() == {}, TICK_MS)


async def test_a_wheel_without_timers_gets_few_turns_and_one_as_soon_as_it_has_some(world: TimerWorld) -> None:
    owner = await world.owner(3)
    before = world.server.turns
    await passing(100_000)
    assert 8 <= world.server.turns - before <= 12
    owner.lease(3, "a", HOUR)
    await until(lambda: world.is_as_journal(), TICK_MS)
    before = world.server.turns
    await passing(100 * TICK_MS)
    assert world.server.turns - before >= 99


# Checks.


async def test_while_asking_fails_timers_stay_due_and_others_are_written(world: TimerWorld) -> None:
    owner = await world.owner(3, 4)
    before = counted("sluice_timers_on_due_failures_total")
    owner.fails = True
    owner.lease(3, "a", 0)
    await passing(10 * TICK_MS)
    owner.lease(3, "b", HOUR)
    await until(lambda: world.held().keys() == {"a", "b"}, LATENESS_MS)
    assert counted("sluice_timers_on_due_failures_total") - before >= 8
    owner.fails = False
    await until(lambda: owner.checked == [(3, "a")], TICK_MS)


async def test_asking_that_hangs_holds_up_no_other_partition(world: TimerWorld) -> None:
    owner = await world.owner(3, 4)
    owner.checking = asyncio.Event()
    owner.lease(3, "a", 0)
    await passing(LATENESS_MS)
    hanging, owner.checking = owner.checking, None
    owner.lease(4, "b", 0)
    await until(lambda: owner.checked == [(4, "b")], LATENESS_MS)
    hanging.set()
    await until(lambda: owner.checked[1:] == [(3, "a")], TICK_MS)


async def test_what_changes_during_a_check_counts_more_than_its_reply(world: TimerWorld) -> None:
    owner = await world.owner(3)
    owner.ending, owner.checking = False, asyncio.Event()
    for timer in ("ended", "shorter"):
        owner.lease(3, timer, 0)
    await passing(LATENESS_MS)
    owner.end(3, "ended")
    owner.lease(3, "shorter", -10_000)
    owner.checking.set()
    await until(lambda: owner.checked.count((3, "shorter")) == 2, 2 * TICK_MS)
    assert world.held().keys() == {"shorter"}


# Owners.


async def test_only_the_owner_checks_and_the_next_one_checks_what_is_open(world: TimerWorld) -> None:
    first, second = await world.owner(3), world.instance()
    second.timers.own(4)
    first.lease(3, "a", 20_000)
    first.lease(3, "b", 20_000)
    await passing(2 * TICK_MS)
    first.timers.disown(3)
    first.end(3, "b")
    await passing(HOUR / 10)
    assert first.checked == second.checked == []
    second.timers.own(3)
    await until(lambda: second.checked == [(3, "a")], LATENESS_MS)
    assert first.checked == []


async def test_a_late_owner_disturbs_no_wheel_of_the_next_one(world: TimerWorld) -> None:
    """It wakes without knowing that the partition is another instance's."""
    late, owner = await world.owner(3), world.instance()
    late.lease(3, "a", 20_000)
    await passing(2 * TICK_MS)
    owner.timers.own(3)
    owner.lease(3, "b", 20_000)
    await passing(2 * TICK_MS)
    late.end(3, "a")
    late.end(3, "b")
    owner.lease(3, "a", 20_000)
    owner.lease(3, "b", 20_000)
    await until(lambda: sorted(owner.checked) == [(3, "a"), (3, "b")], 20_000 + LATENESS_MS)


async def test_wheels_that_are_left_do_not_pile_up(world: TimerWorld) -> None:
    owner = await world.owner(3)
    owner.lease(3, "a", 2 * HOUR)
    for _ in range(5):
        await passing(2 * TICK_MS)
        world.server.slow_s = 3.0
        await passing(3_000)
        world.server.slow_s = 0.0
    await passing(10_000)
    with_timers = [name for name, key in world.server.keys.items() if "a" in key.scores]
    assert len(with_timers) == 1, "what is begun in the place of another one removes it"
    owner.timers.disown(3)
    await passing(1000 * EXPIRY_S + 1)
    await world.owner(4)
    assert len(world.server.keys) == 1, "the rest is forgotten"


# Redis.


def emptied(world: TimerWorld) -> None:
    world.server.empty()


def restarted_from_an_old_file(world: TimerWorld) -> None:
    world.server.restart()


def replaced(world: TimerWorld) -> None:
    """By another server, which has nothing."""
    world.server.empty()
    world.server.save()
    world.server.restart()


def away(world: TimerWorld) -> None:
    world.server.away_until_s = asyncio.get_running_loop().time() + 12.0


def away_and_emptied(world: TimerWorld) -> None:
    away(world)
    world.server.empty()


def full(world: TimerWorld) -> None:
    world.server.is_full = True


def too_slow(world: TimerWorld) -> None:
    """What is sent arrives behind the time-out."""
    world.server.slow_s = 3.0


def failing(world: TimerWorld) -> None:
    world.server.failing = 0.5


def clock_set_back(world: TimerWorld) -> None:
    world.server.clock_ms -= HOUR


def our_clock_set_forward(world: TimerWorld) -> None:
    world.first.clock.ahead_ms += HOUR


TROUBLE: dict[Callable[[TimerWorld], None], str] = {
    emptied: "lost",
    restarted_from_an_old_file: "lost",
    replaced: "lost",
    away: "redis away",
    away_and_emptied: "redis away",
    full: "redis away",
    too_slow: "redis away",
    failing: "redis away",
    clock_set_back: "redis clock set back",
    our_clock_set_forward: "redis clock set back",
}


def mend(world: TimerWorld) -> None:
    world.server.slow_s = world.server.failing = world.server.away_until_s = 0.0
    world.server.is_full = False


@pytest.mark.parametrize("trouble", TROUBLE, ids=lambda trouble: trouble.__name__)
@pytest.mark.parametrize("in_a_fill", [False, True], ids=["later", "in the middle of a fill"])
async def test_whatever_happens_to_redis_leases_are_checked_at_their_end(
    world: TimerWorld, trouble: Callable[[TimerWorld], None], in_a_fill: bool
) -> None:
    before = counted("sluice_timer_refills_total", why=TROUBLE[trouble])
    for number in range(4 * MAX_BATCH):
        world.first.lease(3, f"t{number}", HOUR)
    world.server.slow_s = SLOW_MS / 1000 if in_a_fill else 0.0
    world.first.timers.own(3)
    await passing(1_000 if in_a_fill else 5_000)
    world.server.save()
    owner = world.first
    owner.lease(3, "before", 60_000)
    owner.lease(3, "shorter", HOUR)
    owner.lease(3, "ended", 60_000)
    await passing(300)
    trouble(world)
    owner.lease(3, "meanwhile", 30_000)
    owner.lease(3, "shorter", 45_000)
    await passing(8_000)
    owner.end(3, "ended")
    mend(world)
    await until(lambda: world.is_as_journal() and owner.timers.problem() is None, FILL_MS + TIMEOUT_MS)
    assert counted("sluice_timer_refills_total", why=TROUBLE[trouble]) > before
    await until(lambda: len(owner.checked) == 3, 60_000 + LATENESS_MS)
    assert owner.checked == [(3, "meanwhile"), (3, "shorter"), (3, "before")]
    assert max(owner.late_ms) <= LATENESS_MS + SLOW_MS


async def test_an_outage_is_a_problem_from_its_beginning_until_wheels_are_filled(world: TimerWorld) -> None:
    owner = await world.owner(3, 4)
    for partition in (3, 4):
        owner.lease(partition, "a", HOUR)
    assert owner.timers.problem() is None
    world.server.away_until_s = asyncio.get_running_loop().time() + 30.0
    await passing(3 * TICK_MS)
    said = owner.timers.problem() or ""
    assert said.startswith("Redis away since 20") and "no lease of partitions 3, 4 runs out meanwhile" in said
    await until(lambda: owner.timers.problem() is None, 27_000 + FILL_MS)


async def test_a_wheel_that_is_lost_in_every_fill_is_a_problem(
    world: TimerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, turn = await world.owner(3), world.server.turn

    def turn_of_another_server(wheel: str, former: str, run: str, *more: Any) -> list[Any]:
        return turn(wheel, former, run and "another", *more)

    monkeypatch.setattr(world.server, "turn", turn_of_another_server)
    owner.lease(3, "a", HOUR)
    await until(lambda: (owner.timers.problem() or "").startswith("timers not filled since"), 4 * TICK_MS)
    monkeypatch.undo()
    await until(lambda: owner.timers.problem() is None, FILL_MS)


async def test_random_leases_and_faults_leave_redis_as_the_journal_is(world: TimerWorld) -> None:
    owner, chance = await world.owner(0, 1, 2), random.Random(7)
    for _ in range(3_000):
        partition, timer = chance.randrange(3), f"t{chance.randrange(50)}"
        if chance.random() < 0.3:
            owner.end(partition, timer)
        else:
            owner.lease(partition, timer, HOUR + chance.randrange(HOUR))
        await passing(chance.choice((0, 1, 50)))
        if chance.random() < 0.02:
            chance.choice(list(TROUBLE))(world)
        elif chance.random() < 0.05:
            mend(world)
    mend(world)
    await until(lambda: all(map(world.is_as_journal, range(3))), FILL_MS + TIMEOUT_MS)
    assert owner.checked == []


async def test_a_journal_that_cannot_be_read_is_logged_and_holds_up_no_other_partition(
    world: TimerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.journal.broken.add(3)
    with caplog.at_level(logging.CRITICAL):
        owner = await world.owner(3, 4)
        owner.lease(3, "a", 0)
        owner.lease(4, "b", 0)
        await until(lambda: owner.checked == [(4, "b")], LATENESS_MS)
        assert "timers not filled since" in (owner.timers.problem() or "")
        world.journal.broken.clear()
        await until(lambda: (3, "a") in owner.checked, FILL_MS)
    assert owner.timers.problem() is None


async def test_what_happens_is_counted(world: TimerWorld) -> None:
    names = [f"sluice_timers_{each}_total" for each in ("set", "cancelled", "fired")]
    world.first.lease(3, "filled", HOUR)
    owner = await world.owner(3)
    before: list[Any] = [counted(name) for name in names]
    owner.lease(3, "a", 0)
    owner.lease(3, "b", HOUR)
    assert counted("sluice_timers_pending") == 2
    await passing(3 * TICK_MS)
    assert counted("sluice_timers_pending") == 0
    assert [counted(name) for name in names] == [before[0] + 2, before[1] + 1, before[2] + 1]
