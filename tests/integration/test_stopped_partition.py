"""A journal record that cannot be applied: its partition stops, says which record it is, and the others go on."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from support.controller import Controller, controller, unique
from support.health import readiness
from support.kafka import produce

from harness import System, eventually
from sluice.controller_api import controller_pb2 as pb
from sluice.engine.partition import partition_of
from sluice.kafka.topics import JOURNAL

pytestmark = pytest.mark.integration

SERVICES = ("api-gateway-0", "stream-workflows-0", "cluster-manager-0", "txn-manager-0")


def scope_info(name: str) -> pb.ScopeInfo:
    return pb.ScopeInfo(scope=name)


@pytest.fixture
def private(runs_folder: Any) -> Iterator[System]:
    with System(runs_folder / "journal", segment_stores=1) as system:
        yield system


def test_a_record_that_cannot_be_applied_stops_its_partition_alone_and_says_so(private: System) -> None:
    with controller(private.grpc_address) as gateway:
        names = names_by_partition(private)

        def partition(key: str) -> int:
            return partition_of(key, private.settings.partitions)

        cluster = partition_of("cluster", private.settings.partitions)
        bare, broken, sound = [p for p in sorted(names) if p != cluster][:3]
        for each in (bare, broken, sound):
            assert gateway.create_scope(names[each]) == "SUCCESS"
        inapplicable = msgspec.json.encode(
            {
                "id": "x",
                "at": 1,
                "by": "test/1",
                "entries": [
                    {"events": [{"type": "StreamCreated", "scope": names[broken], "stream": "never-begun"}]},
                ],
            }
        )
        (first,) = produce(private.kafka_bootstrap, JOURNAL.name, "x", b"hello", partition=bare)
        (second,) = produce(private.kafka_bootstrap, JOURNAL.name, "x", inapplicable, partition=broken)
        said = [f"partition {m.partition()}: record at offset {m.offset()}" for m in (first, second)]

        def goes_on(gateway: Controller) -> None:
            for name in SERVICES:
                assert told(private, name, said) == 503
            for each in (bare, broken):
                exists = gateway.status("checkScopeExists", scope_info(names[each]))
                assert exists == "UNAVAILABLE", f"partition {each} serves reads"
            assert gateway.call("checkScopeExists", scope_info(names[sound])).exists
            assert gateway.create_scope(names_by_partition(private)[sound]) == "SUCCESS"
            # What is in a scope may stand in any partition, and what is created depends on that of its scope.
            assert gateway.status("deleteScope", scope_info(names[sound])) == "UNAVAILABLE"
            stream = next(s for s in map("st{}".format, range(9999)) if partition(f"{names[broken]}/{s}") == sound)
            assert gateway.create_stream(names[broken], stream) == "UNAVAILABLE"

        goes_on(gateway)
        for name in SERVICES:
            private.kill(name)
            private.start(name, wait=False)
        goes_on(gateway)


def names_by_partition(system: System) -> dict[int, str]:
    """A name for a scope in every partition."""
    names: dict[int, str] = {}
    while len(names) < system.settings.partitions:
        name = unique("sc")
        names.setdefault(partition_of(name, system.settings.partitions), name)
    return names


def told(system: System, name: str, said: list[str]) -> int:
    """The status of a service's readiness once its text holds all of these."""

    def status() -> int:
        status, text = readiness(system, name)
        return status if all(part in text for part in said) else 0

    return eventually(status, 90, f"{name} says {said}")
