"""Where the gateway listens: gRPC and HTTP alike, at addresses of both families."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from support.ports import free_ports

from api_gateway.pravega.server import ControllerServer
from api_gateway.settings import GatewaySettings
from sluice.telemetry.health import HttpServer, health_app

DEADLINE_S = 60.0


def machine_has(address: str) -> bool:
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as tried:
            tried.bind((address, 0))
    except OSError:
        return False
    return True


@asynccontextmanager
async def listening(host: str) -> AsyncIterator[tuple[int, int]]:
    """The ports of gRPC and of HTTP, which the system chooses."""
    controller = ControllerServer({}, 100)
    http = HttpServer(health_app({}, {}), host, 0)
    http_port = await http.start()
    try:
        yield await controller.start(host, 0), http_port
    finally:
        await controller.stop(0)
        await http.stop()


async def is_served(host: str, grpc_port: int, http_port: int) -> tuple[bool, bool]:
    async with (
        grpc.aio.insecure_channel(f"{host}:{grpc_port}", [("grpc.use_local_subchannel_pool", 1)]) as channel,
        httpx.AsyncClient() as client,
    ):
        try:
            request = health_pb2.HealthCheckRequest()
            await health_pb2_grpc.HealthStub(channel).Check(request, timeout=DEADLINE_S)
            by_grpc = True
        except grpc.aio.AioRpcError:
            by_grpc = False
        try:
            by_http = (await client.get(f"http://{host}:{http_port}/livez")).status_code == httpx.codes.OK
        except httpx.ConnectError:
            by_http = False
    return by_grpc, by_http


@pytest.mark.parametrize(
    ("setting", "reached"),
    [
        (GatewaySettings().host, ("127.0.0.1", "[::1]")),
        ("::", ("127.0.0.1", "[::1]")),
        ("[::1]", ("[::1]",)),
        ("127.0.0.1", ("127.0.0.1",)),
    ],
)
async def test_a_host_is_listened_on_in_the_families_that_it_names(setting: str, reached: tuple[str, ...]) -> None:
    host = GatewaySettings(host=setting).host
    here = {address: machine_has(address.strip("[]")) for address in ("127.0.0.1", "[::1]")}
    if not any(here[address] for address in reached):
        with pytest.raises(OSError, match="assign"):
            async with listening(host):
                pass
        return
    async with listening(host) as ports:
        for address, is_here in here.items():
            expected = is_here and address in reached
            assert await is_served(address, *ports) == (expected, expected), address


async def test_a_port_that_is_taken_at_one_address_is_refused() -> None:
    port = free_ports(1).start
    with socket.create_server(("127.0.0.1", port)):
        for host in ("localhost", "::"):
            with pytest.raises(OSError, match=r"in use|taken"):
                await HttpServer(health_app({}, {}), host, port).start()
            with pytest.raises(OSError, match="taken"):
                await ControllerServer({}, 100).start(host, port)


def test_what_clients_are_given_has_brackets() -> None:
    settings = GatewaySettings(grpc_published_host="fd00::5")
    assert (settings.grpc_endpoint, settings.rest_endpoint) == ("[fd00::5]:9090", "[fd00::5]:10080")
