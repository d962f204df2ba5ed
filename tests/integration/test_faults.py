"""Processes die, freeze and go away: nothing that was acknowledged is lost, and all go on by themselves.

Take-over times are measured and printed (`pytest -s`).
"""

import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import pytest
from kazoo.client import KazooClient
from support.controller import Controller, config, controller, outcome, unique
from support.event_traffic import EventTraffic
from support.health import metric
from support.instances import have_instances
from support.kafka import Groups, events, fold, produce, read
from support.pace import Pace
from support.sights import look

from harness import System, eventually
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.model import decode_record
from sluice.domain.stream.commands import CreateStream
from sluice.domain.workflow import WorkflowStepFailed
from sluice.engine.fold import Outcome
from sluice.engine.partition import partition_of
from sluice.kafka.topics import JOURNAL, REQUESTS_STREAMS
from sluice.pravega.container_map import CONTAINER_MAP_NODE, decode_container_map
from txn_manager.statistics.supervisor import STOP_S

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SERVICES = ("api-gateway-0", "stream-workflows-0", "cluster-manager-0", "txn-manager-0")
VICTIM, SURVIVOR = "stream-workflows-0", "stream-workflows-1"
SETTLED_S = 120.0
TAKE_OVER_S = 3.0
RECOVERY_S = 15.0
ENDS_S = 5.0
FREEZES = 5
"""How often an instance is frozen until that is in the middle of its work: it may have ended all of it before."""
VOID = "sluice_journal_void_entries_total"
ACTIVE = "sluice_cluster_manager_active"


@pytest.fixture(scope="module")
def single(disturbed: System) -> System:
    """One of each service and two segment stores: whatever dies is missed."""
    return have_instances(disturbed, 1, SETTLED_S)


@pytest.fixture(scope="module")
def double(disturbed: System) -> System:
    """Two of each service."""
    return have_instances(disturbed, 2, SETTLED_S)


@pytest.fixture
def gateway(single: System) -> Iterator[Controller]:
    with controller(single.grpc_address, SETTLED_S) as client:
        yield client


@pytest.fixture
def gateways(double: System) -> Iterator[list[Controller]]:
    with ExitStack() as stack:
        yield [stack.enter_context(controller(address)) for address in double.grpc_addresses]


@pytest.fixture
def traffic(single: System, gateway: Controller) -> Iterator[EventTraffic]:
    with EventTraffic(gateway, single.grpc_address) as traffic:
        traffic.goes_on()
        yield traffic


def live_a_life(gateway: Controller, scope: str, name: str) -> None:
    """Another stream is created, looked at, sealed and deleted."""
    assert gateway.create_stream(scope, name, 3) == "SUCCESS"
    assert len(gateway.segments(scope, name)) == 3
    assert gateway.seal(scope, name) == "SUCCESS"
    assert gateway.segments(scope, name) == []
    assert gateway.delete(scope, name) == "SUCCESS"
    assert gateway.streams(scope) == []


# --- one of each


async def test_each_service_is_killed_while_events_are_written(
    single: System, gateway: Controller, traffic: EventTraffic
) -> None:
    scope = unique("others")
    assert gateway.create_scope(scope) == "SUCCESS"
    for name in SERVICES:
        single.kill(name)
        traffic.goes_on()
        began = time.monotonic()
        single.start(name, deadline_s=SETTLED_S)
        ready = time.monotonic()
        live_a_life(gateway, scope, "st")
        print(f"\n{name}: ready after {ready - began:.2f} s, a stream's life took {time.monotonic() - ready:.2f} s")
        traffic.goes_on()
    await traffic.ends_exactly_once()


