"""A gateway on a real gRPC server, with the services behind it in memory."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc
import pytest_asyncio
from unit.gateway.system import CONTAINERS, MemorySystem

from api_gateway.main import handlers
from api_gateway.reads import Reads
from api_gateway.requests import Requests
from api_gateway.server import ControllerServer
from api_gateway.settings import GatewaySettings
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub
from sluice.kafka.requests import Request

if TYPE_CHECKING:
    # Known to type checkers only.
    from sluice.controller_api.controller_pb2_grpc import ControllerServiceAsyncStub


@dataclass
class Gateway:
    """A served gateway and what stands behind it."""

    system: MemorySystem
    settings: GatewaySettings
    port: int
    channel: grpc.aio.Channel

    @property
    def stub(self) -> "ControllerServiceAsyncStub":
        return ControllerServiceStub(self.channel)

    @property
    def sent(self) -> list[tuple[str, Request]]:
        """The requests of this gateway, each with its topic."""
        return self.system.sent

    @property
    def waiting(self) -> int:
        """How many requests wait for their replies."""
        return self.system.runtime.journal.replies_expected


@pytest_asyncio.fixture
async def gateway() -> AsyncIterator[Gateway]:
    # All that matters here is given, so that the environment of a developer does not.
    settings = GatewaySettings(
        instance="test",
        container_count=CONTAINERS,
        grpc_port=9090,
        grpc_published_host="gw.example",
        grpc_published_port=9090,
        max_pending=2,
        max_calls=100,
        request_timeout_s=30,
    )
    system = MemorySystem(settings)
    await system.start()
    requests = Requests(system.runtime, settings.max_pending, settings.request_timeout_s)
    server = ControllerServer(handlers(Reads(system.runtime.journal), requests, settings), settings.max_calls)
    port = await server.start("127.0.0.1", 0)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Gateway(system, settings, port, channel)
    await server.stop(0)
    await system.stop()
