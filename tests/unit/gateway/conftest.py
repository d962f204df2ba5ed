"""A gateway on a real gRPC server, over a journal in memory."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import grpc
import pytest_asyncio
from unit.gateway.memory import MemoryJournal, MemoryRuntime

from api_gateway.main import handlers
from api_gateway.reads import Reads
from api_gateway.requests import Requests
from api_gateway.server import ControllerServer
from api_gateway.settings import GatewaySettings
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub

if TYPE_CHECKING:
    # Known to type checkers only.
    from sluice.controller_api.controller_pb2_grpc import ControllerServiceAsyncStub


@dataclass
class Gateway:
    """A served gateway and what stands behind it."""

    runtime: MemoryRuntime
    settings: GatewaySettings
    port: int
    channel: grpc.aio.Channel

    @property
    def journal(self) -> MemoryJournal:
        return self.runtime.journal

    @property
    def stub(self) -> "ControllerServiceAsyncStub":
        return ControllerServiceStub(self.channel)


@pytest_asyncio.fixture
async def gateway() -> AsyncIterator[Gateway]:
    # All that matters here is given, so that the environment of a developer does not.
    settings = GatewaySettings(
        instance="gateway-test",
        container_count=4,
        grpc_port=9090,
        grpc_published_host="gw.example",
        grpc_published_port=9090,
        max_pending=2,
        max_calls=100,
        request_timeout_s=30,
    )
    runtime = MemoryRuntime()
    requests = Requests(cast(Any, runtime), settings.max_pending, settings.request_timeout_s)
    served = handlers(Reads(cast(Any, runtime.journal)), requests, settings)
    server = ControllerServer(served, settings.max_calls)
    port = await server.start("127.0.0.1", 0)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Gateway(runtime, settings, port, channel)
    await server.stop(0)