async def test_the_containers_of_a_dead_segment_store_run_on_the_other(
    single: System, gateway: Controller, traffic: EventTraffic
) -> None:
    """The client `pravega` knocks at the dead store's address until it answers: only new writers go on meanwhile."""
    first, second = single.segment_store_addresses
    eventually(lambda: halves(single) == {first, second}, SETTLED_S, "each store has two containers")
    moved = moves(single)
    began = time.monotonic()
    single.kill("segment-store-1")
    eventually(lambda: stores_in_use(gateway) == {first}, SETTLED_S, "all names are on the store that lives")
    print(f"\nroutes moved after {time.monotonic() - began:.2f} s")
    eventually(lambda: container_map(single) == {first: {0, 1, 2, 3}}, SETTLED_S, "so says ZooKeeper")
    assert moves(single) - moved == 2
    scope = unique("one-store")
    assert gateway.create_scope(scope) == "SUCCESS"
    for number in range(8):
        live_a_life(gateway, scope, f"st{number}")
    print(f"all containers worked after {time.monotonic() - began:.2f} s")
    traffic.begin("c", 2000).finish(SETTLED_S)
    print(f"2000 more events were written after {time.monotonic() - began:.2f} s")
    began = time.monotonic()
    single.start("segment-store-1", deadline_s=SETTLED_S)
    eventually(lambda: halves(single) == {first, second}, SETTLED_S, "each store has two containers again")
    assert moves(single) - moved == 4
    eventually(lambda: stores_in_use(gateway) == {first, second}, SETTLED_S, "names are on both stores")
    print(f"containers are back after {time.monotonic() - began:.2f} s")
    for number in range(8):
        live_a_life(gateway, scope, f"st{number}")
    traffic.goes_on()
    await traffic.ends_exactly_once()


def test_a_silent_container_is_red_in_every_place_and_names_its_store(single: System, gateway: Controller) -> None:
    """A gateway stays in service: what it can say, and all that needs no segment store, is had from it."""
    scope = unique("silent")
    assert gateway.create_scope(scope) == "SUCCESS"
    assert gateway.create_stream(scope, "st", segments=16) == "SUCCESS"
    stores = [name for name in single.names if name.startswith("segment-store-")]

    def is_well() -> bool:
        sight = look(single, f"{scope}/st")
        return halves(single) == set(single.segment_store_addresses) and all(sight.signs().values())

    def is_red(lost: set[str]) -> bool:
        """With no store left none runs the containers, as soon as the sessions of the stores have ended."""
        sight = look(single, f"{scope}/st")
        named, words = sight.silent - {"none"}, ["not answer"] if sight.silent <= lost else ["no segment store"]
        said = (sight.overview["sentence"], str(sight.readiness), str(sight.health), *sight.lines.values())
        return (
            bool(sight.silent)
            and sight.silent <= (lost if lost < set(single.segment_store_addresses) else {*lost, "none"})
            and sight.is_served
            and not any(sight.signs().values())
            and set(sight.stream["unreachable"]["stores"]) == named
            and all(word in text for text in said for word in (*named, *words))
        )

    for victims in (stores[1:], stores):
        eventually(is_well, SETTLED_S, "all is well")
        began = time.monotonic()
        for victim in victims:
            single.kill(victim)
        lost = {single.address(victim) for victim in victims}
        eventually(partial(is_red, lost), SETTLED_S, "it is red wherever one looks")
        print(f"\n{len(victims)} of {len(stores)} stores: red after {time.monotonic() - began:.2f} s")
        for victim in victims:
            single.start(victim, deadline_s=SETTLED_S)
    eventually(is_well, SETTLED_S, "all is well again")


def stores_in_use(gateway: Controller) -> set[str]:
    """The stores that a hundred names are on."""
    return {gateway.store_of("sc", f"st{number}") for number in range(100)}


