"""Kafka as a cluster of three brokers with a quorum of controllers: whatever happens to one or two, nothing is lost.

What the others lead goes on, and all is answered again within a time.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from support.answer_times import AnswerTimes
from support.brokers import Brokers
from support.controller import Controller, controller, info, unique
from support.txn_traffic import TxnTraffic

from harness import System, eventually
from sluice.engine.partition import partition_of
from sluice.kafka.topics import REQUESTS_STREAMS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

DEADLINE_S = 60.0
WRITERS = 2


class Creations:
    """Streams that are created one behind the other; a creation of which the outcome is open is repeated."""

    def __init__(self, gateway: Controller) -> None:
        self._gateway = gateway
        self.scope = unique("created")
        self.acknowledged: list[str] = []
        assert gateway.create_scope(self.scope) == "SUCCESS"

    def go_on(self) -> str:
        name = f"s{len(self.acknowledged)}"
        outcome = self._gateway.create_stream(self.scope, name)
        if outcome not in {"SUCCESS", "STREAM_EXISTS"}:
            return outcome
        self.acknowledged.append(name)
        return "SUCCESS"


class Load:
    """Reads of a stream in each partition of the journal, creations, and transactions."""

    def __init__(self, system: System, gateway: Controller, traffic: TxnTraffic) -> None:
        self.system, self.brokers = system, Brokers(system)
        self._traffic = traffic
        self._streams = self._one_in_each_partition(gateway)
        self.creations = Creations(gateway)
        reads = {s: partial(gateway.status, "getCurrentSegments", info(self._scope, s)) for s in self._streams.values()}
        self.answers = AnswerTimes({**reads, "creation": self.creations.go_on})

    def _one_in_each_partition(self, gateway: Controller) -> dict[int, str]:
        self._scope = unique("read")
        assert gateway.create_scope(self._scope) == "SUCCESS"
        count, streams = self.system.settings.partitions, dict[int, str]()
        for name in (f"s{number}" for number in range(1_000)):
            if (partition := partition_of(f"{self._scope}/{name}", count)) not in streams:
                assert gateway.create_stream(self._scope, name) == "SUCCESS"
                streams[partition] = name
        assert len(streams) == count
        return streams

    def survives(self, what: str, event: Callable[[], None], led: set[int] | None = None) -> set[str]:
        """All is answered again, and reads of partitions other than `led` fail at no time. Outcomes of `led`.

        The outcomes of all if none are given.
        """
        since = time.monotonic()
        event()
        effect = self.answers.effect_of(since, DEADLINE_S)
        self._traffic.goes_on()
        print(f"{what}: {effect}")
        outcomes = {partition: self.answers.outcomes(stream, since) for partition, stream in self._streams.items()}
        if led is not None:
            assert set().union(*(found for p, found in outcomes.items() if p not in led)) == {"OK"}, (what, led)
        return set().union(*(found for p, found in outcomes.items() if led is None or p in led))

    def some_fail(self, since: float) -> bool:
        return any("UNAVAILABLE" in self.answers.outcomes(stream, since) for stream in self._streams.values())

    def is_whole(self) -> None:
        """Return when all brokers have everything again, and each leads its part of it."""
        self.brokers.have_all()
        # A leader that is new answers once all that are in sync have learned of it.
        self.survives("leaders moved", self.brokers.move_leaders)


@pytest.fixture
def cluster(runs_folder: Path) -> Iterator[System]:
    with System(runs_folder / "kafka-cluster", kafka_brokers=3, segment_stores=1) as system:
        yield system


async def test_a_cluster_survives_whatever_happens_to_its_brokers_and_loses_nothing(cluster: System) -> None:
    with (
        controller(cluster.grpc_address, DEADLINE_S) as gateway,
        TxnTraffic(gateway, cluster.grpc_address, WRITERS) as traffic,
    ):
        load = Load(cluster, gateway, traffic)
        with load.answers:
            one_goes_after_the_other(load)
            two_go_at_once(load)
            eventually(lambda: all(map(cluster.is_ready, cluster.names)), DEADLINE_S, "all are ready")
        await traffic.ends_exactly_once()
        created = load.creations
        assert {gateway.status("getCurrentSegments", info(created.scope, s)) for s in created.acknowledged} == {"OK"}


def one_goes_after_the_other(load: Load) -> None:
    system, brokers = load.system, load.brokers
    frozen = next(name for name in brokers.names if name != brokers.leader_of_quorum())
    led = brokers.led_by(frozen)
    # As a machine that crashes: no connection breaks.
    assert load.survives("frozen", lambda: system.freeze(frozen), led) == {"UNAVAILABLE", "OK"}
    load.survives("thawed", lambda: system.thaw(frozen))
    load.is_whole()

    killed = brokers.leader_of_quorum()
    load.survives("leader of the quorum killed", lambda: system.kill(killed), brokers.led_by(killed))
    system.start(killed)
    load.is_whole()

    full = brokers.coordinator_of(REQUESTS_STREAMS.group)
    load.survives("coordinator's disk full", lambda: brokers.fill_disk(full), brokers.led_by(full))
    assert system.wait_ended(full, DEADLINE_S)
    system.start(full)
    load.is_whole()

    stopped = next(name for name in brokers.names if name != full)
    load.survives("stopped", lambda: system.stop(stopped), brokers.led_by(stopped))
    system.start(stopped)
    load.is_whole()


def two_go_at_once(load: Load) -> None:
    system, brokers = load.system, load.brokers
    _, *two = brokers.names
    since = time.monotonic()
    for name in two:
        system.kill(name)
    eventually(lambda: load.some_fail(since), DEADLINE_S, "partitions are without a leader")

    def come_back() -> None:
        for name in two:
            system.start(name, wait=False)

    load.survives("two of three back", come_back)
    brokers.have_all()
