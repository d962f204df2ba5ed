"""A fixed part of `make chaos`: what happens to three brokers, one or two at a time, and to networks, under load.

Nothing acknowledged is lost, all is answered again, every stream is linearizable, and `sluice verify` finds nothing.
What other brokers lead goes on meanwhile. How long calls were late is printed (`pytest -s`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.effort import by_hand
from support.faults import Event, both
from support.load import Load

from harness import System, eventually
from harness.routes import LINKS
from sluice_local import kafka

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800), by_hand("three brokers, fault after fault")]

READS = {"getCurrentSegments", "getEpochSegments", "getStreamConfiguration", "isSegmentValid", "checkStreamExists"}
CUT = "stream-workflows->segment-store cut"
OTHERS_LEAD_S = 120.0
FAULTS = (
    ("kafka->txn-manager unheard", 4.0),
    ("cluster-manager->zookeeper lossy", 1.0),
    ("group coordinator's disk full", 1.0),
    ("two of three brokers killed", 1.0),
)


async def test_a_cluster_survives_whatever_happens_to_its_brokers_and_loses_nothing(runs_folder: Path) -> None:
    folder = runs_folder / "chaos"
    with System(folder, kafka_brokers=3, api_gateways=2, segment_stores=1, links=LINKS) as system:
        async with Load(system, folder, seed=1) as load:
            named = load.faults.named
            await a_frozen_broker_keeps_no_read_of_what_others_lead(load, named(CUT))
            cuts = dict.fromkeys(event.name for event in load.faults.single if event.name.endswith(" cut"))
            for name, lasts_s in (*((cut, 20.0) for cut in cuts), *FAULTS):
                print(f"{name}: {await load.survives(named(name), lasts_s)}")
            found = await load.ends()
    assert found.is_linearizable, found.text
    print(found.text)


async def a_frozen_broker_keeps_no_read_of_what_others_lead(load: Load, meanwhile: Event) -> None:
    """As a machine that crashes: no connection breaks. Others lead in the end what it led."""
    brokers, before = load.faults.brokers, len(load.answers.ended)
    follower = brokers.follower_of_quorum()
    led = brokers.led_by(follower)

    @contextmanager
    def fault() -> Iterator[None]:
        with load.faults.system.frozen(follower):
            yield
            eventually(lambda: not led & brokers.led_by(follower), OTHERS_LEAD_S, "others lead what it led")

    frozen = both(Event("a broker frozen", kafka.NAME, fault), meanwhile)
    print(f"{frozen.name}: {await load.survives(frozen, 8.0)}")
    reads = [answer for answer in load.answers.ended[before:] if answer.rpc in READS]
    assert led and {answer.failure for answer in reads if not answer.partitions & led} == {""}