@contextmanager
def zookeeper(system: System) -> Iterator[KazooClient]:
    """A client of the system's ZooKeeper."""
    client = KazooClient(system.zookeeper, timeout=5)
    client.start(timeout=60)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def container_map(system: System) -> dict[str, set[int]]:
    """The containers of every store that has any, as ZooKeeper says."""
    with zookeeper(system) as client:
        data, _ = client.get(f"/pravega/{system.settings.cluster_name}/{CONTAINER_MAP_NODE}")
    return {f"{host.address}:{host.port}": set(ids) for host, ids in decode_container_map(data).items() if ids}


def halves(system: System) -> set[str]:
    """The stores that have two containers."""
    return {store for store, containers in container_map(system).items() if len(containers) == 2}


def moves(system: System) -> int:
    return int(metric(system, "cluster-manager-0", "sluice_container_moves_total"))


async def test_kafka_dies_and_comes_back(single: System, gateway: Controller, traffic: EventTraffic) -> None:
    scope, other = unique("kafka"), unique("kafka-too")
    assert gateway.create_scope(scope) == "SUCCESS"
    assert gateway.create_stream(scope, "before", 2) == "SUCCESS"
    pids = {name: single.pid(name) for name in SERVICES}
    single.kill("kafka")
    waiting = gateway.begin("createScope", pb.ScopeInfo(scope=other), SETTLED_S)
    reading = gateway.begin("getCurrentSegments", pb.StreamInfo(scope=scope, stream="before"), SETTLED_S)
    assert outcome(reading) == "UNAVAILABLE"
    assert gateway.store_of(scope, "before") in single.segment_store_addresses
    assert len(gateway.call("getControllerServerList", pb.ServerRequest()).nodeURI) == 1
    traffic.goes_on()
    assert outcome(waiting) == "UNAVAILABLE"
    single.start("kafka", deadline_s=SETTLED_S)
    began = time.monotonic()
    with Pace(partial(gateway.store_of, scope, "before")) as pace:
        done = ("SUCCESS", "SCOPE_EXISTS")
        eventually(lambda: gateway.create_scope(other) in done, SETTLED_S, "requests are answered")
        eventually(lambda: len(gateway.segments(scope, "before")) == 2, SETTLED_S, "reads are answered")
        recovered = time.monotonic() - began
    print(f"\nKafka was back {recovered:.2f} s before everything worked")
    assert recovered < RECOVERY_S + 2 * pace.longest_s
    live_a_life(gateway, other, "st")
    for name in SERVICES:
        single.wait_ready(name, SETTLED_S)
    assert {name: single.pid(name) for name in SERVICES} == pids
    assert all(single.is_running(name) for name in SERVICES)
    await traffic.ends_exactly_once()


async def test_zookeeper_dies_and_comes_back(single: System, gateway: Controller, traffic: EventTraffic) -> None:
    """Only a change of who runs the containers needs it. `test_several_stores.py` has it away for long."""
    scope = unique("zookeeper")
    assert gateway.create_scope(scope) == "SUCCESS"
    before = {number: gateway.store_of("sc", f"st{number}") for number in range(100)}
    pids = {name: single.pid(name) for name in SERVICES}
    single.kill("zookeeper")
    live_a_life(gateway, scope, "meanwhile")
    traffic.goes_on()
    assert {number: gateway.store_of("sc", f"st{number}") for number in range(100)} == before
    eventually(lambda: not single.is_ready("cluster-manager-0"), SETTLED_S, "the cluster manager says so")
    single.start("zookeeper", deadline_s=SETTLED_S)
    single.wait_ready("cluster-manager-0", SETTLED_S)
    traffic.goes_on()
    live_a_life(gateway, scope, "afterwards")
    assert {name: single.pid(name) for name in SERVICES} == pids
    assert all(single.is_running(name) for name in SERVICES)
    await traffic.ends_exactly_once()


# --- two of each


def owned(system: System) -> dict[str, set[int]]:
    """The partitions of every stream-workflows, once all of them are given out to all instances that run."""
    owners = Groups(system.kafka_bootstrap).owners(REQUESTS_STREAMS.group)
    running = {name for name in system.names if name.startswith("stream-workflows") and system.is_running(name)}
    given = sorted(partition for partitions in owners.values() for partition in partitions)
    settled = given == list(range(system.settings.partitions)) and owners.keys() == running
    return owners if settled and all(owners.values()) else {}


