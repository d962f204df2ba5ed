"""Several of each: gateways behind one name, segment stores whose containers move, cluster-managers without ZooKeeper.

One system for all; how long it takes until all is as it should be is measured and printed (`pytest -s`).
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from integration.test_faults import ACTIVE, Traffic, container_map, got_beyond
from integration.test_java_client import WITH_FAULTS, JavaClient, build
from support.controller import Controller, controller, unique
from support.effort import effort
from support.health import metric, readiness
from support.kafka import events, fold
from support.txn_traffic import TxnTraffic
from support.writer import WriterProcess

from bench.balancer import Balancer
from harness import System, eventually, eventually_async
from sluice.domain.cluster.events import ContainersAssigned
from sluice.domain.segment import segment_name
from sluice.pravega.routing import container_of
from sluice_client import open_client
from sluice_local.settings import LocalSettings

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

DEADLINE_S = 120.0
RECOVERY_S = 10.0
INTERVAL_S = 5.0
AWAY_S = 15.0
"""Longer than a session with ZooKeeper, 10 s."""
GATEWAYS = ("api-gateway-0", "api-gateway-1")
MANAGERS = ("cluster-manager-0", "cluster-manager-1")


@pytest.fixture(scope="module")
def several(runs_folder: Path) -> Iterator[System]:
    links = [(manager, "zookeeper") for manager in MANAGERS]
    system = System(runs_folder / "several", segment_stores=3, api_gateways=2, cluster_managers=2, links=links)
    for manager in MANAGERS:
        system.configure(manager, {"SLUICE_REBALANCE_INTERVAL_S": str(INTERVAL_S)})
    with system:
        yield system
        assert_interval_is_kept(system)


@pytest.fixture
def gateway(several: System) -> Iterator[Controller]:
    with controller(several.grpc_address, DEADLINE_S) as client:
        yield client


def assert_interval_is_kept(system: System) -> None:
    """Between all assignments of the system's life, whoever made them."""
    assigned = [e.at for e in events(fold(system.kafka_bootstrap), lambda e: isinstance(e, ContainersAssigned))]
    print(f"seconds between assignments: {[round((after - at) / 1000, 1) for at, after in pairwise(assigned)]}")
    assert len(assigned) > 1
    assert all(after - at >= INTERVAL_S * 1000 for at, after in pairwise(assigned))


def command(system: System, what: str, store: str | None = None) -> None:
    """As `sluice container` sends it."""
    url, body = f"{system.rest_url}/sluice/v1/containers/{what}", {"store": store} if store else None
    assert httpx.post(url, json=body, timeout=60).json() == {"status": "SUCCESS"}


def sizes(system: System) -> list[int]:
    return sorted(map(len, container_map(system).values()))


def within(what: str, condition: Callable[[], object], began: float | None = None) -> float:
    """Seconds until it holds; printed."""
    began = began or time.monotonic()
    eventually(condition, DEADLINE_S, what)
    took = time.monotonic() - began
    print(f"{what} after {took:.1f} s")
    return took


# --- gateways


async def test_each_client_goes_on_while_either_gateway_behind_its_name_is_killed(
    several: System, runs_folder: Path
) -> None:
    """Java has both addresses; PyPI's client, which is the one of Rust, and ours have a name that stands for both."""
    java = JavaClient(
        build(LocalSettings().home / "java-client"),
        f"tcp://{','.join(several.grpc_addresses)}",
        runs_folder / "java-client-several.log",
    )
    with (
        java,
        Balancer(several.grpc_addresses) as name,
        controller(name.address, DEADLINE_S) as gateway,
        TxnTraffic(gateway, name.address, writers=2, reads_at=several.grpc_address) as rust,
    ):
        java_ends = asyncio.create_task(asyncio.to_thread(java.problem, WITH_FAULTS))
        ours: list[float] = []
        python = asyncio.create_task(create_streams(name.address, ours))
        await asyncio.to_thread(rust.goes_on)
        for victim in GATEWAYS:
            several.kill(victim)
            began = time.monotonic()
            await asyncio.to_thread(rust.goes_on)
            rust_s = time.monotonic() - began
            await eventually_async(partial(is_beyond, ours, len(ours) + 1), DEADLINE_S, "ours goes on")
            print(f"{victim} killed: Rust went on after {rust_s:.1f} s")
            await asyncio.to_thread(several.start, victim, deadline_s=DEADLINE_S)
            await asyncio.to_thread(rust.goes_on)
        python.cancel()
        await asyncio.gather(python, return_exceptions=True)
        assert await java_ends is None
        await rust.ends_exactly_once(DEADLINE_S)
    print(f"ours: {len(ours)} streams, the longest took {max(ours):.1f} s")
    assert max(ours) < RECOVERY_S


