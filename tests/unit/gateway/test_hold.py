"""A gateway on a held journal: calls wait for the release, or as long as a client would."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import httpx
import pytest
from fastapi import FastAPI
from prometheus_client import REGISTRY
from support.ports import free_port
from support.wait import SOON_S, eventually_async

from api_gateway import main
from api_gateway.app import build_app
from api_gateway.pravega import hold
from api_gateway.settings import GatewaySettings
from sluice.controller_api import controller_pb2 as pb
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub
from sluice.domain.model import JournalRecord, encode_record
from sluice.engine.partition import partition_keys
from sluice.engine.record import HELD
from sluice.kafka.topics import JOURNAL
from sluice.memory.broker import MemoryBroker
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.runtime import Runtime


def write(broker: MemoryBroker, id: str, whole_at: int) -> None:
    for partition, key in enumerate(partition_keys(broker.partitions)):
        record = JournalRecord(id=f"{id}-{partition}", at=1, by="test", whole_at=whole_at)
        broker.land_in(JOURNAL.name, partition, key, encode_record(record))


@asynccontextmanager
async def held() -> AsyncIterator[tuple[MemoryBroker, FastAPI, Any]]:
    broker, port = MemoryBroker(), free_port()
    write(broker, "held", HELD)
    settings = GatewaySettings(kafka_bootstrap="127.0.0.1:1", host="127.0.0.1", grpc_port=port, stop_grace_s=0)
    runtime = Runtime("api-gateway", settings, MemoryConnections(MemoryGroups(broker)))
    runtime.checks["started"] = lambda: "starting"
    app = build_app(runtime, settings.max_http_connections)
    runtime.journal.start()
    runtime.stack.push_async_callback(runtime.journal.stop)
    await runtime.journal.caught_up.wait()
    starting = asyncio.ensure_future(main.start(runtime, settings, app))
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            await asyncio.wait_for(channel.channel_ready(), SOON_S)
            yield broker, app, ControllerServiceStub(channel)
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await runtime.stack.aclose()


async def get(app: FastAPI, path: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        return await client.get(path)


def waiting() -> float | None:
    return REGISTRY.get_sample_value("sluice_calls_held")


async def test_a_call_to_a_held_gateway_is_answered_once_the_journal_is_released() -> None:
    async with held() as (broker, app, stub):
        call = asyncio.ensure_future(stub.checkScopeExists(pb.ScopeInfo(scope="sc")))
        await eventually_async(lambda: waiting() == 1, SOON_S, "the call waits")
        readiness = await get(app, "/readyz")
        assert readiness.status_code == 200, "a process that is not ready gets no calls"
        assert readiness.json()["degraded"]["hold"] == (
            "the journal is held for a migration, until `sluice migrate cut-over` or `release` ends that; 1 calls wait"
        )
        assert (await get(app, "/v1/scopes")).status_code == 503
        assert "1 calls wait" in (await get(app, "/sluice/v1/overview")).json()["detail"]
        assert not call.done()
        write(broker, "released", 1)
        assert not (await call).exists
        assert not (await stub.checkScopeExists(pb.ScopeInfo(scope="sc"))).exists
        assert waiting() == 0 and "hold" not in (await get(app, "/readyz")).json()["degraded"]


async def test_a_call_that_was_held_too_long_fails_so_that_clients_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "HOLD_S", 0.01)
    async with held() as (_broker, _app, stub):
        with pytest.raises(grpc.aio.AioRpcError, match="the journal is held") as refused:
            await stub.checkScopeExists(pb.ScopeInfo(scope="sc"))
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE and waiting() == 0
