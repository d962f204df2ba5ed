"""Links of a test's system: what goes over one while it is well, cut, one-way or slow."""

import itertools
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.ports import free_port

from harness import System
from harness.links import GONE, LOSSY, SLOW, Links
from harness.relay import WELL, Link, Way
from harness.routes import LINKS

SOON_S = 60.0
LONG_S = 0.6
BOTH = {"client", "server"}


@pytest.fixture
def server() -> Iterator[int]:
    """The port of one that sends back what it receives."""
    with socket.create_server(("127.0.0.1", free_port())) as listening:

        def echo(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                while data := connection.recv(4096):
                    connection.sendall(data)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=echo, args=listening.accept()[:1], daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture(params=[True, False], ids=["kernel drops packets", "relay keeps back"])
def links(request: pytest.FixtureRequest) -> Iterator[Links]:
    links = Links(drops_packets=request.param)
    try:
        yield links
    finally:
        links.close()


def connect(link: Link) -> socket.socket:
    return socket.create_connection((link.listens, link.port), SOON_S)


def echoes(connection: socket.socket, within_s: float = SOON_S) -> bool:
    connection.settimeout(within_s)
    connection.sendall(b"x")
    with suppress(TimeoutError):
        return connection.recv(1) == b"x"
    return False


@pytest.mark.parametrize(("to", "back"), [(GONE, GONE), (GONE, WELL), (WELL, GONE)])
def test_link_that_is_cut_is_silent_and_goes_on_when_it_is_mended(
    links: Links, server: int, to: Way, back: Way
) -> None:
    link, other = (links.add(name, "server", server, server) for name in ("client", "other"))
    with connect(link) as connection, connect(other) as of_other:
        assert echoes(connection)
        links.set({"client"}, {"server"}, to)
        links.set({"server"}, {"client"}, back)
        assert not echoes(connection, LONG_S)
        assert echoes(of_other)
        links.set({"client"}, {"server"}, WELL)
        links.set({"server"}, {"client"}, WELL)
        connection.settimeout(SOON_S)
        assert connection.recv(1) == b"x"
        assert echoes(connection)


def test_link_that_is_slow_takes_its_delay_both_ways(links: Links, server: int) -> None:
    link = links.add("client", "server", server, server)
    with connect(link) as connection:
        links.set(BOTH, BOTH, SLOW)
        began = time.monotonic()
        assert echoes(connection)
        assert time.monotonic() - began >= 2 * SLOW.delay_s


def test_link_that_is_lossy_carries_everything_in_order(links: Links, server: int) -> None:
    link = links.add("client", "server", server, server)
    links.set(BOTH, BOTH, LOSSY)
    sent = bytes(range(256)) * 20
    with connect(link) as connection:
        connection.settimeout(SOON_S)
        connection.sendall(sent)
        received = b""
        while len(received) < len(sent):
            received += connection.recv(4096)
    assert received == sent


def test_server_that_is_away_ends_the_connection(links: Links) -> None:
    link = links.add("client", "server", *[free_port()] * 2)
    with connect(link) as connection:
        connection.settimeout(SOON_S)
        with suppress(ConnectionResetError):
            assert connection.recv(1) == b""


def test_processes_of_a_kind_reach_the_same_servers_by_links_of_their_own(tmp_path: Path) -> None:
    system = System(tmp_path, kafka_brokers=2, api_gateways=2, links=LINKS)
    try:
        of_brokers = [system.environment(f"api-gateway-{n}")["SLUICE_KAFKA_BOOTSTRAP"].split(",") for n in (0, 1)]
        assert len({*itertools.chain(*of_brokers)} - set(system.kafka_bootstrap.split(","))) == 4
        assert len(set(system.grpc_addresses)) == 2
        assert {"api-gateway-1->kafka cut", "kafka->api-gateway-1 unheard", "client->api-gateway lossy"} <= {
            *system.faults
        }
        with system.cut("api-gateway", "kafka"), pytest.raises(ValueError, match="no link"):
            system.cut("redis", "kafka").__enter__()
    finally:
        system.down()
