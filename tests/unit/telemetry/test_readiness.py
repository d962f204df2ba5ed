"""Which service is ready when: what must be there at first, what must be there always, what only degrades."""

import asyncio
import threading
from collections.abc import Callable
from itertools import pairwise
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from kazoo.client import KazooState
from py4j.protocol import Py4JJavaError
from support.wait import SOON_S

from cluster_manager.nodes import ZooKeeperNodes
from harness import eventually
from retention_spark.query_supervisor import QueryRunner
from sluice.engine.ports import Ends, SendError
from sluice.memory.broker import MemoryBroker
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import InMemorySegmentStore, Moment
from sluice.runtime import Runtime
from sluice.settings import ServiceSettings
from sluice.workflows.data_plane import ROUND_S, DataPlane
from txn_manager.timers import Timers
from txn_manager.wheel.memory_redis import MemoryRedis, MemoryRedisAccess
from txn_manager.wheel.timer_redis import TimerRedis
from txn_manager.wheel.wheel import REST_MS


@pytest.mark.usefixtures("virtual_time")
async def test_the_data_plane_keeps_from_serving_at_first_and_degrades_later() -> None:
    away = True

    def fault(moment: Moment, _request: str, _segment: str) -> None:
        if away and moment == "before":
            raise ConnectionFailure(Failure.CLOSED_BY_PEER)

    data_plane = DataPlane(InMemorySegmentStore(fault), 4)
    watching = asyncio.get_running_loop().create_task(data_plane.watch())
    await asyncio.sleep(1.0)
    assert "0, 1, 2, 3 do not answer" in (data_plane.never_answered() or "")
    away = False
    await asyncio.sleep(1.0)
    assert data_plane.never_answered() is None and data_plane.problem() is None
    away = True
    await asyncio.sleep(ROUND_S)
    assert data_plane.never_answered() is None, "a later outage does not take the service out"
    assert "0, 1, 2, 3 do not answer" in (data_plane.problem() or "") and len(data_plane.silent) == 4
    away = False
    await asyncio.sleep(ROUND_S)
    assert data_plane.problem() is None
    watching.cancel()


@pytest.mark.usefixtures("virtual_time")
async def test_txn_manager_waits_for_redis_at_first_and_does_without_it_later() -> None:
    async def not_due(_partition: int, _timers: list[str]) -> dict[str, int | None]:
        raise AssertionError

    redis = MemoryRedis(Random(1))
    timers = Timers(TimerRedis(MemoryRedisAccess(redis).client), "test", MemoryBroker(4), not_due, lambda _: {})
    assert timers.unreached() is None, "a standby has no timers to keep"
    redis.away_until_s = 10.0
    timers.own(0)
    assert timers.unreached() == "no request to Redis yet"
    await asyncio.sleep(5.0)
    assert "Redis away" in (timers.unreached() or "")
    await asyncio.sleep(10.0)
    assert timers.unreached() is None and timers.problem() is None
    redis.away_until_s = 60.0
    await asyncio.sleep(REST_MS / 1000 + 1)
    assert timers.unreached() is None and "Redis away" in (timers.problem() or "")
    await timers.stop()


def runtime_on(broker: MemoryBroker) -> Runtime:
    return Runtime("api-gateway", ServiceSettings(instance="0"), MemoryConnections(MemoryGroups(broker)))


@pytest.mark.usefixtures("virtual_time")
async def test_kafka_that_answers_but_appends_nothing_keeps_no_service_from_being_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = MemoryBroker(4)
    runtime = runtime_on(broker)
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    monkeypatch.setattr(runtime.heartbeats, "append", lambda _beat: never)
    answers: list[int] = []
    runtime.heartbeats.on_answered.append(lambda: answers.append(1))
    sending = asyncio.ensure_future(runtime.heartbeats.run())
    await asyncio.sleep(60)
    assert runtime.heartbeats.problem() is None and answers
    runtime.heartbeats.needs_appends = lambda: True
    answers.clear()
    await asyncio.sleep(60)
    assert runtime.heartbeats.problem() is None and not answers, "a lease needs what is appended"
    broker.go_away(60)
    await asyncio.sleep(30)
    assert "answered nothing" in (runtime.heartbeats.problem() or "")
    sending.cancel()


