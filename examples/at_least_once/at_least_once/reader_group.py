"""A reader group over a state synchronizer: `group_state` with a stream behind it.

Concurrency: calls may run side by side.
"""

from collections.abc import Iterable, Mapping

from at_least_once.group_state import (
    Decision,
    GroupState,
    Update,
    begin,
    come_online,
    complete,
    evolve,
    go_offline,
    rebalance,
    record,
)
from at_least_once.streams import open_state_stream
from sluice_client import Client, JsonCodec, RevisionedStream, Start, StateSynchronizer


class ReaderGroup:
    """Who reads what. Every call raises ClientError or SegmentStoreError if the stream cannot be reached."""

    def __init__(self, stream: RevisionedStream) -> None:
        updates: JsonCodec[Update] = JsonCodec(Update)
        self._shared: StateSynchronizer[GroupState, Update] = StateSynchronizer(
            stream, initial=GroupState, apply=evolve, state_codec=JsonCodec(GroupState), update_codec=updates
        )

    @classmethod
    async def open(cls, client: Client, scope: str, group: str) -> "ReaderGroup":
        """A group; makes its stream if it is not there."""
        return cls(await open_state_stream(client, scope, f"{group}-readers"))

    async def fetch(self) -> GroupState:
        """The newest state."""
        return await self._shared.fetch()

    async def begin(self, start: Start) -> None:
        """Says where reading begins; the first who says it counts."""
        await self._update(begin(start.segments, start.waiting))

    async def come_online(self, reader: str) -> None:
        """Adds a reader under a name that none had before."""
        await self._update(come_online(reader))

    async def go_offline(self, readers: Iterable[str]) -> None:
        """Gives the segments of readers back at their recorded offsets."""
        await self._update(go_offline(list(readers)))

    async def rebalance(self, reader: str) -> GroupState:
        """Takes segments or gives one back; returns the state after that. Raises NotOnline."""
        return await self._update(rebalance(reader))

    async def record(self, reader: str, positions: Mapping[str, int]) -> None:
        """Everything before these offsets is done. Raises NotOnline, NotTheReader."""
        await self._update(record(reader, positions))

    async def complete(self, reader: str, segment: str, successors: Mapping[str, Iterable[str]]) -> None:
        """A segment was read to its end. Raises NotOnline, NotTheReader."""
        await self._update(complete(reader, segment, successors))

    async def compact(self) -> None:
        """Shortens the stream."""
        await self._shared.compact()

    async def _update(self, decision: Decision) -> GroupState:
        return await self._shared.update(decision)
