"""What retention-spark knows of a stream, from the reports of the last 7 days: how loaded it is, what it may cut."""

from collections.abc import Iterator

import msgspec

from sluice.domain.ids import StreamId
from sluice.domain.stream.retention import RetentionReport
from sluice.domain.stream.traffic import ScaleReport
from sluice.engine.partition import partition_of
from sluice.insight.reported import Reported, ReportedModel
from sluice.kafka.topics import RETENTION, SCALE
from sluice.lookback.jobs import Job, JobContext
from sluice.lookback.source import Span
from sluice.policies.replay import Record, is_about

MAX_SPAN_MS = 7 * 24 * 3600 * 1000

_scale = msgspec.json.Decoder(ScaleReport)
_retention = msgspec.json.Decoder(RetentionReport)


class ReportedQuestion(msgspec.Struct, frozen=True):
    """Which of the streams of the name, and the segments that are written to."""

    stream: StreamId
    creation_id: str
    segments: frozenset[int]


def reports_on(context: JobContext, stream: StreamId, topic: str, since_ms: int) -> Iterator[Record]:
    """Those that can be read, in the order in which they came; `since_ms` in epoch ms."""
    partition = partition_of(stream.key, context.source.partitions(topic))
    for item in context.source.read(context.source.spans([topic], max(since_ms, 0), partitions=[partition])):
        if isinstance(item, Span) or item.key != stream.key:
            continue
        record = Record(item.at, item.value or b"")
        if is_about(record, stream.name):
            yield record


def reported(context: JobContext, question: ReportedQuestion) -> ReportedModel:
    """Raises LookbackError."""
    found, since = Reported(question.creation_id, question.segments), context.now_ms - MAX_SPAN_MS
    for record in reports_on(context, question.stream, SCALE.name, since):
        found.load(_scale.decode(record.value), record.at)
    for record in reports_on(context, question.stream, RETENTION.name, since):
        found.retention(_retention.decode(record.value))
    return found.shown(context.now_ms)


REPORTED = Job("reported", ReportedQuestion, ReportedModel, reported)
