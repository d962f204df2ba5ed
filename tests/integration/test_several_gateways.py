"""Two gateways behind one name: each is killed and comes back while clients of two languages write, commit and read.

How long the clients were silent is measured and printed (`pytest -s`).
"""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from integration.test_java_client import LOG_OPTIONS, build
from support.client_process import ClientProcess, our_client
from support.controller import controller
from support.instances import have_instances

from bench.balancer import Balancer
from harness import System
from sluice_local import java
from sluice_local.settings import LocalSettings

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

GATEWAYS = ("api-gateway-0", "api-gateway-1")
SETTLED_S = 120.0


@pytest.fixture
def double(disturbed: System) -> System:
    return have_instances(disturbed, 2, SETTLED_S)


@pytest.fixture
def clients(double: System) -> Iterator[list[ClientProcess]]:
    """Java's and ours. They know the gateways by one address; new connections go to one that listens."""
    classpath = build(LocalSettings().home / "java-client")
    with ExitStack() as stack:
        name = stack.enter_context(Balancer(double.grpc_addresses)).address
        setting_up = stack.enter_context(controller(double.grpc_address, SETTLED_S))
        command = [java.executable(), *java.SHORT_LIVED, *LOG_OPTIONS, "-cp", classpath, "io.sluice.client.ClientPeer"]
        yield [
            stack.enter_context(ClientProcess(setting_up, "java", [*command, f"tcp://{name}"])),
            stack.enter_context(ClientProcess(setting_up, "ours", our_client(name))),
        ]


def test_clients_go_on_while_either_gateway_behind_one_name_is_killed(
    double: System, clients: list[ClientProcess]
) -> None:
    for client in clients:
        client.goes_on()
    for segments, victim, address in zip((3, 2), GATEWAYS, reversed(double.grpc_addresses), strict=True):
        double.kill(victim)
        with controller(address, SETTLED_S) as survivor:
            for client in clients:
                client.scale(survivor, segments)
                client.goes_on()
        double.start(victim, deadline_s=SETTLED_S)
        for client in clients:
            client.goes_on()
    for client in clients:
        client.ends_exactly_once()
        print(f"{client.name}: {client.progress()}; longest silences, in s: {client.silences()}")