def names_of(system: System, instance: str) -> tuple[str, str]:
    """Names of a scope and a stream in it that both belong to partitions of an instance."""
    partitions = eventually(lambda: owned(system), SETTLED_S, "the partitions are given out")[instance]
    count = system.settings.partitions
    names = (unique("sc") for _ in iter(int, 1))
    scope = next(name for name in names if partition_of(name, count) in partitions)
    streams = (f"st{number}" for number in range(10_000))
    return scope, next(name for name in streams if partition_of(f"{scope}/{name}", count) in partitions)


@contextmanager
def pace_beside(system: System, gateway: Controller) -> Iterator[Pace]:
    """How long requests take meanwhile that need no new owner."""
    scope, _ = names_of(system, SURVIVOR)
    assert gateway.create_scope(scope) == "SUCCESS"

    def step() -> None:
        assert gateway.create_scope(scope) == "SCOPE_EXISTS"

    with Pace(step) as pace:
        yield pace


@pytest.mark.parametrize(
    "point",
    [
        f"{CreateStream.__name__}/before-decision",
        "create-stream/after-create-segments",
        "create-stream/recorded-create-segments",
    ],
)
def test_a_creation_outlives_the_instance_that_works_on_it(
    double: System, gateways: list[Controller], point: str
) -> None:
    if double.is_running(VICTIM):
        double.stop(VICTIM)
    double.start(VICTIM, environment={"SLUICE_CRASH_AT": point}, deadline_s=SETTLED_S)
    scope, stream = names_of(double, VICTIM)
    assert gateways[1].create_scope(scope) == "SUCCESS"
    with pace_beside(double, gateways[1]) as pace, ThreadPoolExecutor(2) as pool:
        began = time.monotonic()
        call = gateways[0].begin("createStream", config(scope, stream, 3))
        answered = pool.submit(lambda: (outcome(call), time.monotonic()))
        ended = pool.submit(lambda: (double.wait_ended(VICTIM, SETTLED_S), time.monotonic()))
        status, answered_at = answered.result()
        dead, dead_at = ended.result()
    assert dead and double.exit_code(VICTIM) == -9
    assert status == "SUCCESS"
    print(f"\n{point}: killed after {dead_at - began:.2f} s, answered {answered_at - dead_at:.2f} s after that")
    for gateway in gateways:
        ranges = [(number, round(low * 3), round(high * 3)) for number, low, high in gateway.segments(scope, stream)]
        assert ranges == [(0, 0, 1), (1, 1, 2), (2, 2, 3)]
        assert gateway.create_stream(scope, stream, 3) == "STREAM_EXISTS"
    assert set(owned_soon(double)) == {SURVIVOR}
    key, ours = f"stream:{scope}/{stream}", {f"scope:{scope}", f"stream:{scope}/{stream}"}

    def happened() -> dict[str, list[str]]:
        """Without the attempts that a store refused."""
        found = events(
            fold(double.kafka_bootstrap), lambda e: e.aggregate in ours and not isinstance(e, WorkflowStepFailed)
        )
        return {a: [type(e).__name__ for e in found if e.aggregate == a] for a in ours}

    assert happened()[key] == ["StreamCreationStarted", "StreamCreated"]
    assert happened()[f"scope:{scope}"] == ["ScopeCreated"]
    assert gateways[0].seal(scope, stream) == "SUCCESS"
    assert gateways[1].delete(scope, stream) == "SUCCESS"
    assert answered_at - dead_at < TAKE_OVER_S + 2 * pace.longest_s


def owned_soon(system: System) -> dict[str, set[int]]:
    return eventually(lambda: owned(system), SETTLED_S, "the partitions are given out")


