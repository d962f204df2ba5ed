"""Tests of workflows run in virtual time."""

from support.virtual_time import VirtualLoop


def pytest_asyncio_loop_factories() -> dict[str, type[VirtualLoop]]:
    """Part of pytest-asyncio: the loop of every test in this folder."""
    return {"virtual": VirtualLoop}
