"""The gateway put together: what its readiness consists of, from its start to its end."""

import asyncio
from base64 import b64encode
from pathlib import Path
from typing import Any

import grpc
import httpx
import jwt
import pytest
from fastapi import FastAPI
from support.ports import free_port

from api_gateway import main
from api_gateway.app import build_app
from api_gateway.edge.errors import OverloadedError
from api_gateway.edge.security.browsers import browsers_of
from api_gateway.edge.security.rules import Rule
from api_gateway.pravega.server import ControllerServer
from api_gateway.settings import GatewaySettings, Serves
from sluice.controller_api import controller_pb2 as pb
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub
from sluice.memory.broker import MemoryBroker
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.runtime import Runtime
from sluice.security.passwords import hash_password
from sluice.security.watched import SecurityConfigError

UNREACHABLE = "127.0.0.1:1"
ENDS_S = 60.0


async def ready(app: FastAPI) -> tuple[int, dict[str, str]]:
    """The status of /readyz, and what it says is missing."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
        answer = await client.get("/readyz")
    return answer.status_code, answer.json()["not_ready"]


async def started(runtime: Runtime, settings: GatewaySettings, app: FastAPI) -> None:
    """The gateway serves, and its journal is loaded."""
    runtime.journal.start()
    runtime.stack.push_async_callback(runtime.journal.stop)
    await runtime.journal.loaded.wait()
    await main.start(runtime, settings, app)


async def test_a_gateway_that_ends_is_not_ready_while_it_answers_the_calls_in_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entered, leave, stopping = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(_request: Any, _context: Any) -> pb.ExistsResponse:
        entered.set()
        await leave.wait()
        return pb.ExistsResponse(exists=True)

    ports: list[int] = []

    class Listening(ControllerServer):
        async def start(self, host: str, port: int, *more: Any) -> int:
            ports.append(await super().start(host, port, *more))
            return ports[0]

        async def stop(self, grace_s: float) -> None:
            stopping.set()
            await super().stop(grace_s)

    monkeypatch.setattr(main, "handlers", lambda *_: {"checkScopeExists": slow})
    monkeypatch.setattr(main, "ControllerServer", Listening)
    settings = GatewaySettings(kafka_bootstrap=UNREACHABLE, host="127.0.0.1", grpc_port=0, stop_grace_s=ENDS_S)
    runtime = Runtime("api-gateway", settings, MemoryConnections(MemoryGroups(MemoryBroker())))
    app = build_app(runtime, settings.max_http_connections)
    await started(runtime, settings, app)
    assert await ready(app) == (200, {})
    assert runtime.degraded["signs of life"]() is None
    async with grpc.aio.insecure_channel(f"127.0.0.1:{ports[0]}") as channel:
        call = asyncio.ensure_future(ControllerServiceStub(channel).checkScopeExists(pb.ScopeInfo(scope="sc")))
        await entered.wait()
        ending = asyncio.ensure_future(runtime.stack.aclose())
        async with asyncio.timeout(ENDS_S):
            await stopping.wait()
        assert await ready(app) == (503, {"grpc": "does not listen"})
        assert not ending.done()
        leave.set()
        assert (await call).exists
    await ending
    assert await ready(app) == (503, {"grpc": "does not listen"})


async def test_a_gateway_with_a_password_file_asks_for_credentials_on_both_ports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ports: list[int] = []

    class Listening(ControllerServer):
        async def start(self, host: str, port: int, *more: Any) -> int:
            ports.append(await super().start(host, port, *more))
            return ports[0]

    monkeypatch.setattr(main, "ControllerServer", Listening)
    accounts = tmp_path / "passwd"
    accounts.write_text(f"admin:{hash_password('secret')}:prn::*,READ_UPDATE\n")
    settings = GatewaySettings(
        kafka_bootstrap=UNREACHABLE, host="127.0.0.1", grpc_port=0, auth_enabled=True, auth_accounts=str(accounts)
    )
    runtime = Runtime("api-gateway", settings, MemoryConnections(MemoryGroups(MemoryBroker())))
    app = build_app(runtime, settings.max_http_connections, main.guard_of(runtime, settings))
    await started(runtime, settings, app)
    assert [one.name for one in runtime.watched] == ["password file"]
    assert runtime.degraded["password file"]() is None
    admin = {"authorization": "Basic " + b64encode(b"admin:secret").decode()}
    async with (
        grpc.aio.insecure_channel(f"127.0.0.1:{ports[0]}") as channel,
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client,
    ):
        with pytest.raises(grpc.aio.AioRpcError, match="Authentication failed"):
            await ControllerServiceStub(channel).getDelegationToken(pb.StreamInfo(scope="sc", stream="st"))
        assert (await client.get("/sluice/v1/containers")).status_code == 401
        info = pb.StreamInfo(scope="sc", stream="st")
        answer = await ControllerServiceStub(channel).getDelegationToken(info, metadata=tuple(admin.items()))
        assert answer.delegationToken == ""
        assert (await client.get("/sluice/v1/containers", headers=admin)).status_code == 200
    await runtime.stack.aclose()


@pytest.mark.parametrize(
    ("serves", "found", "missing"),
    [
        (Serves.CONSOLE, ("/sluice/v1/scopes", "/ui/"), "/v1/scopes"),
        (Serves.PRAVEGA, ("/v1/scopes", "/ping"), "/sluice/v1/scopes"),
    ],
)
async def test_a_process_that_serves_one_interface_has_nothing_of_the_other(
    serves: Serves, found: tuple[str, ...], missing: str
) -> None:
    settings = GatewaySettings(kafka_bootstrap=UNREACHABLE, host="127.0.0.1", grpc_port=free_port(), serves=serves)
    runtime = Runtime("any", settings, MemoryConnections(MemoryGroups(MemoryBroker())))
    app = build_app(runtime, settings.max_http_connections, None, browsers_of(settings), None, serves)
    await started(runtime, settings, app)
    assert ("grpc" in runtime.checks, "grpc" in runtime.endpoints) == (serves.pravega, serves.pravega)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        assert [(await client.get(path)).status_code for path in (*found, missing)] == [200, 200, 404]
        assert {path.split("/")[1] for path in (await client.get("/openapi.json")).json()["paths"]} <= {
            path.split("/")[1] for path in found
        } | {"prometheus"}
        if serves is Serves.PRAVEGA:
            assert "SLUICE_SERVES" in (await client.get(missing)).json()["detail"], (
                "who calls the wrong process is told"
            )
        assert ("page" in (await client.get("/")).json()["paths"]) is serves.console
    await runtime.stack.aclose()


async def test_a_gateway_whose_authentication_cannot_be_configured_does_not_start(tmp_path: Path) -> None:
    settings = GatewaySettings(kafka_bootstrap=UNREACHABLE, auth_enabled=True, auth_accounts=str(tmp_path / "none"))
    runtime = Runtime("api-gateway", settings, MemoryConnections(MemoryGroups(MemoryBroker())))
    with pytest.raises(SecurityConfigError, match="none"):
        main.guard_of(runtime, settings)


async def test_keys_of_an_issuer_that_cannot_be_fetched_degrade_the_gateway() -> None:
    settings = GatewaySettings(auth_enabled=True, auth_oidc_issuer="http://127.0.0.1:1/realm")
    runtime = Runtime("api-gateway", settings, MemoryConnections(MemoryGroups(MemoryBroker())))
    guard = main.guard_of(runtime, settings)
    assert guard is not None and runtime.degraded["keys of the OIDC issuer"]() is None
    token = jwt.encode({}, "", algorithm="none", headers={"kid": "k"})
    with pytest.raises(OverloadedError):
        await guard.admit(Rule(), {}, f"Bearer {token}")
    assert "cannot be fetched" in (runtime.degraded["keys of the OIDC issuer"]() or "")
    await runtime.stack.aclose()
