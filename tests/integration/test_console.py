"""The console as a process of its own, beside a gateway that serves Pravega's interfaces alone."""

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.controller import controller

from harness import System, eventually
from sluice.addresses import host_and_port
from sluice.controller_api import controller_pb2 as pb

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SOON_S = 60.0
GATEWAY, CONSOLE = "api-gateway-0", "api-gateway-1"


@pytest.fixture(scope="module")
def apart(runs_folder: Path) -> Iterator[System]:
    system = System(runs_folder / "console", segment_stores=1, api_gateways=2, partitions=2)
    system.configure(GATEWAY, {"SLUICE_SERVES": "pravega"})
    system.configure(CONSOLE, {"SLUICE_SERVES": "console"})
    with system:
        yield system


def status(system: System, gateway: int, path: str) -> int:
    return httpx.get(f"{system.rest_urls[gateway]}{path}", trust_env=False).status_code


def test_operators_see_in_the_console_what_clients_did_at_the_gateway(apart: System) -> None:
    with controller(apart.grpc_address) as client:
        assert client.create_scope("shop") == client.create_stream("shop", "carts") == "SUCCESS"
    assert status(apart, 1, "/sluice/v1/scopes/shop/streams/carts") == httpx.codes.OK
    # The past is read by a process of the console's.
    eventually(lambda: status(apart, 1, "/sluice/v1/scopes/shop?at=-0s") == httpx.codes.OK, SOON_S, "it is looked up")
    assert status(apart, 0, "/v1/scopes/shop") == httpx.codes.OK
    assert status(apart, 0, "/sluice/v1/scopes") == status(apart, 1, "/v1/scopes") == httpx.codes.NOT_FOUND
    sealed = httpx.post(f"{apart.rest_urls[1]}/sluice/v1/scopes/shop/streams/carts/seal", timeout=60, trust_env=False)
    assert sealed.status_code == httpx.codes.OK, sealed.text


def test_no_client_is_sent_to_the_console(apart: System) -> None:
    gateway, console = apart.grpc_addresses

    def members() -> dict[str, tuple[str, list[str]]]:
        found = httpx.get(f"{apart.rest_urls[1]}/sluice/v1/members", trust_env=False).json()["items"]
        return {one["instance"]: (one["service"], sorted(one["endpoints"])) for one in found}

    wanted = {GATEWAY: ("api-gateway", ["grpc", "rest"]), CONSOLE: ("console", ["rest"])}
    eventually(lambda: wanted.items() <= members().items(), SOON_S, "both are members")
    with controller(gateway) as client:
        listed = client.call("getControllerServerList", pb.ServerRequest()).nodeURI
    assert [f"{one.endpoint}:{one.port}" for one in listed] == [gateway]
    with socket.socket() as client_socket:
        assert client_socket.connect_ex(host_and_port(console)) != 0, "it listens for gRPC"