@pytest.fixture
def complete(double: System) -> System:
    """With every instance running, and partitions given out to all of them."""
    for name in double.names:
        if not double.is_running(name):
            double.start(name, deadline_s=SETTLED_S)
    assert set(owned_soon(double)) == {VICTIM, SURVIVOR}
    return double


class AtWork(NamedTuple):
    """Calls on a scope of their own that create the streams that are `kept` and seal those that are `gone` later.

    No stream has a name that comes `late`.
    """

    scope: str
    kept: list[str]
    gone: list[str]
    late: list[str]
    calls: list[Any]


def frozen_at_work(double: System, gateways: list[Controller]) -> AtWork:
    """Freezes an instance as soon as the first of many calls is answered."""
    scope, _ = names_of(double, VICTIM)
    assert gateways[0].create_scope(scope) == "SUCCESS"
    partitions = owned_soon(double)[VICTIM]
    count = double.settings.partitions
    names = [n for n in (f"st{i}" for i in range(1000)) if partition_of(f"{scope}/{n}", count) in partitions][:60]
    kept, gone, late = names[:20], names[20:40], names[40:]
    assert [gateways[0].create_stream(scope, name) for name in gone] == ["SUCCESS"] * len(gone)
    calls = [gateways[i % 2].begin("createStream", config(scope, name, 4), SETTLED_S) for i, name in enumerate(kept)]
    calls += [gateways[0].begin("sealStream", pb.StreamInfo(scope=scope, stream=name), SETTLED_S) for name in gone]
    answered = threading.Event()
    for call in calls:
        call.add_done_callback(lambda _: answered.set())
    assert answered.wait(SETTLED_S), "no call is answered"
    double.freeze(VICTIM)
    return AtWork(scope, kept, gone, late, calls)


@pytest.mark.usefixtures("complete")
def test_an_instance_that_was_frozen_and_overtaken_changes_nothing(double: System, gateways: list[Controller]) -> None:
    for _ in range(FREEZES):
        scope, kept, gone, late, calls = frozen_at_work(double, gateways)
        if open_ones := sum(not call.done() for call in calls):
            break
        double.thaw(VICTIM)
    assert open_ones, "it was frozen when all was done"
    began = time.monotonic()
    assert [outcome(call) for call in calls] == ["SUCCESS"] * (len(kept) + len(gone))
    print(f"\nfrozen with {open_ones} calls open; the last one was answered after {time.monotonic() - began:.2f} s")
    assert [gateways[1].delete(scope, name) for name in gone] == ["SUCCESS"] * len(gone)
    assert [gateways[0].create_stream(scope, name, 2) for name in late] == ["SUCCESS"] * len(late)
    before = [state(gateway, scope) for gateway in gateways]
    assert before[0] == before[1]
    assert before[0].keys() == {*kept, *late}
    double.thaw(VICTIM)
    assert set(owned_soon(double)) == {VICTIM, SURVIVOR}
    double.wait_ready(VICTIM, SETTLED_S)
    assert [state(gateway, scope) for gateway in gateways] == before
    for name in (*kept, *late):
        assert gateways[0].seal(scope, name) == "SUCCESS"
        assert gateways[1].delete(scope, name) == "SUCCESS"
    assert gateways[0].streams(scope) == gateways[1].streams(scope) == []
    ours = {f"stream:{scope}/{name}" for name in (*kept, *gone, *late)}
    void = [
        f for f in fold(double.kafka_bootstrap) if f.outcome is not Outcome.COUNTED and ours & f.entry.expect.keys()
    ]
    print("void:", [(f.record.by, f.outcome.value, [type(e).__name__ for e in f.entry.events]) for f in void])
    assert [f.record.by for f in void if not f.record.by.startswith("stream-workflows/")] == []


