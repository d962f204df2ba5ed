"""Segments on their segment stores, also for callers that have only the gateway; those calls block."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import uuid4

from sluice.domain.segment import segment_name
from sluice.pravega import Host, SegmentStore, SegmentStoreClient
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


async def content(store: SegmentStore, name: str) -> bytes:
    """All that a segment holds. A store may give what was merged into it piece by piece."""
    data, end = b"", (await store.segment_info(name)).length
    while len(data) < end:
        data += (await store.read_segment(name, len(data), end - len(data))).data
    return data


def append(client: Controller, stream: tuple[str, str], segment: int, event: bytes) -> int:
    """Append one event; the length of the segment then."""

    async def work(store: SegmentStoreClient, name: str) -> int:
        return await store.append(name, uuid4(), event)

    return on_store(client, stream, segment, work)
