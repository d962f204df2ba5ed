"""Ports of the local stack: which are free, and what is said of those that are taken."""

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.ports import free_port, free_ports

from sluice_local.errors import PortTaken
from sluice_local.home import HOST
from sluice_local.ports import FREE, PortClaim, find_block, is_free, require_free


@contextmanager
def listening(host: str = HOST, port: int = 0) -> Iterator[int]:
    """The port of a listener that is there meanwhile."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as server:
        server.bind((host, port))
        server.listen()
        yield server.getsockname()[1]


@pytest.mark.parametrize("host", [HOST, "0.0.0.0", *(["::1"] if socket.has_dualstack_ipv6() else [])])
def test_a_port_is_taken_while_it_has_a_listener(host: str) -> None:
    with listening(host) as port:
        assert not is_free(port)
    assert is_free(port)


def test_every_taken_port_is_named_with_its_part_and_its_setting() -> None:
    with listening() as one, listening() as other, pytest.raises(PortTaken) as caught:
        require_free([PortClaim(port, f"part-{port}", f"SLUICE_{port}") for port in (one, other)])
    text = str(caught.value)
    assert all(name in text for port in (one, other) for name in (f"part-{port}", f"SLUICE_{port}"))


def test_a_port_claimed_twice_names_both_settings() -> None:
    port = free_port()
    claims = [PortClaim(port, "kafka", "SLUICE_KAFKA_PORT"), PortClaim(port, "api-gateway-2", "SLUICE_GRPC_PORT")]
    with pytest.raises(PortTaken, match=r"kafka \(SLUICE_KAFKA_PORT\) and by api-gateway-2 \(SLUICE_GRPC_PORT\)"):
        require_free(claims)


def test_free_ports_pass() -> None:
    require_free([PortClaim(port, f"part-{port}", "SETTING") for port in free_ports(3)])


def test_a_port_that_a_system_has_chosen_is_not_given_out() -> None:
    even = FREE[::2]
    assert {free_ports(1, even).start % 2 for _ in range(20)} == {1}


def test_a_block_avoids_ports_that_are_taken() -> None:
    first = find_block(3, random.Random(1))
    with listening(port=first[1]):
        second = find_block(3, random.Random(1))
    assert first[1] not in second
    assert len(second) == 3
