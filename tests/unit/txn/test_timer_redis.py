"""What one turn of a timer wheel does: on a real Redis and on its twin, which does the same; and a Redis Cluster."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.redis_server import PrivateRedis, private_redis
from support.wait import eventually, eventually_async

from txn_manager.wheel.errors import WheelLostError, WheelUnavailableError
from txn_manager.wheel.memory_redis import MemoryRedis, MemoryRedisAccess
from txn_manager.wheel.redis_access import redis_access
from txn_manager.wheel.timer_redis import EXPIRY_S, MAX_BATCH, TimerRedis, Turn

HOUR = 3_600_000
WHEEL, OTHER = "sluice:timers:{test:3}:a", "sluice:timers:{test:3}:b"


class OnRedis:
    """Turns on a real server, and what can be done to it."""

    def __init__(self, server: PrivateRedis, timeout_s: float = 10.0) -> None:
        self.server = server
        server.client.flushall()
        server.client.config_set("maxmemory", 0)
        self.redis = TimerRedis(redis_access(server.url, "").client, timeout_s)

    def restart(self) -> None:
        """With what it has now."""
        self.server.client.save()
        self.server.kill()
        self.server.start()

    def remove(self, key: str) -> None:
        self.server.client.delete(key)

    def fill_up(self) -> None:
        self.server.client.config_set("maxmemory", 1)

    def scores(self, key: str) -> dict[str, float]:
        """Of its timers, in ms from now."""
        now_ms = float(self.server.client.time()[0]) * 1000
        scored = self.server.client.zrange(key, 0, -1, withscores=True)
        return {timer: score * 1000 - now_ms for timer, score in scored if not timer.startswith("*")}

    def expires_s(self, key: str) -> float:
        return float(self.server.client.ttl(key))


class InMemory:
    """The same on the twin."""

    def __init__(self) -> None:
        self.server = MemoryRedis(Random(1))
        self.redis = TimerRedis(MemoryRedisAccess(self.server).client)

    def restart(self) -> None:
        self.server.save()
        self.server.restart()

    def remove(self, key: str) -> None:
        self.server.keys.pop(key, None)

    def fill_up(self) -> None:
        self.server.is_full = True

    def scores(self, key: str) -> dict[str, float]:
        found = self.server.keys.get(key)
        now_ms = self.server.now_ms() // 1000 * 1000
        scores = found.scores.items() if found is not None else ()
        return {timer: score * 1000 - now_ms for timer, score in scores if not timer.startswith("*")}

    def expires_s(self, key: str) -> float:
        return (self.server.keys[key].expires_ms - self.server.now_ms()) / 1000


Side = OnRedis | InMemory


@pytest.fixture(params=["redis", "memory"])
async def side(request: pytest.FixtureRequest) -> AsyncIterator[Side]:
    side: Side = OnRedis(request.getfixturevalue("server")) if request.param == "redis" else InMemory()
    yield side
    await side.redis.close()


async def begun(side: Side, delays_ms: dict[str, int | None], wheel: str = WHEEL, former: str = "") -> Turn:
    turn = await side.redis.turn(wheel, former, "", {})
    return await side.redis.turn(wheel, "", turn.run, delays_ms)


async def test_a_timer_is_due_in_the_second_behind_its_delay(side: Side) -> None:
    turn = await begun(side, {"past": -HOUR, "now": 0, "soon": 1, "late": HOUR})
    assert set(turn.due) <= {"past", "now"} and "past" in turn.due
    held = side.scores(WHEEL)
    assert 0 <= held["soon"] <= 2_000 and HOUR <= held["late"] + 1_000 <= HOUR + 3_000

    async def are_due() -> bool:
        return (await side.redis.turn(WHEEL, "", turn.run, {})).due == ["past", "now", "soon"]

    await eventually_async(are_due, 30, "the second is over")


async def test_what_is_put_or_taken_out_in_a_turn_is_so_in_its_reply(side: Side) -> None:
    turn = await begun(side, {"a": -HOUR, "b": HOUR, "c": HOUR})
    turn = await side.redis.turn(WHEEL, "", turn.run, {"a": None, "b": -HOUR, "unknown": None})
    assert turn.due == ["b"] and side.scores(WHEEL).keys() == {"b", "c"}


async def test_a_turn_returns_a_batch_and_the_rest_once_that_was_moved(side: Side) -> None:
    run = (await begun(side, {})).run
    for first in (0, MAX_BATCH):
        due = (await side.redis.turn(WHEEL, "", run, {f"t{first + n}": -HOUR for n in range(MAX_BATCH)})).due
    assert len(due) == MAX_BATCH
    rest = (await side.redis.turn(WHEEL, "", run, dict.fromkeys(due, HOUR))).due
    assert len(rest) == MAX_BATCH and not set(rest) & set(due)


@pytest.mark.parametrize("loss", ["restarted with all its data", "removed"])
async def test_a_wheel_of_another_run_or_without_its_key_is_lost_and_stays_so(side: Side, loss: str) -> None:
    turn = await begun(side, {"a": -HOUR})
    before = side.scores(WHEEL).keys()
    if loss == "removed":
        side.remove(WHEEL)
    else:
        side.restart()
    # The connection of before the restart is closed.
    with pytest.raises((WheelLostError, WheelUnavailableError)):
        await side.redis.turn(WHEEL, "", turn.run, {"b": 0})
    for _ in range(2):
        with pytest.raises(WheelLostError):
            await side.redis.turn(WHEEL, "", turn.run, {"b": 0})
    assert side.scores(WHEEL).keys() == (set() if loss == "removed" else before), "nothing is put into it"


async def test_a_wheel_that_is_begun_removes_its_former_and_expires_without_turns(side: Side) -> None:
    await begun(side, {"a": 0})
    turn = await begun(side, {"b": HOUR}, OTHER, former=WHEEL)
    assert side.scores(WHEEL) == {} and side.scores(OTHER).keys() == {"b"}
    assert EXPIRY_S - 60 <= side.expires_s(OTHER) <= EXPIRY_S
    with pytest.raises(WheelLostError):
        await side.redis.turn(WHEEL, "", turn.run, {"a": 0})


async def test_a_full_redis_refuses_timers_but_a_wheel_that_is_left_makes_room(side: Side) -> None:
    turn = await begun(side, {"a": 0})
    side.fill_up()
    with pytest.raises(WheelUnavailableError, match="OOM"):
        await side.redis.turn(WHEEL, "", turn.run, {"b": 0})
    await side.redis.turn(OTHER, WHEEL, "", {})
    assert side.scores(WHEEL) == {}
    with pytest.raises(WheelUnavailableError, match="OOM"):
        await side.redis.turn(OTHER, "", turn.run, {"b": 0})


TIMERS = st.sampled_from([f"sc/st/{letter}" for letter in "abcdefgh"])
CHANGES = st.dictionaries(TIMERS, st.sampled_from([None, -HOUR, HOUR, 2 * HOUR]))
STEPS = st.one_of(
    st.tuples(st.just("begin"), st.integers(0, 2), st.integers(0, 2)),
    st.tuples(st.just("turn"), st.integers(0, 2), CHANGES),
    st.tuples(st.just("remove"), st.integers(0, 2), st.none()),
)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(steps=st.lists(STEPS, max_size=25))
def test_any_turns_do_the_same_on_redis_and_on_its_twin(server: PrivateRedis, steps: list[Any]) -> None:
    asyncio.run(_live_through(server, steps))


async def _live_through(server: PrivateRedis, steps: list[Any]) -> None:
    sides: tuple[Side, ...] = (OnRedis(server), InMemory())
    runs = dict.fromkeys(sides, "none")
    for step in steps:
        due = [await _do(side, runs, *step) for side in sides]
        assert due[0] == due[1]
        for wheel in map(_name, range(3)):
            held = [side.scores(wheel) for side in sides]
            assert held[0].keys() == held[1].keys()
            assert all(abs(held[0][timer] - held[1][timer]) <= 2_000 for timer in held[0])
    for side in sides:
        await side.redis.close()


async def _do(side: Side, runs: dict[Side, str], kind: str, number: int, what: Any) -> object:
    if kind == "remove":
        return side.remove(_name(number))
    try:
        if kind == "begin":
            turn = await side.redis.turn(_name(number), _name(what), "", {})
            runs[side] = turn.run
        else:
            turn = await side.redis.turn(_name(number), "", runs[side], what)
    except WheelLostError:
        return "lost"
    return set(turn.due)


def _name(number: int) -> str:
    return f"sluice:timers:{{test:3}}:{number}"


# The real server alone.


@pytest.fixture
async def real(server: PrivateRedis) -> AsyncIterator[OnRedis]:
    side = OnRedis(server)
    yield side
    await side.redis.close()


async def test_every_call_ends_in_time_when_redis_is_frozen_or_away(real: OnRedis) -> None:
    hasty = OnRedis(real.server, timeout_s=0.2)

    async def fails() -> None:
        async with asyncio.timeout(30):
            with pytest.raises(WheelUnavailableError):
                await begun(hasty, {})

    async def answers() -> bool:
        try:
            await begun(hasty, {})
        except WheelUnavailableError:
            return False
        return True

    real.server.freeze()
    try:
        await fails()
    finally:
        real.server.thaw()
    await eventually_async(answers, 60, "Redis answers again")
    real.server.kill()
    await fails()
    real.server.start()
    await eventually_async(answers, 60, "Redis answers again")
    await hasty.redis.close()


async def test_many_calls_at_once_wait_for_a_connection(real: OnRedis) -> None:
    run = (await begun(real, {})).run
    turns = await asyncio.gather(*(real.redis.turn(WHEEL, "", run, {}) for _ in range(200)))
    assert {turn.run for turn in turns} == {run}
    assert len(real.server.client.client_list()) < 20


async def test_a_call_can_be_cancelled_at_any_moment(real: OnRedis) -> None:
    run = (await begun(real, {"a": HOUR})).run

    async def call_for_ever() -> None:
        while True:
            await real.redis.turn(WHEEL, "", run, {})

    async with asyncio.timeout(30):
        for turns in range(300):
            task = asyncio.get_running_loop().create_task(call_for_ever())
            for _ in range(turns % 60):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    assert (await real.redis.turn(WHEEL, "", run, {})).due == []


# A Redis Cluster.


@pytest.fixture
def nodes() -> Iterator[list[PrivateRedis]]:
    """Three that share the slots."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(private_redis(clustered=True)) for _ in range(3)]
        for number, node in enumerate(nodes):
            node.client.execute_command("CLUSTER", "ADDSLOTS", *range(number, 16384, 3))
            for other in nodes[:number]:
                node.client.execute_command("CLUSTER", "MEET", "127.0.0.1", other.port)
        eventually(lambda: all(map(_is_ready, nodes)), 60, "the nodes know each other")
        yield nodes


