"""Pravega's own controller, Sluice in its place, and Pravega's own again: all that was said stays so, and goes on."""

import asyncio
import json
import time
from pathlib import Path
from uuid import uuid4

import pytest
from support.effort import by_hand

from bench.peer import PeerController
from bench.resting import Resting, Size
from bench.systems import SERVICES
from bench.take_over import original
from harness import System, eventually, eventually_async
from sluice.pravega.container_map import CONTROLLERS_NODE
from sluice_cli.session import open_zookeeper
from sluice_client import Transaction, TransactionStatus, open_client

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800), by_hand("the original's controller")]

SMALL = Size(streams=6, epochs=18, groups=2, transactions=0)
AN_HOUR = 25
"""Each time a stream is scaled twice, rolled and truncated: four epochs more."""
GOES_ON = 3
SOON_S = 120.0


def no_controller_is_left(system: System) -> None:
    with open_zookeeper(system.zookeeper, system.settings.cluster_name) as nodes:
        eventually(lambda: not nodes.children(CONTROLLERS_NODE), SOON_S, "no controller is registered")


async def has_ended(transaction: Transaction) -> bool:
    return await transaction.status() is TransactionStatus.ABORTED


async def test_the_original_goes_on_with_what_happened_while_sluice_was_in_its_place(
    runs_folder: Path, tmp_path: Path
) -> None:
    with original(runs_folder / "go-back", secure=False) as cluster:
        system = cluster.system
        async with open_client(cluster.uri) as client:
            resting = Resting(client, SMALL)
            await resting.grow_up(print)
            await asyncio.to_thread(cluster.cut_over, tmp_path / "dump", cluster.peer.stop, print)
            began = time.monotonic()
            await resting.live_on(AN_HOUR)
            print(
                f"{AN_HOUR * SMALL.streams} times scaled twice, rolled and truncated: {time.monotonic() - began:.0f} s"
            )
            new = f"new{uuid4().hex[:6]}"
            await client.streams.create_stream(resting.scope, new)
            transaction = await client.begin_transaction(resting.scope, new, lease_s=600)
            with pytest.raises(AssertionError, match=f"{new}: 1 transactions have not ended"):
                await asyncio.to_thread(cluster.sluice, "migrate", "export", "--dry-run")
            await transaction.abort()
            await eventually_async(lambda: has_ended(transaction), SOON_S, "it is aborted")
            await asyncio.to_thread(cluster.verify, print)
            before = await resting.answers()
            for service in SERVICES:
                system.stop(service)
            await asyncio.to_thread(no_controller_is_left, system)
            changes = [
                json.loads(await asyncio.to_thread(cluster.sluice, "migrate", "export", "--json"))["changes"]
                for _ in range(2)
            ]
            assert changes[0] > 0 and changes[1] == 0
            inspected = json.loads(await asyncio.to_thread(cluster.sluice, "migrate", "inspect", "--json"))
            assert inspected["problems"] == inspected["unreadable"] == []
            # Where Sluice's gateway was, so that clients find it.
            with PeerController(system.settings) as peer:
                await asyncio.to_thread(peer.start)
                assert await resting.answers() == before
                await resting.end_exactly_once()
                await resting.live_on(GOES_ON)
                inspected = json.loads(await asyncio.to_thread(cluster.sluice, "migrate", "inspect", "--json"))
                assert not [problem for problem in inspected["problems"] if problem["stops"]]
