"""A fixed part of `make chaos`: what happens to three brokers, one or two at a time, and to networks, under load.

Nothing acknowledged is lost, all is answered again, every stream is linearizable, and `sluice verify` finds nothing.
What other brokers lead goes on meanwhile. How long calls were late is printed (`pytest -s`).
"""

from pathlib import Path

import pytest
from support.effort import effort
from support.load import Load

from harness import System
from harness.routes import LINKS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

READS = {"getCurrentSegments", "getEpochSegments", "getStreamConfiguration", "isSegmentValid", "checkStreamExists"}
FAULTS = (
    ("group coordinator's disk full", 1.0),
    ("two of three brokers killed", 1.0),
)
NETWORKS = (
    ("api-gateway->kafka cut", 4.0),
    ("stream-workflows->segment-store cut", 8.0),
    ("kafka->txn-manager unheard", 4.0),
    ("cluster-manager->zookeeper lossy", 1.0),
)


async def test_a_cluster_survives_whatever_happens_to_its_brokers_and_loses_nothing(runs_folder: Path) -> None:
    folder = runs_folder / "chaos"
    with System(folder, kafka_brokers=3, api_gateways=2, segment_stores=1, links=LINKS) as system:
        async with Load(system, folder, seed=1) as load:
            await a_frozen_broker_keeps_no_read_of_what_others_lead(load)
            cuts = [(event.name, 20.0) for event in load.faults.single if event.name.endswith(" cut")]
            for name, lasts_s in (*effort(tuple(dict.fromkeys(cuts)), NETWORKS), *FAULTS):
                print(f"{name}: {await load.survives(load.faults.named(name), lasts_s)}")
            found = await load.ends()
    assert found.is_linearizable, found.text
    print(found.text)


async def a_frozen_broker_keeps_no_read_of_what_others_lead(load: Load) -> None:
    """As a machine that crashes: no connection breaks."""
    brokers, before = load.faults.brokers, len(load.answers.ended)
    frozen = load.faults.named("quorum's follower frozen")
    led = brokers.led_by(brokers.follower_of_quorum())
    effect = await load.survives(frozen, 12.0)
    print(f"{frozen.name}: {effect}")
    assert effect.from_begin_s, "it was not missed"
    reads = [answer for answer in load.answers.ended[before:] if answer.rpc in READS]
    assert {answer.failure for answer in reads if not answer.partitions & led} == {""}
