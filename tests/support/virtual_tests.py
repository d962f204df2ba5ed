"""Async tests that run in virtual time: those that use, directly or not, a fixture called `virtual_time`."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from support.virtual_time import VirtualLoop


def loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """What `pytest_asyncio_loop_factories` of a folder's conftest returns."""
    is_virtual = "virtual_time" in getattr(item, "fixturenames", ())
    return {"loop": VirtualLoop if is_virtual else asyncio.new_event_loop}
