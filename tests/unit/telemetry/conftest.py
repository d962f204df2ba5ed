"""Tests of what runs over a journal in memory do so in virtual time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import pytest
from support.engine_world import EngineWorld, settle
from support.virtual_tests import loop_factories
from unit.telemetry.spans import Spans, traced


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Part of pytest-asyncio."""
    return loop_factories(item)


@pytest.fixture
def virtual_time() -> None:
    """The test's event loop is a VirtualLoop."""


@pytest.fixture
async def world(virtual_time: None) -> AsyncIterator[EngineWorld]:
    """A journal of counters."""
    world = EngineWorld()
    await settle()
    yield world
    await world.stop()


@pytest.fixture
def spans() -> Iterator[Spans]:
    """Traces are on."""
    with traced() as spans:
        yield spans
