"""Examples are chosen as in all tests, also if these run alone; what needs no sockets runs in virtual time."""

from asyncio import AbstractEventLoop, new_event_loop
from collections.abc import AsyncIterator, Callable

import pytest
from support.effort import load_profile
from support.virtual_time import VirtualLoop
from unit.client.reader_cluster import Cluster

from sluice_client import ScalingPolicy, StreamConfig, open_client

IN_VIRTUAL_TIME = {
    "test_event_reader",
    "test_event_reader_faults",
    "test_events",
    "test_reader_group",
    "test_revisioned_stream",
    "test_segment_input",
    "test_stream_manager",
    "test_synchronizer",
    "test_time_window",
    "test_transaction",
}


load_profile()


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], AbstractEventLoop]]:
    """Part of pytest-asyncio: the loop of a test."""
    return {"loop": VirtualLoop if item.path.stem in IN_VIRTUAL_TIME else new_event_loop}


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with open_client("memory:") as client:
        await client.streams.create_scope("sc")
        await client.streams.create_stream("sc", "st", StreamConfig(ScalingPolicy(min_segments=2)))
        yield Cluster(client)
