"""The timer wheel on a real Redis: what its calls do, what makes a slot count as lost, and a random model of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.redis_server import PrivateRedis
from support.wait import eventually_async

from txn_manager.wheel.errors import SlotLostError, WheelUnavailableError
from txn_manager.wheel.wheel import MAX_BATCH, TimerWheel

T = TypeVar("T")

HOUR = 3_600_000


def slot(partition: int) -> str:
    return f"sluice:{{test}}:timers:v1:{partition}"


SLOT = slot(3)


class TornWheel(TimerWheel):
    """Does something between two of its scripts, once `disturb` was called."""

    _left = 0
    _disturb: Callable[[], Awaitable[None]]

    def disturb(self, at_call: int, disturb: Callable[[], Awaitable[None]]) -> None:
        """Do that once, before the script of this number from now on."""
        self._left, self._disturb = at_call, disturb

    async def run_script(self, *args: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            await self._disturb()
        return await super().run_script(*args)


@pytest.fixture
async def wheel(server: PrivateRedis) -> AsyncIterator[TornWheel]:
    server.client.flushall()
    wheel = TornWheel(server.url, "test", claim_ms=HOUR, timeout_s=10)
    yield wheel
    await wheel.close()


def timers_in(server: PrivateRedis, key: str = SLOT) -> set[str]:
    return {member for member, score in server.client.zrange(key, 0, -1, withscores=True) if score != float("inf")}


def now_ms(server: PrivateRedis) -> int:
    seconds, micros = server.client.time()
    return int(seconds) * 1000 + int(micros) // 1000


async def due(wheel: TimerWheel, *partitions: int, limit: int = MAX_BATCH) -> set[tuple[int, str]]:
    claimed = await wheel.claim(partitions, limit)
    assert not claimed.lost
    assert len(claimed.due) == len(set(claimed.due))
    return set(claimed.due)


async def until(ask: Callable[[], Awaitable[T]], message: str) -> T:
    return await eventually_async(ask, 60, message)


async def test_a_timer_is_due_once_its_delay_is_over_unless_it_was_cancelled(wheel: TornWheel) -> None:
    await wheel.refill(3, {})
    assert await wheel.change({3: {"sc/st/soon": HOUR, "sc/st/late": HOUR}}) == []
    assert await due(wheel, 3) == set()
    await wheel.change({3: {"sc/st/soon": 50}})
    assert await until(lambda: due(wheel, 3), "the timer fires") == {(3, "sc/st/soon")}
    await wheel.change({3: {"sc/st/soon": 0, "sc/st/late": 0}})
    await wheel.change({3: {"sc/st/soon": None, "unknown": None}})
    assert await due(wheel, 3) == {(3, "sc/st/late")}


async def test_the_time_is_that_of_redis(server: PrivateRedis, wheel: TornWheel) -> None:
    before = now_ms(server)
    await wheel.refill(3, {"filled": 1_000})
    await wheel.change({3: {"set": 2_000}})
    claimed = await wheel.claim([3])
    after = now_ms(server)
    assert before + 1_000 <= server.client.zscore(SLOT, "filled") <= after + 1_000
    assert before + 2_000 <= server.client.zscore(SLOT, "set") <= after + 2_000
    assert before <= claimed.at_ms <= after


async def test_what_is_set_in_a_slot_that_is_lost_does_not_make_it_complete(
    server: PrivateRedis, wheel: TornWheel
) -> None:
    assert await wheel.change({3: {"a": 0}}) == [3]
    assert await wheel.change({3: {"a": None}}) == [3]
    assert (await wheel.claim([3])).lost == [3]
    assert not server.client.exists(SLOT)


async def test_a_slot_without_its_marker_is_lost_until_it_is_filled(server: PrivateRedis, wheel: TornWheel) -> None:
    await wheel.refill(3, {"a": 0})
    await wheel.refill(4, {"b": 0})
    assert server.client.zremrangebyscore(SLOT, "inf", "inf") == 1
    claimed = await wheel.claim([3, 4])
    assert (claimed.lost, claimed.due) == ([3], [(4, "b")])
    assert await wheel.change({3: {"x": 0}}) == [3]
    await wheel.refill(3, {"a": 0})
    assert await due(wheel, 3) == {(3, "a")}


async def test_a_server_that_comes_back_with_its_data_has_lost_its_slots(server: PrivateRedis) -> None:
    server.client.flushall()
    wheel = TimerWheel(server.url, "test")
    await wheel.refill(3, {"a": 0})
    server.client.save()
    server.kill()
    with pytest.raises(WheelUnavailableError):
        await wheel.claim([3])
    server.start()
    assert timers_in(server) == {"a"}
    assert (await wheel.claim([3])).lost == [3]
    assert await wheel.change({3: {"a": 5}}) == [3]
    await wheel.refill(3, {"a": 0})
    assert await due(wheel, 3) == {(3, "a")}
    await wheel.close()


async def test_a_change_that_belongs_to_an_older_fill_changes_nothing(server: PrivateRedis, wheel: TornWheel) -> None:
    older = await wheel.refill(3, {"a": HOUR})
    newer = await wheel.refill(3, {"a": HOUR})
    assert await wheel.change({3: {"a": None, "b": 0}}, {3: older}) == [3]
    assert timers_in(server) == {"a"}
    assert await wheel.change({3: {"a": None, "b": HOUR}}, {3: newer}) == []
    assert timers_in(server) == {"b"}


async def test_a_refill_drops_what_is_not_in_it(server: PrivateRedis, wheel: TornWheel) -> None:
    first = await wheel.refill(3, {"old": HOUR, "both": HOUR})
    second = await wheel.refill(3, {"both": 0, "new": 0})
    assert timers_in(server) == {"both", "new"}
    claimed = await wheel.claim([3])
    assert claimed.fills == {3: second} and first != second
    assert server.client.keys("*") == [SLOT], "nothing is left aside"
    assert server.client.ttl(SLOT) == -1, "a slot does not expire"


@pytest.mark.parametrize("size", [0, 1, MAX_BATCH - 1, MAX_BATCH, MAX_BATCH + 1, 10 * MAX_BATCH + 7])
async def test_a_refill_of_any_size_is_whole(server: PrivateRedis, wheel: TornWheel, size: int) -> None:
    server.client.config_resetstat()
    timers = {f"sc/st/{number}": HOUR for number in range(size)}
    await wheel.refill(3, timers)
    assert timers_in(server) == set(timers)
    assert (await wheel.claim([3])).lost == []
    scripts = server.client.info("commandstats")["cmdstat_evalsha"]["calls"]
    assert scripts >= size / MAX_BATCH + 2


@pytest.mark.parametrize("at_call", [2, 3, 4])
@pytest.mark.parametrize("how", ["forgotten", "partly", "overtaken"])
async def test_a_refill_that_is_disturbed_never_looks_complete(
    server: PrivateRedis, wheel: TornWheel, at_call: int, how: str
) -> None:
    other = TimerWheel(server.url, "test", claim_ms=HOUR)

    async def disturb() -> None:
        if how == "forgotten":
            server.client.flushall()
        elif how == "partly":
            assert server.client.zrem(f"{SLOT}:fill", "t0") == 1
        else:
            await other.refill(3, {"other": 0})

    wheel.disturb(at_call, disturb)
    with pytest.raises(SlotLostError):
        await wheel.refill(3, {f"t{number}": 0 for number in range(2 * MAX_BATCH + 1)})
    claimed = await wheel.claim([3])
    if how == "overtaken":
        assert claimed.due == [(3, "other")] and timers_in(server) == {"other"}
    else:
        assert claimed.lost == [3]
    await other.close()


async def test_a_fill_that_another_one_began_after_is_void(server: PrivateRedis, wheel: TornWheel) -> None:
    other = TornWheel(server.url, "test", claim_ms=HOUR)

    async def stop() -> None:
        raise KeyError("stopped")

    async def begin_another() -> None:
        other.disturb(2, stop)
        with pytest.raises(KeyError):
            await other.refill(3, {"of the other": HOUR})

    wheel.disturb(2, begin_another)
    with pytest.raises(SlotLostError):
        await wheel.refill(3, {"a": HOUR})
    assert (await wheel.claim([3])).lost == [3]
    await other.close()


async def test_timers_are_not_late_by_the_time_a_fill_takes(server: PrivateRedis, wheel: TornWheel) -> None:
    began = now_ms(server)

    async def linger() -> None:
        await eventually_async(lambda: now_ms(server) > began + 2_000, 60, "time passes")

    wheel.disturb(2, linger)
    await wheel.refill(3, {f"t{number:04d}": HOUR for number in range(2 * MAX_BATCH + 1)})
    first, last = (server.client.zscore(SLOT, timer) for timer in ("t0000", f"t{2 * MAX_BATCH:04d}"))
    assert last - first < 1_000


async def test_until_a_refill_is_done_the_slot_stays_what_it_was(server: PrivateRedis, wheel: TornWheel) -> None:
    await wheel.refill(3, {"old": 0})
    seen = []

    async def look() -> None:
        seen.append(await due(wheel, 3))

    wheel.disturb(3, look)
    await wheel.refill(3, {f"t{number}": 0 for number in range(MAX_BATCH + 1)})
    assert seen == [{(3, "old")}]
    assert len(timers_in(server)) == MAX_BATCH + 1


async def test_a_fill_that_stopped_half_way_is_forgotten(server: PrivateRedis, wheel: TornWheel) -> None:
    async def stop() -> None:
        raise KeyError("stopped")

    wheel.disturb(3, stop)
    with pytest.raises(KeyError):
        await wheel.refill(3, {f"t{number}": 0 for number in range(2 * MAX_BATCH)})
    assert 0 < server.client.pttl(f"{SLOT}:fill") <= 60_000


async def test_a_claim_of_too_many_or_none_is_an_error(wheel: TornWheel) -> None:
    for limit in (0, MAX_BATCH + 1):
        with pytest.raises(ValueError, match="a claim takes"):
            await wheel.claim([3], limit)


async def test_instances_that_claim_at_once_share_without_doubles(server: PrivateRedis, wheel: TornWheel) -> None:
    everything = set()
    for partition in range(4):
        await wheel.refill(partition, {f"t{number}": 0 for number in range(500)})
        everything |= {(partition, f"t{number}") for number in range(500)}
    instances = [wheel, TimerWheel(server.url, "test", claim_ms=HOUR), TimerWheel(server.url, "test", claim_ms=HOUR)]
    taken: list[list[tuple[int, str]]] = [[] for _ in instances]

    async def take(index: int) -> None:
        while claimed := (await instances[index].claim(range(4), 50)).due:
            taken[index] += claimed

    await asyncio.gather(*map(take, range(len(instances))))
    assert sorted(each for share in taken for each in share) == sorted(everything)
    assert all(taken), "all had a share"
    for other in instances[1:]:
        await other.close()


async def test_clusters_do_not_see_each_other(server: PrivateRedis, wheel: TornWheel) -> None:
    other = TimerWheel(server.url, "other", claim_ms=HOUR)
    await wheel.refill(3, {"a": 0})
    assert (await other.claim([3])).lost == [3]
    await other.refill(3, {"b": 0})
    assert await due(wheel, 3) == {(3, "a")} and await due(other, 3) == {(3, "b")}
    await other.close()


async def test_every_call_ends_in_time_when_redis_is_frozen_or_away(server: PrivateRedis, wheel: TornWheel) -> None:
    await wheel.refill(3, {"a": HOUR})
    hasty = TimerWheel(server.url, "test", timeout_s=0.2)

    async def all_fail() -> None:
        calls = [
            hasty.change({3: {"a": 1}}),
            hasty.refill(3, {"a": 1}),
            hasty.claim([3]),
        ]
        async with asyncio.timeout(30):
            for call in calls:
                with pytest.raises(WheelUnavailableError):
                    await call

    server.freeze()
    try:
        await all_fail()
    finally:
        server.thaw()
    await until(lambda: hasty.claim([3]), "Redis answers again")
    server.kill()
    await all_fail()
    server.start()
    assert (await until(lambda: hasty.claim([3]), "Redis answers again")).lost == [3]
    await hasty.close()


async def test_what_redis_refuses_is_an_error_of_the_wheel(server: PrivateRedis, wheel: TornWheel) -> None:
    server.client.set(SLOT, "not a slot")
    with pytest.raises(WheelUnavailableError, match="WRONGTYPE"):
        await wheel.claim([3])


async def test_many_calls_at_once_wait_for_a_connection(server: PrivateRedis, wheel: TornWheel) -> None:
    fill = await wheel.refill(3, {})
    claims = await asyncio.gather(*(wheel.claim([3]) for _ in range(200)))
    assert all(claimed.fills == {3: fill} for claimed in claims)
    assert len(server.client.client_list()) < 20


async def test_changes_of_many_partitions_are_cut_into_batches(server: PrivateRedis, wheel: TornWheel) -> None:
    sizes = {0: MAX_BATCH - 1, 1: 5, 2: 0, 4: 2 * MAX_BATCH, 5: 1}
    for partition in (0, 1, 2, 5):
        await wheel.refill(partition, {"gone": 0, "kept": HOUR})
    changes: dict[int, dict[str, int | None]] = {
        partition: {"gone": None} | {f"t{number}": HOUR for number in range(size)} for partition, size in sizes.items()
    }
    assert await wheel.change(changes) == [4]
    for partition, size in sizes.items():
        expected = set() if partition == 4 else {"kept"} | {f"t{number}" for number in range(size)}
        assert timers_in(server, slot(partition)) == expected


PARTITIONS = st.integers(0, 2)
TIMERS = st.sampled_from([f"sc/st/{letter}" for letter in "abcdefgh"])
DELAYS = st.sampled_from([-5_000, 0, HOUR])
CONTENTS = st.dictionaries(TIMERS, DELAYS)
STEPS = st.one_of(
    st.tuples(st.just("change"), st.dictionaries(PARTITIONS, st.dictionaries(TIMERS, st.one_of(st.none(), DELAYS)))),
    st.tuples(st.just("refill"), PARTITIONS, CONTENTS),
    st.tuples(st.just("claim"), st.lists(PARTITIONS, unique=True), st.integers(1, 4)),
    st.tuples(st.just("lose"), PARTITIONS),
    st.tuples(st.just("forget scripts")),
)


class Model:
    """The wheel as dictionaries: no slot is lost, whose delay is not over is far away."""

    def __init__(self) -> None:
        self.slots: dict[int, dict[str, bool]] = {}

    def change(self, changes: dict[int, dict[str, int | None]]) -> list[int]:
        for partition, some in changes.items():
            slot = self.slots.get(partition, {})
            for timer, delay_ms in some.items():
                if delay_ms is None:
                    slot.pop(timer, None)
                else:
                    slot[timer] = delay_ms <= 0
        return sorted(each for each, some in changes.items() if some and each not in self.slots)

    def due(self, partitions: list[int]) -> set[tuple[int, str]]:
        return {(p, timer) for p in partitions for timer, due in self.slots.get(p, {}).items() if due}


async def _live_through(server: PrivateRedis, steps: list[Any]) -> None:
    server.client.flushall()
    wheel, model = TimerWheel(server.url, "test", claim_ms=HOUR), Model()
    for kind, *args in steps:
        if kind == "change":
            assert await wheel.change(args[0]) == model.change(args[0])
        elif kind == "refill":
            await wheel.refill(*args)
            model.slots[args[0]] = {timer: delay_ms <= 0 for timer, delay_ms in args[1].items()}
        elif kind == "claim":
            partitions, limit = args
            expected, claimed = model.due(partitions), await wheel.claim(partitions, limit)
            assert set(claimed.due) <= expected
            assert len(claimed.due) == len(set(claimed.due)) == min(limit, len(expected))
            assert claimed.lost == [each for each in partitions if each not in model.slots]
            for partition, timer in claimed.due:
                model.slots[partition][timer] = False
        elif kind == "lose":
            server.client.delete(slot(args[0]))
            model.slots.pop(args[0], None)
        else:
            server.client.script_flush()
        for partition in range(3):
            held = timers_in(server, slot(partition))
            assert held == set(model.slots.get(partition, {}))
    left: set[tuple[int, str]] = set()
    while claimed_last := (await wheel.claim(list(model.slots), 3)).due:
        left.update(claimed_last)
    assert left == model.due(list(model.slots))
    await wheel.close()


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(steps=st.lists(STEPS, max_size=25))
def test_any_calls_do_what_they_would_do_to_dictionaries(server: PrivateRedis, steps: list[Any]) -> None:
    asyncio.run(_live_through(server, steps))


async def test_a_call_can_be_cancelled_at_any_moment(server: PrivateRedis, wheel: TornWheel) -> None:
    await wheel.refill(3, {"a": HOUR})

    async def call_for_ever() -> None:
        while True:
            await wheel.claim([3])

    async with asyncio.timeout(30):
        for turns in range(300):
            task = asyncio.get_running_loop().create_task(call_for_ever())
            for _ in range(turns % 60):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    assert (await wheel.claim([3])).lost == []
