"""The HTTP application with all that stands behind it in memory."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from unit.gateway.rest.world import World

from sluice.memory.broker import MemoryBroker


@pytest.fixture
async def broker() -> MemoryBroker | None:
    """What the world stands on, where a test has one of its own."""
    return None


@pytest.fixture
async def world(broker: MemoryBroker | None) -> AsyncIterator[World]:
    world = World(broker=broker)
    await world.start()
    transport = httpx.ASGITransport(world.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        world.client = client
        yield world
    await world.stop()


@pytest.fixture
async def scope(world: World) -> str:
    """A scope that is there, `sc`."""
    assert (await world.call("PUT", "/sluice/v1/scopes/sc")).status_code == 201
    return "sc"


@pytest.fixture
async def stream(world: World, scope: str) -> str:
    """The path of a stream of two segments, `sc/st`."""
    path = f"/sluice/v1/scopes/{scope}/streams/st"
    body: Any = {"scaling": {"type": "fixed", "minSegments": 2}}
    assert (await world.call("PUT", path, body)).status_code == 201
    return path
