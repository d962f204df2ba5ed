"""The image of `sluice dev`, by the class for Testcontainers: a client outside is led to the segment store inside."""

import asyncio
from collections.abc import Mapping

import httpx
from test_orders import order
from testcontainers.core.network import Network

from sluice_dev.container import SluiceDevContainer


def test_a_client_outside_writes_and_reads(built: Mapping[str, str], network: Network) -> None:
    container = SluiceDevContainer("--scope", "demo", image=built["dev"]).with_network(network)
    with container as sluice:
        assert asyncio.run(order(sluice.controller, "demo", b"tea")) == [b"tea"]
        listed = httpx.get(f"{sluice.rest}/v1/scopes/demo/streams", timeout=60).json()
    assert [stream["streamName"] for stream in listed["streams"]] == ["orders"]
