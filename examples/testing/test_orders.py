"""Tests on a Pravega in memory: `pip install "sluice-streams-dev[pytest]"`, and the fixture `sluice_dev` is there."""

import asyncio

from sluice_client import Event, GroupConfig, create_reader_group, open_client, open_reader
from sluice_dev.pytest_plugin import SluiceDev


async def order(controller: str, scope: str, what: bytes) -> list[bytes]:
    """What you test: writes an event and reads the stream to its end."""
    async with open_client(controller) as client:
        await client.streams.create_stream(scope, "orders")
        async with client.event_writer(scope, "orders") as writer:
            await writer.write("a customer", what)
        await client.streams.seal_stream(scope, "orders")
        await create_reader_group(client, scope, "shop", GroupConfig(starts={f"{scope}/orders": None}))
        async with await open_reader(client, scope, "shop", "reader-1") as reader:
            return [item.data async for item in reader if isinstance(item, Event)]


def test_an_order_is_read(sluice_dev: SluiceDev) -> None:
    assert asyncio.run(order(sluice_dev.controller, sluice_dev.scope, b"tea")) == [b"tea"]


def test_each_test_has_a_scope_of_its_own(sluice_dev: SluiceDev) -> None:
    assert asyncio.run(order(sluice_dev.controller, sluice_dev.scope, b"coffee")) == [b"coffee"]