def is_beyond(found: list[float], count: int) -> bool:
    return len(found) > count


async def create_streams(address: str, took: list[float]) -> None:
    """One behind the other, until it is cancelled."""
    scope = unique("ours")
    async with open_client(address) as client:
        await client.controller.create_scope(scope)
        while True:
            began = time.monotonic()
            await client.controller.create_stream(scope, f"s{len(took)}")
            took.append(time.monotonic() - began)


# --- segment stores


async def test_containers_move_as_an_operator_says_and_by_load(several: System, gateway: Controller) -> None:
    last = several.segment_store_addresses[2]
    eventually(lambda: sizes(several) == [1, 1, 2], DEADLINE_S, "the containers are spread over three stores")
    with Traffic(several) as traffic:
        command(several, "drain", last)
        within("drained", lambda: container_map(several).get(last) is None)
        traffic.goes_on()
        command(several, "undrain", last)
        within("undrained", lambda: sizes(several) == [1, 1, 2])
        traffic.goes_on()
        await traffic.ends_exactly_once()
    pair = max(container_map(several).values(), key=len)
    streams = [stream_in(gateway, container) for container in pair]
    writers = [WriterProcess(several.grpc_address, *stream, "w") for stream in streams]
    try:
        for writer in writers:
            eventually(partial(got_beyond, writer, 10), DEADLINE_S, "it writes")
        command(several, "rebalance")
        within("spread by load", lambda: not any(pair <= held for held in container_map(several).values()))
        for writer in writers:
            within("it is written", partial(got_beyond, writer, writer.acknowledged + 1))
    finally:
        for writer in writers:
            writer.close()
    assert_interval_is_kept(several)


def stream_in(gateway: Controller, container: int) -> tuple[str, str]:
    """A new stream whose one segment is in that container."""
    scope = unique("loaded")
    assert gateway.create_scope(scope) == "SUCCESS"
    names = (f"s{number}" for number in range(1000))
    stream = next(name for name in names if container_of(segment_name(scope, name, 0), 4) == container)
    assert gateway.create_stream(scope, stream) == "SUCCESS"
    return scope, stream


# --- cluster-managers and ZooKeeper


def active_first(system: System) -> tuple[str, str]:
    """The one that is active, and the other one."""
    found = eventually(
        lambda: [name for name in MANAGERS if metric(system, name, ACTIVE) == 1], DEADLINE_S, "one is active"
    )
    assert len(found) == 1
    return found[0], next(name for name in MANAGERS if name not in found)


def says_it_is_cut_off(system: System, name: str) -> bool:
    return "no session with ZooKeeper" in readiness(system, name)[1]


@pytest.mark.parametrize("is_active", effort([False, True], [True]), ids=lambda it: "active" if it else "standby")
def test_containers_move_while_a_cluster_manager_is_cut_off_from_zookeeper(several: System, is_active: bool) -> None:
    active, standby = active_first(several)
    victim, last = active if is_active else standby, several.segment_store_addresses[2]
    with several.cut(victim, "zookeeper"):
        within(f"{victim} says so", lambda: says_it_is_cut_off(several, victim))
        command(several, "drain", last)
        took = within("drained", lambda: container_map(several).get(last) is None)
        assert took < (30.0 if is_active else RECOVERY_S)
    within("it is back", lambda: not says_it_is_cut_off(several, victim))
    command(several, "undrain", last)
    within("undrained", lambda: sizes(several) == [1, 1, 2])


@pytest.mark.parametrize("away_s", effort([0.0, AWAY_S], [0.0]))
async def test_zookeeper_is_back_after_longer_than_a_session(several: System, away_s: float) -> None:
    """Stores give their containers up meanwhile, and take them again."""
    eventually(lambda: sizes(several) == [1, 1, 2], DEADLINE_S, "all stores have containers")
    with Traffic(several) as traffic:
        with several.killed("zookeeper"):
            away = time.monotonic()
            eventually(lambda: time.monotonic() - away >= away_s, DEADLINE_S, "it is away for so long")
        back = time.monotonic()
        traffic.goes_on()
        print(f"written after {time.monotonic() - back:.1f} s")
        within("as many containers as before", lambda: sizes(several) == [1, 1, 2], back)
        await traffic.ends_exactly_once()