@pytest.mark.usefixtures("complete")
def test_records_out_of_date_are_void_and_counted(double: System, gateways: list[Controller]) -> None:
    """All that an instance once appended is appended again, as by one that stood still for a long time."""
    scope, stream = names_of(double, VICTIM)
    assert gateways[0].create_scope(scope) == "SUCCESS"
    live_a_life(gateways[0], scope, stream)
    assert gateways[0].create_stream(scope, stream, 2) == "SUCCESS"
    before = [state(gateway, scope) for gateway in gateways]
    ours = {f"scope:{scope}", f"stream:{scope}/{stream}"}
    records = [(m, decode_record(m.value() or b"").entries) for m in read(double.kafka_bootstrap, JOURNAL.name)]
    # What came together shares a record, also with what is of other keys.
    old = [(m, entries) for m, entries in records if any(ours & entry.expect.keys() for entry in entries)]
    # The scope one, each of two creations, the seal and the deletion two.
    assert sum(bool(ours & entry.expect.keys()) for _, entries in old for entry in entries) >= 9
    followers = [name for name in double.names if name.startswith(("api-gateway", "stream-workflows"))]
    counted = {name: of_workflows(double, name) for name in followers}
    for message, _ in old:
        produce(double.kafka_bootstrap, JOURNAL.name, (message.key() or b"").decode(), message.value() or b"")
    assert [state(gateway, scope) for gateway in gateways] == before
    for name in followers:
        expected = counted[name] + sum(len(entries) for _, entries in old)
        eventually(partial(has_counted, double, name, expected), SETTLED_S, f"{name} counts {expected}")
    assert gateways[1].seal(scope, stream) == "SUCCESS"
    assert gateways[0].delete(scope, stream) == "SUCCESS"


def has_counted(system: System, name: str, number: float) -> bool:
    return of_workflows(system, name) == number


def of_workflows(system: System, name: str) -> float:
    """The void records that it has counted of stream-workflows: those of others are no part of this."""
    return metric(system, name, VOID, service="stream-workflows")


def state(gateway: Controller, scope: str) -> dict[str, Any]:
    """Every stream of a scope with its current segments; without the streams of watermarks."""
    return {name: gateway.segments(scope, name) for name in gateway.streams(scope) if not name.startswith("_")}


def test_services_end_on_a_signal_and_the_others_take_over(complete: System, gateways: list[Controller]) -> None:
    of_victim = [names_of(complete, VICTIM) for _ in SERVICES]
    assert {gateways[1].create_scope(scope) for scope, _ in of_victim} == {"SUCCESS"}
    for name, (scope, stream) in zip(SERVICES, of_victim, strict=True):
        with pace_beside(complete, gateways[1]) as pace:
            began = time.monotonic()
            complete.stop(name)
            ended = time.monotonic() - began
            assert complete.exit_code(name) == 0
            assert gateways[1].create_stream(scope, stream) == "SUCCESS"
            if name.startswith("cluster-manager"):
                eventually(lambda: metric(complete, "cluster-manager-1", ACTIVE) == 1, SETTLED_S, "taken over")
            taken_over = time.monotonic() - began - ended
        print(f"\n{name} ended after {ended:.2f} s, and was replaced {taken_over:.2f} s later")
        assert taken_over < TAKE_OVER_S + 2 * pace.longest_s
        # The Faust app beside it may take all the time that it is given.
        ends_s = ENDS_S + STOP_S if name.startswith("txn-manager") else ENDS_S
        assert ended < ends_s + 2 * pace.longest_s
        assert complaints(complete, name) == []


def complaints(system: System, name: str) -> list[str]:
    """The errors in what a service says from the signal to end; it must say that it has."""
    lines = system.log(name).read_text().splitlines()
    end = lines[max(i for i, line in enumerate(lines) if '"stopping"' in line) :]
    assert '"stopped"' in end[-1], end
    return [line for line in end if re.search(r'"level":"(error|critical)"|Traceback', line)]
