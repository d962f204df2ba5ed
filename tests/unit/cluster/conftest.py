"""Tests of the cluster manager run in virtual time."""

from collections.abc import Mapping

import pytest
from support.virtual_time import VirtualLoop
from unit.cluster.fakes import ClusterWorld


def pytest_asyncio_loop_factories() -> Mapping[str, type[VirtualLoop]]:
    """Part of pytest-asyncio."""
    return {"virtual time": VirtualLoop}


@pytest.fixture
async def world() -> ClusterWorld:
    return ClusterWorld()
