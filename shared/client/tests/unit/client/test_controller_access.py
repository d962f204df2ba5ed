"""Clients with credentials, at a controller and segment stores that are secured by TLS."""

import ssl
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from support.certificates import Authority, Pair
from unit.pravega.fake_store import fake_store

from sluice.controller_api import controller_pb2 as pb
from sluice.controller_api.controller_pb2_grpc import add_ControllerServiceServicer_to_server
from sluice.pravega import RouteStale
from sluice.pravega.wire.command import Command
from sluice.pravega.wire.segments import GetStreamSegmentInfo, StreamSegmentInfo
from sluice.security.credentials import basic
from sluice_client import Access, AccessRefused, Controller, Patience, Unavailable, open_client

PATIENCE = Patience(deadline_s=20.0)
IMPATIENCE = Patience(deadline_s=1.0)
ME = basic("me", "secret")


class Guarded:
    """Lets in only who has these credentials; has the scopes, and says where segments are."""

    def __init__(self) -> None:
        self.store = pb.NodeUri()

    async def createScope(self, _request: Any, context: Any) -> pb.CreateScopeStatus:  # noqa: N802 - as in the interface
        await self._check(context)
        return pb.CreateScopeStatus()

    async def getURI(self, _request: Any, context: Any) -> pb.NodeUri:  # noqa: N802
        await self._check(context)
        return self.store

    async def getDelegationToken(self, _request: Any, context: Any) -> pb.DelegationToken:  # noqa: N802
        await self._check(context)
        return pb.DelegationToken(delegationToken="t")

    def __getattr__(self, _rpc: str) -> Any:
        return None

    async def _check(self, context: Any) -> None:
        if dict(context.invocation_metadata()).get("authorization") != ME.header:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "Authentication failed")


class Site:
    """A controller at a secured port, and its authority."""

    def __init__(self, authority: Authority, pair: Pair, controller: Guarded, port: int) -> None:
        self.authority = authority
        self.pair = pair
        self.controller = controller
        self.address = f"tls://localhost:{port}"

    @property
    def access(self) -> Access:
        return Access(ME, str(self.authority.file))


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    authority = Authority(tmp_path)
    pair = authority.issue("server", "DNS:localhost")
    controller, server = Guarded(), grpc.aio.server()
    add_ControllerServiceServicer_to_server(controller, server)  # type: ignore[arg-type]
    identity = grpc.ssl_server_credentials([(pair.key.read_bytes(), pair.certificate.read_bytes())])
    port = server.add_secure_port("127.0.0.1:0", identity)
    await server.start()
    yield Site(authority, pair, controller, port)
    await server.stop(0)


async def test_a_caller_with_credentials_is_let_in(site: Site) -> None:
    async with Controller(site.address, PATIENCE, access=site.access) as controller:
        assert await controller.create_scope("sc")


async def test_a_caller_without_credentials_is_refused_at_once(site: Site) -> None:
    async with Controller(site.address, PATIENCE, access=Access(ca=str(site.authority.file))) as controller:
        with pytest.raises(AccessRefused, match="UNAUTHENTICATED"):
            await controller.create_scope("sc")


async def test_a_controller_of_another_authority_or_name_gets_no_credentials(site: Site, tmp_path: Path) -> None:
    other = Access(ME, str(Authority(tmp_path, "other").file))
    of_another_name = site.address.replace("localhost", "127.0.0.1")
    for address, access in ((site.address, other), (of_another_name, site.access)):
        async with Controller(address, IMPATIENCE, access=access) as controller:
            with pytest.raises(Unavailable):
                await controller.create_scope("sc")


def answer(command: Command) -> Sequence[Command]:
    assert isinstance(command, GetStreamSegmentInfo) and command.token == "t"
    return [StreamSegmentInfo(command.request_id, command.segment, True, False, False, 0, 7)]


async def test_segment_stores_are_called_over_tls_too(site: Site, tmp_path: Path) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(site.pair.certificate, site.pair.key)
    async with fake_store(answer, tls=tls) as store, open_client(site.address, PATIENCE, site.access) as client:
        site.controller.store = pb.NodeUri(endpoint="localhost", port=store.host.port)
        assert (await client.store.segment_info("sc/st/0.#epoch.0")).length == 7
    async with fake_store(answer) as plain, open_client(site.address, PATIENCE, site.access) as client:
        site.controller.store = pb.NodeUri(endpoint="localhost", port=plain.host.port)
        with pytest.raises(RouteStale):
            await client.store.segment_info("sc/st/0.#epoch.0")
        assert plain.received == []


def test_access_of_the_environment(tmp_path: Path) -> None:
    found = Access.of_environment({"SLUICE_USER": "me", "SLUICE_PASSWORD": "secret", "SLUICE_CA": "/ca"})
    assert found == Access(ME, "/ca") and "secret" not in repr(found)
    with pytest.raises(ValueError, match="SLUICE_USER"):
        Access.of_environment({"SLUICE_PASSWORD": "x"})
    empty = tmp_path / "empty"
    empty.touch()
    for unusable in ("/none", str(empty)):
        with pytest.raises(ValueError, match=unusable):
            Controller("tls://localhost:1", access=Access(ca=unusable))
