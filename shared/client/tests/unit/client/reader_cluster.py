"""A stream of two segments in memory, and groups that read it."""

import asyncio
from contextlib import suppress
from typing import Any

from sluice.pravega import InMemorySegmentStore
from sluice.pravega.reader_group_config import GroupConfig
from sluice.pravega.reader_group_state import CreateCheckpoint, GroupState
from sluice_client import Client, Event
from sluice_client.groups.group import ConfigDiffers, ReaderGroup, create_reader_group, open_reader_group
from sluice_client.groups.reader import CheckpointReached, EventReader, Item, open_reader

FIRST, SECOND, THIRD = (f"sc/st/{number}.#epoch.{epoch}" for number, epoch in ((0, 0), (1, 0), (2, 1)))
EARLY, LATE = "c", "hello"
"""Keys of the first and of the second half of the ranges."""
SOON_S = 60.0


class Cluster:
    """`sc/st` with two segments, and groups that read it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        assert isinstance(client.store, InMemorySegmentStore)
        self.store = client.store
        self._writer = client.event_writer("sc", "st")

    async def write(self, key: str, *events: bytes) -> None:
        for event in events:
            self._writer.add(key, event)
        await self._writer.flush()

    async def group(self, **config: Any) -> ReaderGroup:
        """The group of the test, made if it is not there."""
        chosen = GroupConfig(starts={"sc/st": None}, **{"automatic_checkpoint_ms": 0, **config})
        with suppress(ConfigDiffers):
            await create_reader_group(self.client, "sc", "g", chosen)
        return await open_reader_group(self.client, "sc", "g")

    async def reader(self, reader: str, **config: Any) -> EventReader:
        await self.group(**config)
        return await open_reader(self.client, "sc", "g", reader)

    async def state(self) -> GroupState:
        return (await self.group()).shared.state


async def take(reader: EventReader, count: int) -> list[bytes]:
    """The next events, whatever comes between."""
    found: list[bytes] = []
    async with asyncio.timeout(SOON_S):
        while len(found) < count:
            item = await reader.next()
            found += [item.data] if isinstance(item, Event) else []
    return found


async def make_checkpoint(cluster: Cluster, reader: EventReader, name: str) -> None:
    """Has a checkpoint made, which this reader returns next, because it is to look at the group's state again."""
    group = await cluster.group()
    await group.shared.update(lambda _: [CreateCheckpoint(name)])
    await asyncio.sleep(group.shared.state.config.refresh_ms / 1000)
    async with asyncio.timeout(SOON_S):
        while await reader.next() != CheckpointReached(name):
            pass


async def read_all(reader: EventReader) -> list[Item]:
    async with asyncio.timeout(SOON_S):
        return [item async for item in reader]
