"""Drops watermarks that no reader can need any more: those behind the head of the stream that they are about.

A stream's marks are looked at when its head has moved, and once when this instance has just come to it. What is decided
is requested like any client's truncation, under an id that follows from where, so a retry changes nothing.
Rules: domain/policy/internal; background-and-other-workflows 3.1, 3.3, 3.6.
"""

from sluice.domain.ids import StreamId
from sluice.domain.policy.internal import InternalDecision, decide_watermarks, is_passed
from sluice.domain.segment import segment_name
from sluice.domain.stream.commands import TruncateStream
from sluice.domain.stream.queries import head
from sluice.domain.stream.state import Stream, StreamState, find_stream
from sluice.pravega.store import SegmentStore
from sluice.runtime import Runtime
from stream_workflows.segment_events import read_events
from stream_workflows.stream_index import StreamIndex
from stream_workflows.watermarks import read_watermark

MAX_WATERMARKS = 10_000
"""Watermarks that are looked at in one round; the next one goes on."""

_HeadPosition = tuple[str, dict[int, int]]


class WatermarkTruncation:
    """The job; `most` bounds the watermarks of one stream that it looks at in a round."""

    name = "marks"

    def __init__(
        self, runtime: Runtime, store: SegmentStore, index: StreamIndex, interval_s: float, most: int = MAX_WATERMARKS
    ) -> None:
        self.interval_s = interval_s
        self._sender = runtime.sender
        self._journal = runtime.journal
        self._store = store
        self._index = index
        self._most = most
        self._done: dict[StreamId, _HeadPosition] = {}

    def due(self, partitions: frozenset[int]) -> list[StreamId]:
        """The streams with watermarks whose head is not where it was when they were last looked at."""
        owned = self._index.with_watermarks_behind(partitions)
        self._done = {stream: self._done[stream] for stream in owned if stream in self._done}
        return [stream for stream in owned if self._done.get(stream) != self._head_position(stream)]

    async def work(self, stream: StreamId) -> None:
        position = self._head_position(stream)
        mark = self._find(stream.mark)
        state = self._find(stream)
        if position is None or state is None or mark is None or not _may_truncate(mark):
            return
        segment = mark.active_epoch.segments[0]
        decision, is_whole = await self._decide(mark, segment, state)
        if decision.cut is not None:
            command = TruncateStream(*mark.id, cut=decision.cut)
            id = f"marks-{mark.creation_id}-{segment}@{decision.cut[segment]}"
            await self._sender.send(id, command)
        if is_whole:
            self._done[stream] = position

    async def _decide(self, mark: Stream, segment: int, stream: Stream) -> tuple[InternalDecision, bool]:
        """What to drop, and whether all watermarks were seen that the head has passed, so that nothing more can go."""
        at = head(stream)
        segments = (stream.history.segment(s) for s in at)
        ranges = {s.id: (s.low, s.high) for s in segments}
        name = segment_name(*mark.id, segment)
        start = (await self._store.segment_info(name)).start_offset
        offsets, passed = list[int](), 0
        async for found in read_events(self._store, name, start):
            for event in found.events:
                # A watermark has a position on each segment of its stream: none is kept.
                if passed == len(offsets):
                    watermark = read_watermark(name, event.data)
                    if watermark is None:
                        continue
                    passed += is_passed(watermark, at, ranges)
                offsets.append(event.start)
            is_whole = passed < len(offsets)
            if is_whole or len(offsets) >= self._most:
                return decide_watermarks(segment, start, offsets, passed), is_whole
        return decide_watermarks(segment, start, offsets, passed), True

    def _find(self, stream: StreamId) -> Stream | None:
        return find_stream(self._journal.reader(stream.key), stream)

    def _head_position(self, stream: StreamId) -> _HeadPosition | None:
        """Where the head of the stream is, in its present creation."""
        state = self._find(stream)
        return (state.creation_id, head(state)) if state is not None else None


def _may_truncate(mark: Stream) -> bool:
    return mark.workflow is None and mark.state not in (StreamState.CREATING, StreamState.SEALED)
