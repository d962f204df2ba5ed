import random
import socket
from collections.abc import Iterator

import pytest

from sluice_local.errors import PortTaken
from sluice_local.ports import PortClaim, find_block, is_free, require_free
from sluice_local.settings import HOST


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as server:
        server.bind((HOST, 0))
        server.listen()
        yield server


def test_a_port_with_a_listener_is_not_free(listener: socket.socket) -> None:
    assert not is_free(listener.getsockname()[1])


def test_a_port_is_free_again_when_its_listener_is_gone() -> None:
    with socket.socket() as server:
        server.bind((HOST, 0))
        server.listen()
        port = server.getsockname()[1]
    assert is_free(port)


def test_a_listener_on_all_addresses_takes_the_port_too() -> None:
    with socket.socket() as server:
        server.bind(("0.0.0.0", 0))
        server.listen()
        assert not is_free(server.getsockname()[1])


def test_a_taken_port_is_named_with_its_part_and_its_setting(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with pytest.raises(PortTaken) as caught:
        require_free([PortClaim(port, "kafka", "SLUICE_KAFKA_PORT")])
    text = str(caught.value)
    assert str(port) in text
    assert "kafka" in text
    assert "SLUICE_KAFKA_PORT" in text


def test_every_taken_port_is_named() -> None:
    with socket.socket() as one, socket.socket() as other:
        for server in (one, other):
            server.bind((HOST, 0))
            server.listen()
        ports = [server.getsockname()[1] for server in (one, other)]
        with pytest.raises(PortTaken) as caught:
            require_free([PortClaim(port, f"part-{port}", "SETTING") for port in ports])
    assert all(f"part-{port}" in str(caught.value) for port in ports)


def test_a_port_claimed_twice_names_both_settings() -> None:
    port = find_block(1).start
    claims = [PortClaim(port, "kafka", "SLUICE_KAFKA_PORT"), PortClaim(port, "api-gateway-2", "SLUICE_GRPC_PORT")]
    with pytest.raises(PortTaken, match=r"kafka \(SLUICE_KAFKA_PORT\) and by api-gateway-2 \(SLUICE_GRPC_PORT\)"):
        require_free(claims)


def test_free_ports_pass() -> None:
    require_free([PortClaim(port, f"part-{port}", "SETTING") for port in find_block(3)])


def test_a_block_avoids_ports_that_are_taken() -> None:
    first = find_block(3, random.Random(1))
    with socket.socket() as server:
        server.bind((HOST, first[1]))
        server.listen()
        second = find_block(3, random.Random(1))
    assert first[1] not in second
    assert len(second) == 3