@pytest.mark.usefixtures("virtual_time")
async def test_a_broker_that_is_away_keeps_no_service_from_being_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats fail at their time-out, and the others answer only when it is clear that one does not."""
    runtime = runtime_on(MemoryBroker(4))

    async def fail_late() -> None:
        await asyncio.sleep(10)
        raise SendError("timed out")

    async def answer_late() -> Ends:
        await asyncio.sleep(4)
        return {0: 0}

    monkeypatch.setattr(runtime.heartbeats, "append", lambda _beat: asyncio.ensure_future(fail_late()))
    monkeypatch.setattr(runtime.journal, "ends", answer_late)
    sending = asyncio.ensure_future(runtime.heartbeats.run())
    for _ in range(600):
        await asyncio.sleep(0.1)
        assert runtime.heartbeats.problem() is None
    sending.cancel()


@pytest.mark.usefixtures("virtual_time")
async def test_heartbeats_that_are_acknowledged_late_follow_each_other_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = runtime_on(MemoryBroker(4))
    monkeypatch.setattr(runtime.heartbeats, "append", lambda _beat: asyncio.ensure_future(asyncio.sleep(1.5)))
    runtime.heartbeats.needs_appends = lambda: True
    answered: list[float] = []
    runtime.heartbeats.on_answered.append(lambda: answered.append(asyncio.get_running_loop().time()))
    sending = asyncio.ensure_future(runtime.heartbeats.run())
    await asyncio.sleep(60)
    assert max(later - sooner for sooner, later in pairwise(answered)) < 3, "longer would count as an outage"
    sending.cancel()


async def test_a_cluster_manager_needs_its_session_with_zookeeper() -> None:
    listeners: list[Callable[[str], None]] = []
    client = SimpleNamespace(add_listener=listeners.append)
    nodes = ZooKeeperNodes("127.0.0.1:1", "cluster", 10.0, 5.0, lambda: None, client)
    (set_state,) = listeners
    assert "no session with ZooKeeper" in (nodes.problem() or "")
    set_state(KazooState.CONNECTED)
    await asyncio.sleep(0)
    assert nodes.problem() is None
    set_state(KazooState.SUSPENDED)
    await asyncio.sleep(0)
    assert "the last container map keeps serving" in (nodes.problem() or "")


def test_retention_spark_is_not_ready_while_a_query_fails() -> None:
    failing, in_office, refusal = True, True, MagicMock()
    refusal.toString.return_value = "java.io.IOException: no checkpoint"

    class Running:
        isActive = True  # noqa: N815 - Spark's name
        status = {"isTriggerActive": False}  # noqa: RUF012

        def __init__(self) -> None:
            self.ended = threading.Event()
            running.append(self)

        def awaitTermination(self, timeout: int) -> bool:  # noqa: N802
            return self.ended.wait(timeout)

        def stop(self) -> None:
            self.ended.set()

    def start() -> Any:
        assert in_office
        if failing:
            raise Py4JJavaError("An error occurred while calling o1.start", refusal)
        return Running()

    def mend(failure: str) -> None:
        nonlocal failing, in_office
        assert failure == f"{refusal.toString()}"
        assert seen.wait(SOON_S)
        failing = in_office = False

    seen = threading.Event()
    running: list[Running] = []
    released: list[bool] = []
    runner = QueryRunner("scale", start, lambda: released.append(True), lambda: in_office, lambda: False, mend)
    assert runner.problem() == "ended", "not begun"
    runner.start()
    eventually(lambda: "no checkpoint" in (runner.problem() or ""), SOON_S, "the failure shows")
    seen.set()
    eventually(lambda: runner.problem() is None, SOON_S, "it stands by when it has failed too often")
    assert not failing
    in_office = True
    eventually(lambda: running, SOON_S, "the query runs when it is its turn again")
    in_office = False
    eventually(lambda: released, SOON_S, "the query ends when another instance decides")
    assert runner.problem() is None, "it stands by"
    released.clear()
    runner.stop(5.0)
    assert released, "a batch that waits for work need not wait any more"


@pytest.mark.usefixtures("virtual_time")
async def test_what_no_caller_waits_for_begins_when_every_check_has_passed() -> None:
    runtime = runtime_on(MemoryBroker())
    problem: str | None = "loading"
    runtime.checks["journal"] = lambda: problem
    ready = asyncio.ensure_future(runtime.until_ready())
    await asyncio.sleep(60.0)
    assert not ready.done()
    problem = None
    await asyncio.wait_for(ready, 1.0)
