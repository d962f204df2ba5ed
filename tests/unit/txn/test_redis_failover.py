"""Redis fails over to a replica, by Sentinel or as a Redis Cluster: timers are filled from the journal, and fire."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager

import pytest
from support.redis_server import PrivateRedis, private_redis
from support.wait import eventually, eventually_async

from sluice.security.watched import SecurityConfigError
from txn_manager.timers import Timers
from txn_manager.wheel.errors import WheelUnavailableError
from txn_manager.wheel.redis_access import redis_access
from txn_manager.wheel.timer_redis import TimerRedis

PARTITIONS = range(8)
PATIENCE_S = 60.0
GIVEN_UP_MS = 1_000
"""After which the others say that a server is gone."""


class Clock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class Owner:
    """Has a lease that has run out in each partition; `checked` are those that were checked since it was emptied."""

    def __init__(self, redis: TimerRedis) -> None:
        self.checked: set[int] = set()
        self.timers = Timers(redis, "test", Clock(), self._check, lambda partition: {f"t{partition}": 0}, tick_s=0.1)
        for partition in PARTITIONS:
            self.timers.own(partition)

    async def _check(self, partition: int, timers: list[str]) -> dict[str, int | None]:
        self.checked.add(partition)
        return {timer: Clock().now_ms() for timer in timers}

    async def recovers(self) -> None:
        """Return when timers of all partitions have fired."""
        self.checked.clear()
        await eventually_async(lambda: self.checked == set(PARTITIONS), PATIENCE_S, "timers of all partitions fire")


@asynccontextmanager
async def owner(url: str) -> AsyncIterator[Owner]:
    redis = TimerRedis(redis_access(url, "").client)
    owner = Owner(redis)
    try:
        await owner.recovers()
        yield owner
    finally:
        await owner.timers.stop()
        await redis.close()


def is_replica_of(replica: PrivateRedis, master: PrivateRedis) -> bool:
    found = replica.client.info("replication")
    said = [found.get(name) for name in ("role", "master_port", "master_link_status")]
    return said == ["slave", master.port, "up"]


@pytest.fixture
def pair() -> Iterator[tuple[PrivateRedis, PrivateRedis]]:
    """A server, and a replica of it."""
    with private_redis() as master, private_redis() as replica:
        replica.client.replicaof("127.0.0.1", master.port)
        eventually(lambda: is_replica_of(replica, master), 60, "the replica follows")
        yield master, replica


async def test_timers_fire_on_the_replica_that_sentinel_makes_the_master(
    pair: tuple[PrivateRedis, PrivateRedis],
) -> None:
    master, replica = pair
    with private_redis(sentinel=True) as sentinel:
        sentinel.client.execute_command("SENTINEL", "MONITOR", "timers", "127.0.0.1", str(master.port), "1")
        for name in ("down-after-milliseconds", "failover-timeout"):
            sentinel.client.execute_command("SENTINEL", "SET", "timers", name, str(GIVEN_UP_MS))
        eventually(lambda: len(sentinel.client.sentinel_slaves("timers")) == 1, 60, "Sentinel knows the replica")
        async with owner(f"{sentinel.url}?sentinel=timers") as one:
            master.kill()
            await one.recovers()
            assert replica.client.info("replication")["role"] == "master"
            assert one.timers.problem() is None


async def test_a_server_that_became_a_replica_is_not_kept_to(pair: tuple[PrivateRedis, PrivateRedis]) -> None:
    """Its name may stand for the new master by now, and an open connection would never learn that."""
    first, second = pair
    redis = TimerRedis(redis_access(first.url, "").client)
    try:
        run = (await redis.turn("wheel", "", "", {})).run
        ours = {client["id"] for client in first.client.client_list() if client["cmd"] == "eval"}
        assert ours
        second.client.replicaof("NO", "ONE")
        first.client.replicaof("127.0.0.1", second.port)
        eventually(lambda: is_replica_of(first, second), 60, "they have changed places")
        with pytest.raises(WheelUnavailableError, match="read only replica"):
            await redis.turn("wheel", "", run, {})
        left = await asyncio.to_thread(first.client.client_list)
        assert not ours & {client["id"] for client in left}
    finally:
        await redis.close()


async def test_timers_fire_on_the_replica_that_a_redis_cluster_makes_the_master() -> None:
    with ExitStack() as stack:
        *masters, replica = nodes = [stack.enter_context(private_redis(clustered=True)) for _ in range(4)]
        for number, node in enumerate(masters):
            node.client.execute_command("CLUSTER", "ADDSLOTS", *range(number, 16384, 3))
        for node in nodes:
            node.client.config_set("cluster-node-timeout", GIVEN_UP_MS)
            node.client.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port)
        eventually(lambda: all(knows_all(node, len(nodes)) for node in nodes), 60, "the nodes know each other")
        lost = masters[1]
        replica.client.execute_command("CLUSTER", "REPLICATE", lost.client.execute_command("CLUSTER", "MYID"))
        eventually(lambda: is_replica_of(replica, lost), 60, "the replica follows")
        async with owner(masters[0].url) as one:
            assert lost.client.keys("*"), "it has wheels"
            lost.kill()
            await one.recovers()
            assert replica.client.info("replication")["role"] == "master" and replica.client.keys("*")


def knows_all(node: PrivateRedis, count: int) -> bool:
    info = node.client.execute_command("CLUSTER", "INFO")
    return "cluster_state:ok" in info and f"cluster_known_nodes:{count}" in info


def test_sentinel_with_tls_is_refused_and_says_what_to_do() -> None:
    with pytest.raises(SecurityConfigError, match="sentinel cannot be given with rediss://, name the master instead"):
        redis_access("rediss://sentinels:26379/0?sentinel=timers", "")
