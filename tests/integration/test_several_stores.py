"""Several segment stores whose containers move, cluster-managers of which one is cut off from ZooKeeper, and all are.

How long it takes until all is as it should be is measured and printed (`pytest -s`).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from integration.test_faults import ACTIVE, container_map, zookeeper
from support.client_process import ClientProcess, our_client
from support.controller import Controller, controller, unique
from support.effort import effort
from support.event_traffic import EventTraffic, got_beyond
from support.health import metric, readiness
from support.kafka import events, fold
from support.writer import WriterProcess

from harness import System, eventually
from sluice.domain.cluster.events import ContainersAssigned
from sluice.domain.segment import segment_name
from sluice.pravega.container_map import HOSTS_NODE
from sluice.pravega.routing import container_of

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

DEADLINE_S = 120.0
RECOVERY_S = 10.0
INTERVAL_S = 5.0
AWAY_S = 15.0
"""Longer than a session with ZooKeeper, 10 s."""
MANAGERS = ("cluster-manager-0", "cluster-manager-1")


@pytest.fixture(scope="module")
def several(runs_folder: Path) -> Iterator[System]:
    links = [(user, "zookeeper") for user in ("bookie", "segment-store", *MANAGERS)]
    system = System(runs_folder / "several-stores", segment_stores=3, cluster_managers=2, links=links)
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


# --- segment stores


async def test_containers_move_as_an_operator_says_and_by_load(several: System, gateway: Controller) -> None:
    last = several.segment_store_addresses[2]
    eventually(lambda: sizes(several) == [1, 1, 2], DEADLINE_S, "the containers are spread over three stores")
    with EventTraffic(gateway, several.grpc_address) as traffic:
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

    def found() -> list[str]:
        """One that stood still calls itself active for a moment more, though another one has taken over."""
        active = [name for name in MANAGERS if metric(system, name, ACTIVE) == 1]
        return active if len(active) == 1 else []

    (one,) = eventually(found, DEADLINE_S, "one is active")
    return one, next(name for name in MANAGERS if name != one)


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


# --- ZooKeeper


def registered(system: System) -> set[str]:
    """The segment stores that have a session with ZooKeeper."""
    with zookeeper(system) as client:
        return set(client.get_children(f"/pravega/{system.settings.cluster_name}/{HOSTS_NODE}"))


@contextmanager
def killed(system: System) -> Iterator[None]:
    """The process is away, inside for longer than a session already; sessions go on when it is back."""
    with system.killed("zookeeper"):
        began = time.monotonic()
        eventually(lambda: time.monotonic() - began >= AWAY_S, DEADLINE_S, "it is away for so long")
        yield


@contextmanager
def cut_off(system: System) -> Iterator[None]:
    """All who use it are; inside their sessions have ended."""
    with ExitStack() as stack:
        for user in ("bookie", "segment-store", "cluster-manager"):
            stack.enter_context(system.cut(user, "zookeeper"))
        within("no store is registered", lambda: not registered(system))
        yield


@pytest.mark.parametrize("fault", effort([killed, cut_off], [cut_off]))
def test_clients_notice_nothing_of_zookeeper_away_for_longer_than_a_session(
    several: System, gateway: Controller, fault: Callable[[System], AbstractContextManager[None]]
) -> None:
    eventually(lambda: sizes(several) == [1, 1, 2], DEADLINE_S, "all stores have containers")
    stores, placed = registered(several), container_map(several)
    with ClientProcess(gateway, "ours", our_client(several.grpc_address)) as client:
        client.goes_on()
        with fault(several):
            client.goes_on()
        back = time.monotonic()
        client.goes_on()
        within("all stores are registered", lambda: registered(several) == stores, back)
        for manager in MANAGERS:
            within(f"{manager} is ready", partial(several.is_ready, manager), back)
        within("all stores have containers", lambda: sizes(several) == [1, 1, 2], back)
        print(f"{client.progress()}; longest silences, in s: {client.silences()}; moved: {moved(several, placed)}")
        last = several.segment_store_addresses[2]
        command(several, "drain", last)
        within("containers move", lambda: container_map(several).get(last) is None)
        command(several, "undrain", last)
        within("they move back", lambda: sizes(several) == [1, 1, 2])
        client.goes_on()
        client.ends_exactly_once()
    print(f"{client.progress()}; longest silences, in s: {client.silences()}")


def moved(system: System, before: dict[str, set[int]]) -> int:
    """How many containers are on another store than before."""
    return sum(len(held - before.get(store, set())) for store, held in container_map(system).items())
