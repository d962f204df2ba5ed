"""A gateway on a real gRPC server, with the services behind it in memory.

What single RPCs reply is compared with the original in tests/conformance; here is what those cases cannot ask for.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc
import pytest
from pydantic import SecretStr
from support.virtual_tests import loop_factories
from unit.gateway.system import CONTAINERS, MemorySystem

from api_gateway.edge.reads import Reads
from api_gateway.edge.requests import Requests
from api_gateway.edge.security.guard import Guard
from api_gateway.main import handlers
from api_gateway.pravega.bounds import channel_options
from api_gateway.pravega.server import ControllerServer
from api_gateway.settings import GatewaySettings
from sluice.controller_api import controller_pb2 as pb
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub
from sluice.kafka.requests import Request

if TYPE_CHECKING:
    # Known to type checkers only.
    from sluice.controller_api.controller_pb2_grpc import ControllerServiceAsyncStub


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Part of pytest-asyncio."""
    return loop_factories(item)


@pytest.fixture
def virtual_time() -> None:
    """The test's event loop is a VirtualLoop."""


@pytest.fixture
async def deciding(virtual_time: None) -> AsyncIterator[MemorySystem]:
    """A system whose services decide, without a gRPC server before it."""
    system = MemorySystem(GatewaySettings(instance="test"))
    await system.start()
    yield system
    await system.stop()


@pytest.fixture
async def idle(virtual_time: None) -> AsyncIterator[MemorySystem]:
    """One that leaves requests without replies and workflows where they are."""
    system = MemorySystem(GatewaySettings(instance="test"))
    await system.start(deciding=False)
    yield system
    await system.stop()


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


@pytest.fixture
def token_key() -> str:
    """What delegation tokens are signed with; none are in use."""
    return ""


@pytest.fixture
async def gateway(token_key: str) -> AsyncIterator[Gateway]:
    async with served(token_key=token_key) as gateway:
        yield gateway


@asynccontextmanager
async def served(guard: Guard | None = None, token_key: str = "", max_calls: int = 100) -> AsyncIterator[Gateway]:
    """A gateway that is served inside."""
    # All that matters here is given, so that the environment of a developer does not.
    settings = GatewaySettings(
        instance="test",
        container_count=CONTAINERS,
        grpc_port=9090,
        grpc_published_host="gw.example",
        grpc_published_port=9090,
        max_pending=2,
        max_calls=max_calls,
        request_timeout_s=30,
        token_key=SecretStr(token_key),
    )
    system = MemorySystem(settings)
    await system.start()
    requests = Requests(system.runtime, settings.max_pending, settings.request_timeout_s)
    table = handlers(Reads(system.runtime.journal), requests, settings, system.runtime.tokens)
    server = ControllerServer(table, settings.max_calls, guard, channel_options(settings))
    port = await server.start("127.0.0.1", 0)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Gateway(system, settings, port, channel)
    await server.stop(0)
    await system.stop()


@pytest.fixture
async def stream(gateway: Gateway) -> pb.StreamInfo:
    """A stream of two segments, `sc/st`."""
    info = pb.StreamInfo(scope="sc", stream="st")
    await gateway.stub.createScope(pb.ScopeInfo(scope="sc"))
    policy = pb.ScalingPolicy(minNumSegments=2)
    created = await gateway.stub.createStream(pb.StreamConfig(streamInfo=info, scalingPolicy=policy))
    assert created.status == pb.CreateStreamStatus.SUCCESS
    return info
