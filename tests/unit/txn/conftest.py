"""Tests with a world in memory run in virtual time, those on a real Redis do not."""

import asyncio
from collections.abc import Callable, Iterator, Mapping

import pytest
from support.redis_server import PrivateRedis, private_redis
from support.virtual_tests import loop_factories


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Part of pytest-asyncio."""
    return loop_factories(item)


@pytest.fixture
def virtual_time() -> None:
    """The test's event loop is a VirtualLoop."""


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateRedis]:
    with private_redis() as server:
        yield server