def _is_ready(node: PrivateRedis) -> bool:
    info = node.client.execute_command("CLUSTER", "INFO")
    return "cluster_state:ok" in info and "cluster_known_nodes:3" in info


@asynccontextmanager
async def through(node: PrivateRedis) -> AsyncIterator[TimerRedis]:
    redis = TimerRedis(redis_access(node.url, "").client, 10.0)
    try:
        yield redis
    finally:
        await redis.close()


async def test_wheels_of_a_redis_cluster_lie_on_all_its_nodes_and_each_is_found(nodes: list[PrivateRedis]) -> None:
    async with through(nodes[0]) as redis:
        for partition in range(12):
            wheels = [f"sluice:timers:{{test:{partition}}}:{token}" for token in "ab"]
            await redis.turn(wheels[0], "", "", {})
            run = (await redis.turn(wheels[1], wheels[0], "", {})).run
            assert (await redis.turn(wheels[1], "", run, {"t": -HOUR})).due == ["t"]
        held = [set(node.client.keys("*")) for node in nodes]
        assert all(held) and sum(map(len, held)) == 12, "what was left is removed where it lay"


async def test_when_the_first_node_fails_another_one_is_asked_where_wheels_are(nodes: list[PrivateRedis]) -> None:
    for node in nodes:
        node.client.config_set("cluster-require-full-coverage", "no")
    async with through(nodes[0]) as redis:
        runs = {}
        for partition in range(12):
            wheel = f"sluice:timers:{{test:{partition}}}:a"
            runs[wheel] = (await redis.turn(wheel, "", "", {})).run
        left = {wheel for node in nodes[1:] for wheel in node.client.keys("*")}
        nodes[0].kill()
        found = set()
        for wheel in [*runs, *runs, *runs]:
            try:
                await redis.turn(wheel, "", runs[wheel], {})
                found.add(wheel)
            except WheelUnavailableError:
                pass
        assert found == left
