"""Kafka as a cluster of three brokers: one goes after the other; what the others lead goes on, and nothing is lost."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from support.brokers import have_brokers
from support.controller import Controller, controller, info, outcome, unique
from support.txn_traffic import TxnTraffic

from harness import System, eventually
from sluice.engine.partition import partition_of
from sluice.kafka.topics import JOURNAL

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

DEADLINE_S = 60.0
WRITERS = 2


class Cluster:
    """A whole system on three brokers; `brokers` are those that may be killed, and their node ids."""

    def __init__(self, home: Path) -> None:
        self.system = System(home, segment_stores=1)
        self.brokers = have_brokers(self.system)

    def led_by(self, node: int) -> set[int]:
        """The partitions of the journal whose leader that broker is, as the first one knows."""
        admin = AdminClient({"bootstrap.servers": self.system.kafka_bootstrap, "log_level": 0})
        partitions = admin.list_topics(JOURNAL.name, timeout=DEADLINE_S).topics[JOURNAL.name].partitions
        return {partition for partition, found in partitions.items() if found.leader == node}

    def stream_in(self, gateway: Controller, scope: str, partitions: set[int]) -> str:
        """A new stream whose records stand in one of these partitions."""
        count = self.system.settings.partitions
        names = (f"s{number}" for number in range(1_000))
        name = next(name for name in names if partition_of(f"{scope}/{name}", count) in partitions)
        assert gateway.create_stream(scope, name) == "SUCCESS"
        return name


class Answers:
    """How calls about streams end that go on side by side: one of each stream, and the next one behind it."""

    def __init__(self, gateway: Controller, scope: str) -> None:
        self._gateway = gateway
        self._scope = scope
        self._calls: dict[str, Any] = {}
        self._found: defaultdict[str, list[str]] = defaultdict(list)

    def of(self, stream: str) -> list[str]:
        """So far, in order."""
        call = self._calls.get(stream)
        if call is None or call.done():
            if call is not None:
                self._found[stream].append(outcome(call))
            self._calls[stream] = self._gateway.begin("getCurrentSegments", info(self._scope, stream))
        return self._found[stream]


@pytest.fixture
def cluster(runs_folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(runs_folder / "kafka-cluster")
    with cluster.system:
        yield cluster


async def test_a_broker_that_goes_takes_its_own_partitions_along_and_no_others(cluster: Cluster) -> None:
    system, ((second, node), (third, _)) = cluster.system, cluster.brokers.items()
    with (
        controller(system.grpc_address, DEADLINE_S) as gateway,
        TxnTraffic(gateway, system.grpc_address, WRITERS) as traffic,
    ):
        led = cluster.led_by(node)
        scope = unique("brokers")
        assert gateway.create_scope(scope) == "SUCCESS"
        there = cluster.stream_in(gateway, scope, set(range(system.settings.partitions)) - led)
        away = cluster.stream_in(gateway, scope, led)
        traffic.goes_on()

        # As a machine that crashes: no connection breaks.
        system.freeze(second)
        answers = Answers(gateway, scope)
        eventually(lambda: answers.of(there) and answers.of(away)[-1:] == ["OK"], DEADLINE_S, "it has a new leader")
        assert set(answers.of(there)) == {"OK"}
        assert set(answers.of(away)) == {"UNAVAILABLE", "OK"}
        traffic.goes_on()

        system.thaw(second)
        system.kill(third)
        traffic.goes_on()

        system.start(third)
        system.stop(second)
        traffic.goes_on()
        system.start(second)
        eventually(lambda: all(map(system.is_ready, system.names)), DEADLINE_S, "all are ready")
        await traffic.ends_exactly_once()
