"""Carries what segment stores report of their load from the stream they append it to into the topic of reports.

The owner of the stream's partition reads its segments from the positions in the journal on. A position moves on once
everything before it is in a topic, so nothing is lost and some of it may be sent twice, with the same id. An event
that cannot be read goes to the dead letters; where not even the bounds of events can be read, everything up to the
present end of the segment goes there in one piece, because appends end where events end. When more than `keep_bytes`
have been passed on, the stream is truncated behind them, by a request like a client's.
Rules: segment-store-cluster A9, background-and-other-workflows 0.3.
"""

import logging
from functools import cache

from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.ids import StreamId
from sluice.domain.names import REQUEST_STREAM, SYSTEM_SCOPE
from sluice.domain.policy.internal import decide_reports
from sluice.domain.segment import segment_name
from sluice.domain.stream import traffic
from sluice.domain.stream.commands import TruncateStream
from sluice.domain.stream.state import StreamState, find_stream
from sluice.domain.stream.traffic import Traffic
from sluice.engine.step import all_done
from sluice.pravega.auto_scale_reports import OtherEvent, decode_report
from sluice.pravega.envelope import MalformedPayload
from sluice.pravega.event_frames import MalformedEvents, StoredEvent
from sluice.pravega.store import SegmentStore
from sluice.runtime import Runtime
from sluice.telemetry.metrics import DEAD_LETTERS
from stream_workflows.metrics import REPORTS
from stream_workflows.report_publisher import ReportPublisher
from stream_workflows.segment_events import READ_BYTES, read_events

log = logging.getLogger(__name__)

STREAM = StreamId(SYSTEM_SCOPE, REQUEST_STREAM)
KEY = STREAM.key


class ScaleReports:
    """The job; its one stream is that of the reports."""

    name = "scale-reports"

    def __init__(
        self, runtime: Runtime, store: SegmentStore, publisher: ReportPublisher, interval_s: float, keep_bytes: int
    ) -> None:
        self.interval_s = interval_s
        self._sender = runtime.sender
        self._journal = runtime.journal
        self._store = store
        self._publisher = publisher
        self._keep_bytes = keep_bytes
        DEAD_LETTERS.labels(KEY)  # Exposed as 0 from now on: a rate sees no increase in a first sample.

    def due(self, partitions: frozenset[int]) -> list[StreamId]:
        return [STREAM] if self._journal.partition_of(KEY) in partitions else []

    async def work(self, stream: StreamId) -> None:
        state = find_stream(self._journal.reader(KEY), stream)
        if state is None or state.state is StreamState.CREATING:
            return
        creation_id, positions = state.creation_id, traffic.unforwarded(state)
        await all_done(self._carry(creation_id, segment, at) for segment, at in positions.items())
        await self._truncate(stream)

    async def _carry(self, creation_id: str, segment: int, at: int) -> None:
        """Pass on what the segment holds from `at` on; return at its present end."""
        name = segment_name(*STREAM, segment)
        try:
            async for found in read_events(self._store, name, at):
                await self._pass_on(name, found.events)
                await self._note(creation_id, segment, found.end)
        except MalformedEvents as error:
            await self._note(creation_id, segment, await self._skip(name, error))

    async def _pass_on(self, segment: str, events: list[StoredEvent]) -> None:
        reports, unreadable = [], []
        for event, at, _ in events:
            try:
                reports.append((f"{segment}@{at}", decode_report(event)))
            except OtherEvent as other:
                REPORTS.labels("other").inc()
                log.info("not a traffic report", extra={"segment": segment, "offset": at, "type": other.type})
            except MalformedPayload as error:
                REPORTS.labels("malformed").inc()
                unreadable.append((at, event, str(error)))
        await self._publish(reports)
        await all_done(self._publisher.dead_letter(KEY, segment, *found) for found in unreadable)

    async def _publish(self, reports: list[tuple[str, Traffic]]) -> None:
        """Return when all are in the topic. Reports on streams that are gone are dropped."""
        if not reports:
            return
        partitions = {self._journal.partition_of(found.stream.key) for _, found in reports}
        await self._journal.barrier(partitions.difference(self._journal.failed))
        reporter, known = cache(self._reporter), []
        for id, found in reports:
            report = reporter(found.stream)(found, id)
            if report is None:
                log.info("traffic report on no segment of ours", extra={"id": id, "report": repr(found)})
                REPORTS.labels("unknown-segment").inc()
                continue
            REPORTS.labels("forwarded").inc()
            known.append(report)
        await all_done(self._publisher.publish(report) for report in known)

    def _reporter(self, stream: StreamId) -> traffic.Reporter:
        about = find_stream(self._journal.reader(stream.key), stream)
        return traffic.reporter(about, self._publisher.source) if about is not None else lambda _traffic, _id: None

    async def _skip(self, segment: str, error: MalformedEvents) -> int:
        """Skip everything up to the present end of the segment, and return that; a dead letter has the beginning."""
        end, at = (await self._store.segment_info(segment)).length, error.offset
        data = (await self._store.read_segment(segment, at, min(end - at, READ_BYTES))).data
        REPORTS.labels("malformed").inc()
        await self._publisher.dead_letter(KEY, segment, at, data, f"{error.reason}; {end - at} bytes skipped")
        return end

    async def _note(self, creation_id: str, segment: int, offset: int) -> None:
        def note(reader: Reader, _context: Context) -> Decision:
            return traffic.record_forwarded(reader, STREAM, creation_id, segment, offset)

        await self._journal.propose(KEY, note)

    async def _truncate(self, stream: StreamId) -> None:
        """Request it under an id that follows from the position, so that a retry changes nothing."""
        state = find_stream(self._journal.reader(KEY), stream)
        if state is None or state.workflow is not None or state.state is StreamState.SEALED:
            return
        decided = decide_reports(traffic.forwarded_cut(state), traffic.forwarded_bytes(state), self._keep_bytes)
        if decided.cut is None:
            return
        cut = decided.cut
        command = TruncateStream(*stream, cut=cut)
        id = "-".join(("forwarded", state.creation_id, *(f"{s}@{at}" for s, at in cut.items())))
        await self._sender.send(id, command)
