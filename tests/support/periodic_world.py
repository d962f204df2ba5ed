"""A world in memory for the periodic work on streams.

Streams come about as far as that work needs them: in the journal, and with their segments in the store.
"""

from sluice.domain.config import StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.names import mark_stream
from sluice.domain.scope.commands import CreateScope
from sluice.domain.segment import segment_name
from sluice.domain.stream import decide, scale
from sluice.domain.stream.commands import CreateStream
from sluice.domain.stream.state import Stream, find_stream
from support.histories import segments_of
from support.memory_world import PARTITIONS, MemoryWorld

ALL = frozenset(range(PARTITIONS))


class PeriodicWorld(MemoryWorld):
    """What users and segment stores do there."""

    def stream(self, scope: str, name: str) -> Stream:
        stream = find_stream(self.view(StreamId(scope, name).key), StreamId(scope, name))
        assert stream is not None
        return stream

    async def create(self, scope: str, name: str, config: StreamConfig, creation_id: str = "r") -> None:
        """The stream and its mark stream, with their segments, in a scope that is made for them."""
        await self.ask(CreateScope(scope))
        await self.ask(CreateStream(scope, name, config), f"{creation_id}-{scope}-{name}")
        await self.do(StreamId(scope, name).key, lambda reader, _: decide.finish_create(reader, StreamId(scope, name)))
        for stream in (name, mark_stream(name)):
            await self.create_segments(scope, stream)

    async def create_segments(self, scope: str, name: str) -> None:
        for segment in segments_of(self.stream(scope, name)):
            await self.store.create_segment(segment_name(scope, name, segment), 0, 0)

    async def finish_scale(self, scope: str, name: str, sizes: dict[int, int]) -> None:
        """Bring the scale that was requested to its end."""
        key = StreamId(scope, name).key
        await self.do(key, lambda reader, _: scale.add_epoch(reader, StreamId(scope, name)))
        await self.create_segments(scope, name)
        await self.do(key, lambda reader, _: scale.finish_scale(reader, StreamId(scope, name), sizes))

    def write(self, scope: str, name: str, segment: int, data: bytes) -> None:
        """Put bytes at the end of a segment, as they are."""
        self.store.segments[segment_name(scope, name, segment)].data += data
