"""Reports to retention-spark what it needs: policies, cuts over the tail of streams, where readers are.

Two jobs. Samples are taken at long intervals, of the streams whose policy was announced and of those that scale, whose
past rates are read off them; they report everything, also what was not reported before. Of those that only scale, few
of the samples taken while nothing is written are sent, because who looks at a week of rates reads all that were sent.
Changes are reported soon. That a policy has changed, or that there is none any more, is reported until the journal
records the report, because no sample tells of it for certain.
Rules: background-and-other-workflows 1.4.
"""

from collections.abc import Collection, Iterable
from hashlib import blake2b

import msgspec

from sluice.domain.config import RetentionPolicy
from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.ids import StreamId
from sluice.domain.segment import segment_name
from sluice.domain.stream import retention
from sluice.domain.stream.retention import RetentionReport
from sluice.domain.stream.state import Stream, find_stream
from sluice.engine.journal import Journal
from sluice.engine.step import all_done
from sluice.pravega.store import SegmentStore
from stream_workflows.metrics import SAMPLES
from stream_workflows.report_publisher import ReportPublisher
from stream_workflows.stream_index import StreamIndex

UNCHANGED_MS = 5 * 60_000
"""So often one of equal samples is sent: half of `rate_history.MAX_GAP_MS`, which may lie between two for a rate."""


def identified(report: RetentionReport) -> RetentionReport:
    """The report with an id that follows from its content, whichever instance sends it."""
    content = msgspec.json.encode(msgspec.structs.replace(report, id="", by=""))
    return msgspec.structs.replace(report, id=blake2b(content, digest_size=16).hexdigest())


class _RetentionJob:
    def __init__(
        self,
        journal: Journal,
        index: StreamIndex,
        publisher: ReportPublisher,
        interval_s: float,
    ) -> None:
        self.interval_s = interval_s
        self._journal = journal
        self._index = index
        self._publisher = publisher
        self._clock = journal.clock.now_ms

    def _find(self, stream: StreamId) -> Stream | None:
        return find_stream(self._journal.reader(stream.key), stream)

    def _version(self, stream: StreamId) -> int:
        return self._journal.reader(stream.key).version(stream.aggregate)


class _Equal(msgspec.Struct):
    """Equal samples in a row: the last that was sent, whether it was not the first, and the last that was not sent."""

    sent: RetentionReport
    is_repeated: bool = False
    held: RetentionReport | None = None

    def includes(self, report: RetentionReport) -> bool:
        return (report.creation_id, report.sample) == (self.sent.creation_id, self.sent.sample)


class RetentionSamples(_RetentionJob):
    """The job that measures streams."""

    name = "retention-samples"

    def __init__(
        self,
        journal: Journal,
        store: SegmentStore,
        index: StreamIndex,
        publisher: ReportPublisher,
        interval_s: float,
    ) -> None:
        super().__init__(journal, index, publisher, interval_s)
        self._store = store
        self._equal: dict[StreamId, _Equal] = {}

    def due(self, partitions: frozenset[int]) -> Collection[StreamId]:
        due = self._index.sampled(partitions)
        self._equal = {stream: self._equal[stream] for stream in due if stream in self._equal}
        return due

    async def work(self, stream: StreamId) -> None:
        state = self._find(stream)
        if state is None or not retention.is_sampled(state):
            return
        creation_id = state.creation_id
        tail = await self._tail(stream, state.active_epoch.segments)
        # Everything before the cut is older than the time after the measuring; than the time before, it need not be.
        at = self._clock()
        state = self._find(stream)
        if state is None or state.creation_id != creation_id or not retention.is_sampled(state):
            return
        report = retention.report(state, tail, "", self._publisher.source, at, self._version(stream))
        if report is not None:
            await self._send(stream, report)

    async def _send(self, stream: StreamId, report: RetentionReport) -> None:
        """Send the sample; of equal ones in a row without a retention policy the first two, some, and the last.

        Two say that nothing is written any more, the last one says when something was.
        """
        equal = self._equal.pop(stream, None)
        if report.policy is not None:
            await self._publish(report)
        elif equal is None or not equal.includes(report):
            if equal is not None and equal.held is not None:
                await self._publish(equal.held)
            await self._publish(report)
            self._equal[stream] = _Equal(report)
        elif not equal.is_repeated or report.at - equal.sent.at >= UNCHANGED_MS:
            await self._publish(report)
            self._equal[stream] = _Equal(report, is_repeated=True)
        else:
            equal.held = report
            self._equal[stream] = equal

    async def _publish(self, report: RetentionReport) -> None:
        await self._publisher.publish(identified(report))
        SAMPLES.inc()

    async def _tail(self, stream: StreamId, segments: Iterable[int]) -> dict[int, int]:
        """A cut over the segments at their present lengths."""
        ids = list(segments)
        infos = await all_done(self._store.segment_info(segment_name(*stream, s)) for s in ids)
        return {s: info.length for s, info in zip(ids, infos, strict=True)}


class RetentionChanges(_RetentionJob):
    """The job that reports policies, subscribers, heads and deletions as they change."""

    name = "retention-changes"

    def due(self, partitions: frozenset[int]) -> set[StreamId]:
        return {*self._index.unannounced(partitions), *self._index.changed(partitions)}

    async def work(self, stream: StreamId) -> None:
        partition = self._journal.partition_of(stream.key)
        self._index.take_change(partition, stream)
        try:
            await self._publish(stream)
        except BaseException:
            self._index.put_back(partition, stream)
            raise

    async def _publish(self, stream: StreamId) -> None:
        state, at, version = self._find(stream), self._clock(), self._version(stream)
        if state is None:
            await self._publisher.publish(identified(retention.gone(stream, "", self._publisher.source, at, version)))
            return
        creation_id, policy = state.creation_id, state.config.retention
        report = retention.report(state, None, "", self._publisher.source, at, version)
        if report is not None:
            await self._publisher.publish(identified(report))
        if state.announced != policy:
            await self._announced(stream, creation_id, policy)

    async def _announced(self, stream: StreamId, creation_id: str, policy: RetentionPolicy | None) -> None:
        def note(reader: Reader, _context: Context) -> Decision:
            return retention.record_announced(reader, stream, creation_id, policy)

        await self._journal.propose(stream.key, note)
