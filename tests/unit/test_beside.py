"""Services in the process of another one, by the names of their packages."""

import asyncio

import pytest
from support.wait import SOON_S, eventually_async

from sluice.domain.model import JournalRecord, encode_record
from sluice.engine.partition import partition_keys
from sluice.engine.record import HELD
from sluice.kafka.topics import JOURNAL
from sluice.memory.broker import MemoryBroker
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.runtime import Runtime, Service, lack_of, run_service
from sluice.settings import ServiceSettings


async def start(_runtime: Runtime) -> None:
    raise AssertionError("nothing may start")


@pytest.mark.parametrize("beside", ["no_such", " cluster_manager , no_such"])
def test_a_package_that_is_not_there_is_a_wrong_setting(capsys: pytest.CaptureFixture[str], beside: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        run_service(Service("host", ServiceSettings(instance="host-0", beside=beside), start))
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "setting SLUICE_BESIDE: no service is installed here as package no_such"


def mark(broker: MemoryBroker, id: str, whole_at: int) -> None:
    for partition, key in enumerate(partition_keys(broker.partitions)):
        record = JournalRecord(id=f"{id}-{partition}", at=1, by="test", whole_at=whole_at)
        broker.land_in(JOURNAL.name, partition, key, encode_record(record))


async def test_a_service_beside_a_gateway_that_holds_calls_does_not_keep_it_from_being_ready() -> None:
    broker = MemoryBroker()
    mark(broker, "held", HELD)
    beside = Runtime("txn-manager", ServiceSettings(instance="a"), MemoryConnections(MemoryGroups(broker)))
    beside.checks["started"] = lambda: "starting"
    assert lack_of(beside) == "started: starting"
    beside.journal.start()
    async with beside.stack:
        beside.stack.push_async_callback(beside.journal.stop)
        async with asyncio.timeout(SOON_S):
            await beside.journal.caught_up.wait()
        assert lack_of(beside) is None
        mark(broker, "released", 1)
        await eventually_async(lambda: lack_of(beside) == "started: starting", SOON_S, "it is to start")
