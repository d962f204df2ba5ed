"""Tests of the engine run in virtual time."""

from collections.abc import AsyncIterator

import pytest
from support.engine_world import EngineWorld, engine_world
from support.virtual_time import VirtualLoop


def pytest_asyncio_loop_factories() -> dict[str, type[VirtualLoop]]:
    """Part of pytest-asyncio: the loop of every test in this folder."""
    return {"virtual": VirtualLoop}


@pytest.fixture
async def world() -> AsyncIterator[EngineWorld]:
    """One process."""
    async with engine_world() as world:
        yield world
