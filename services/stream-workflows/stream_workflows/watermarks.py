"""Watermarks: what is read from and appended to the mark streams.

The mark segment is the truth: a watermark is appended at the very end of the one before, so of two instances that both
believe to own a stream only one goes on. What an instance remembers of a mark segment is dropped whenever anything
went wrong, and read anew; so it does not matter whether an append without a reply was stored.
Rules: background-and-other-workflows 3.3 to 3.6.
"""

import logging
from functools import partial
from itertools import count
from uuid import uuid4, uuid5

import msgspec

from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.ids import StreamId
from sluice.domain.segment import segment_name
from sluice.domain.stream import watermark as rules
from sluice.domain.stream.state import Stream, StreamState, find_stream
from sluice.domain.stream.upper_bound import Watermark
from sluice.domain.stream.watermark import WriterActivity
from sluice.domain.workflow import WorkflowKind
from sluice.engine.journal import Journal
from sluice.pravega.envelope import MalformedPayload
from sluice.pravega.errors import LengthDiffers
from sluice.pravega.store import MARK_ATTRIBUTE, SegmentStore
from sluice.pravega.watermarks import decode_watermark, encode_watermark
from stream_workflows.metrics import WATERMARKS
from stream_workflows.segment_events import read_events
from stream_workflows.stream_index import StreamIndex

log = logging.getLogger(__name__)


class NoMarkStreamError(Exception):
    """The stream has no mark stream to write watermarks to."""


class _MarkSegment(msgspec.Struct):
    """What is known of a mark segment: its last watermark and where that ends, and how far its mark attribute is."""

    segment: str
    mark: int
    end: int
    previous: Watermark | None
    silent_since: dict[str, int]


class Watermarks:
    """The job."""

    name = "watermarks"

    def __init__(self, journal: Journal, store: SegmentStore, index: StreamIndex, interval_s: float) -> None:
        self.interval_s = interval_s
        self._journal = journal
        self._store = store
        self._index = index
        self._clock = journal.clock.now_ms
        self._writer = uuid4()
        """Names this run of the process: no other run may use it, now or later."""
        self._events = count(1)
        self._mark_segments: dict[StreamId, _MarkSegment] = {}

    def due(self, partitions: frozenset[int]) -> list[StreamId]:
        due = self._index.with_writers(partitions)
        self._mark_segments = {stream: self._mark_segments[stream] for stream in due if stream in self._mark_segments}
        return due

    async def work(self, stream: StreamId) -> None:
        found = self._mark_segment(stream)
        if found is None:
            return
        creation_id, segment = found
        segment_state = self._mark_segments.get(stream)
        if segment_state is None or segment_state.segment != segment:
            segment_state = self._mark_segments[stream] = await self._read(segment)
            await self._record(stream, creation_id, segment_state.previous)
        state, now = self._find(stream), self._clock()
        if state is None or state.creation_id != creation_id:
            return
        writer_activity = rules.writer_activity(state, segment_state.previous, segment_state.silent_since, now)
        segment_state.silent_since = writer_activity.silent_since
        watermark = rules.next_watermark(state, writer_activity, segment_state.previous)
        await self._forget(stream, writer_activity)
        if watermark is not None:
            await self._emit(stream, creation_id, segment_state, watermark)

    def _find(self, stream: StreamId) -> Stream | None:
        return find_stream(self._journal.reader(stream.key), stream)

    def _mark_segment(self, stream: StreamId) -> tuple[str, str] | None:
        """The creation id of the stream and the segment that holds its watermarks; None while there is nothing to do.

        Raises NoMarkStreamError.
        """
        state = self._find(stream)
        if state is None or not state.writers or state.state in _NOT_KNOWN or _is_going(state):
            return None
        mark = self._find(stream.mark)
        if mark is None:
            raise NoMarkStreamError(str(stream.mark))
        return state.creation_id, segment_name(*stream.mark, mark.active_epoch.segments[0])

    # The mark segment.

    async def _read(self, segment: str) -> _MarkSegment:
        """Find the last watermark. The mark attribute points before it, and is set first if it is not (3.3)."""
        start = (await self._store.segment_info(segment)).start_offset
        mark = await self._store.attribute(segment, MARK_ATTRIBUTE)
        if mark is None and not await self._store.update_attribute(segment, MARK_ATTRIBUTE, start, None):
            # A store may not have had it at hand, or another instance has just set it.
            mark = await self._store.attribute(segment, MARK_ATTRIBUTE)
        mark = start if mark is None else mark
        end, last = max(mark, start), None
        async for found in read_events(self._store, segment, end):
            readable = (read_watermark(segment, event.data) for event in reversed(found.events))
            end, last = found.end, next((watermark for watermark in readable if watermark is not None), last)
        return _MarkSegment(segment, mark, end, last, {})

    async def _emit(
        self, stream: StreamId, creation_id: str, segment_state: _MarkSegment, watermark: Watermark
    ) -> None:
        """Append the watermark where the previous one ends, then have the mark attribute follow by one (3.6).

        The mark segment stays known only if all of it went well and no other instance has moved the attribute.
        """
        event, before = encode_watermark(watermark), segment_state.end
        del self._mark_segments[stream]
        try:
            end = await self._store.append(
                segment_state.segment,
                uuid5(self._writer, segment_state.segment),
                event,
                event_number=next(self._events),
                expected_offset=before,
            )
        except LengthDiffers:
            WATERMARKS.labels("overtaken").inc()
            log.info("watermark overtaken by another instance", extra={"stream": str(stream)})
            return
        WATERMARKS.labels("emitted").inc()
        await self._record(stream, creation_id, watermark)
        following = before if segment_state.previous is not None else segment_state.mark
        if following == segment_state.mark or await self._store.update_attribute(
            segment_state.segment, MARK_ATTRIBUTE, following, segment_state.mark
        ):
            self._mark_segments[stream] = _MarkSegment(
                segment_state.segment, following, end, watermark, segment_state.silent_since
            )

    # The journal.

    async def _record(self, stream: StreamId, creation_id: str, watermark: Watermark | None) -> None:
        """Record the watermark for the creation of the stream in which its segment was looked up."""
        state = self._find(stream)
        if (
            state is None
            or watermark is None
            or (state.watermark is not None and state.watermark.lower >= watermark.lower)
        ):
            return

        def record(reader: Reader, context: Context) -> Decision:
            return rules.record_emitted(reader, stream, creation_id, watermark, context.now)

        await self._journal.propose(stream.key, record)

    async def _forget(self, stream: StreamId, found: WriterActivity) -> None:
        if found.gone:
            forget = partial(rules.forget_writers, id=stream, gone=found.gone)
            await self._journal.propose(stream.key, lambda reader, _context: forget(reader))


_NOT_KNOWN = (StreamState.CREATING, StreamState.RESTORING)
"""The segments of such a stream are not all known yet, so positions may seem further behind than they are."""


def read_watermark(segment: str, data: bytes) -> Watermark | None:
    """None for an event that is none: clients may write to mark segments, and what they write must stop nothing."""
    try:
        return decode_watermark(data)
    except MalformedPayload as error:
        log.warning("not a watermark", extra={"segment": segment, "error": str(error)})
        return None


def _is_going(stream: Stream) -> bool:
    return stream.workflow is not None and stream.workflow.kind is WorkflowKind.DELETE_STREAM
