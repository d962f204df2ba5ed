"""Segments on their segment stores, for callers that have only the gateway. Blocking."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import uuid4

from sluice.domain.segment import segment_name
from sluice.pravega import Host, SegmentStoreClient
from support.controller import Controller

CONTAINERS = 4

T = TypeVar("T")


def on_store(
    client: Controller, stream: tuple[str, str], segment: int, work: Callable[[SegmentStoreClient, str], Awaitable[T]]
) -> T:
    """The result of what is done with a segment on the store that has it."""

    async def connected() -> T:
        address, _, port = client.store_of(*stream, segment).rpartition(":")
        store = SegmentStoreClient(lambda _container: Host(address, int(port)), CONTAINERS)
        try:
            return await work(store, segment_name(*stream, segment))
        finally:
            await store.close()

    return asyncio.run(connected())


def append(client: Controller, stream: tuple[str, str], segment: int, event: bytes) -> int:
    """Append one event; the length of the segment then."""

    async def work(store: SegmentStoreClient, name: str) -> int:
        return await store.append(name, uuid4(), event)

    return on_store(client, stream, segment, work)
