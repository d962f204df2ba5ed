"""The gateway's gRPC and HTTP over real sockets with TLS."""

import asyncio
import os
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from support.certificates import Authority, Pair

from api_gateway.pravega.server import ControllerServer
from sluice.addresses import address_of
from sluice.controller_api import controller_pb2 as pb
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub
from sluice.security.contexts import ClientTls, client_context
from sluice.security.tls import PROTOCOLS, Identity, watched_identity
from sluice.security.watched import Watched
from sluice.telemetry.health import HttpServer, health_app
from sluice.telemetry.listening import listening_addresses

CALL_S = 30.0
INFO = pb.ScopeInfo(scope="sc")


async def exists(_request: Any, _context: Any) -> pb.ExistsResponse:
    return pb.ExistsResponse(exists=True)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def pair(authority: Authority) -> Pair:
    return authority.issue("server")


@pytest.fixture
def identity(pair: Pair) -> Watched[Identity]:
    identity = watched_identity(str(pair.certificate), str(pair.key), PROTOCOLS[0])
    assert identity is not None
    return identity


@pytest.fixture
async def grpc_port(identity: Watched[Identity]) -> AsyncIterator[int]:
    server = ControllerServer({"checkScopeExists": exists}, 100)
    yield await server.start("127.0.0.1", 0, identity)
    await server.stop(0)


@pytest.fixture
async def https_port(identity: Watched[Identity], unused_tcp_port: int) -> AsyncIterator[int]:
    server = HttpServer(health_app({}, {}), "127.0.0.1", unused_tcp_port, identity=identity)
    await server.start()
    yield unused_tcp_port
    await server.stop()


def channel(port: int, authority: Authority, name: str = "localhost", address: str = "127.0.0.1") -> grpc.aio.Channel:
    """A channel of its own connection, to a server of this name."""
    options = [("grpc.ssl_target_name_override", name), ("grpc.use_local_subchannel_pool", 1)]
    return grpc.aio.secure_channel(
        address_of(address, port), grpc.ssl_channel_credentials(authority.file.read_bytes()), options
    )


async def code_of(opened: grpc.aio.Channel) -> grpc.StatusCode:
    """What becomes of a call."""
    async with opened:
        try:
            await ControllerServiceStub(opened).checkScopeExists(INFO, timeout=CALL_S)
        except grpc.aio.AioRpcError as error:
            return error.code()
    return grpc.StatusCode.OK


async def handshake(port: int, authority: Authority, **options: Any) -> ssl.SSLObject:
    context = client_context(ClientTls("test", str(authority.file)))
    context.set_alpn_protocols(["h2"])
    for name, value in options.items():
        setattr(context, name, value)
    _reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    writer.close()
    shown: ssl.SSLObject = writer.get_extra_info("ssl_object")
    return shown


async def serial_number(port: int, authority: Authority) -> Any:
    return ((await handshake(port, authority)).getpeercert() or {})["serialNumber"]


async def test_grpc_answers_who_trusts_its_authority_and_its_name(
    grpc_port: int, authority: Authority, tmp_path: Path
) -> None:
    assert await code_of(channel(grpc_port, authority)) is grpc.StatusCode.OK
    assert await code_of(channel(grpc_port, authority, "elsewhere")) is grpc.StatusCode.UNAVAILABLE
    assert await code_of(channel(grpc_port, Authority(tmp_path, "stranger"))) is grpc.StatusCode.UNAVAILABLE


async def test_grpc_answers_with_tls_at_each_address_of_its_host(
    identity: Watched[Identity], authority: Authority
) -> None:
    server = ControllerServer({"checkScopeExists": exists}, 100)
    port = await server.start("localhost", 0, identity)
    for address in listening_addresses("localhost"):
        assert await code_of(channel(port, authority, address=address)) is grpc.StatusCode.OK, address
    await server.stop(0)


async def test_grpc_refuses_a_client_without_tls(grpc_port: int) -> None:
    assert await code_of(grpc.aio.insecure_channel(f"127.0.0.1:{grpc_port}")) is grpc.StatusCode.UNAVAILABLE


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1")
async def test_grpc_speaks_http_2_and_refuses_old_protocols(grpc_port: int, authority: Authority) -> None:
    assert (await handshake(grpc_port, authority)).selected_alpn_protocol() == "h2"
    oldest = {"minimum_version": ssl.TLSVersion.TLSv1_1, "maximum_version": ssl.TLSVersion.TLSv1_1}
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await handshake(grpc_port, authority, **oldest)


async def test_a_running_grpc_server_shows_new_callers_its_new_certificate(
    grpc_port: int, authority: Authority, pair: Pair, identity: Watched[Identity]
) -> None:
    first = await serial_number(grpc_port, authority)
    async with channel(grpc_port, authority) as opened:
        stub = ControllerServiceStub(opened)
        assert (await stub.checkScopeExists(INFO)).exists
        pair.replace_by(authority.issue("replacement"))
        identity.look()
        second = await serial_number(grpc_port, authority)
        assert second != first
        assert (await stub.checkScopeExists(INFO)).exists
    pair.key.write_text("half a key")
    identity.look()
    assert await serial_number(grpc_port, authority) == second
    assert await code_of(channel(grpc_port, authority)) is grpc.StatusCode.OK


async def test_http_is_served_with_tls_alone(https_port: int, authority: Authority) -> None:
    async with httpx.AsyncClient(verify=client_context(ClientTls("test", str(authority.file)))) as client:
        assert (await client.get(f"https://localhost:{https_port}/livez")).text == "alive\n"
        with pytest.raises(httpx.HTTPError):
            await client.get(f"http://localhost:{https_port}/livez")


async def test_running_http_shows_new_callers_its_new_certificate(
    https_port: int, authority: Authority, pair: Pair, identity: Watched[Identity]
) -> None:
    async with httpx.AsyncClient(verify=client_context(ClientTls("test", str(authority.file)))) as client:
        assert (await client.get(f"https://localhost:{https_port}/livez")).is_success
        first = await serial_number(https_port, authority)
        pair.replace_by(authority.issue("replacement"))
        identity.look()
        assert await serial_number(https_port, authority) != first
        assert (await client.get(f"https://localhost:{https_port}/livez")).is_success


def test_grpc_of_the_newest_protocol_alone_refuses_older_ones(authority: Authority, pair: Pair) -> None:
    """gRPC reads how from the environment as it is imported: so in a process of its own."""
    environment = {**os.environ, "SLUICE_TLS_PROTOCOLS": "TLSv1.3"}
    command = [sys.executable, "-c", _NEWEST_ALONE, str(pair.certificate), str(pair.key), str(authority.file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["refused", "TLSv1.3"]


_NEWEST_ALONE = """
import asyncio, ssl, sys
from api_gateway.__main__ import limit_protocols
limit_protocols()
from api_gateway.pravega.server import ControllerServer
from sluice.security.tls import watched_identity

async def main():
    server = ControllerServer({}, 100)
    port = await server.start("127.0.0.1", 0, watched_identity(sys.argv[1], sys.argv[2], "TLSv1.3"))
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = ssl.create_default_context(cafile=sys.argv[3])
        context.set_alpn_protocols(["h2"])
        context.maximum_version = version
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
        except (ssl.SSLError, ConnectionError):
            print("refused")
        else:
            print(writer.get_extra_info("ssl_object").version())
    await server.stop(0)

asyncio.run(main())
"""
