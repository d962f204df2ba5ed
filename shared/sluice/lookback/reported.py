"""What retention-spark knows of a stream, from the reports of the last 7 days: how loaded it is, what it may cut.

Those of the last day are read first, for they say most: where there is no time for all, what is known is of them.
"""

from collections.abc import Iterator

import msgspec

from sluice.domain.ids import StreamId
from sluice.domain.stream.retention import RetentionReport
from sluice.domain.stream.traffic import ScaleReport
from sluice.engine.partition import partition_of
from sluice.insight.reported import Reported, ReportedModel
from sluice.kafka.topics import RETENTION, SCALE
from sluice.lookback.errors import TimeIsOverError
from sluice.lookback.jobs import Job, JobContext
from sluice.lookback.source import Span
from sluice.policies.replay import Record, is_about

MAX_SPAN_MS = 7 * 24 * 3600 * 1000
DAY_MS = 24 * 3600 * 1000

_scale = msgspec.json.Decoder(ScaleReport)
_retention = msgspec.json.Decoder(RetentionReport)


class ReportedQuestion(msgspec.Struct, frozen=True):
    """Which of the streams of the name, and the segments that are written to."""

    stream: StreamId
    creation_id: str
    segments: frozenset[int]


def reports_on(
    context: JobContext, stream: StreamId, topic: str, since_ms: int, until_ms: int | None = None
) -> Iterator[Record]:
    """Those that can be read, in the order in which they came, of [`since_ms`, `until_ms`), epoch ms."""
    partition = partition_of(stream.key, context.source.partitions(topic))
    for item in context.source.read(context.source.spans([topic], max(since_ms, 0), until_ms, [partition])):
        if isinstance(item, Span) or item.key != stream.key:
            continue
        record = Record(item.at, item.value or b"")
        if is_about(record, stream.name):
            yield record


def reported(context: JobContext, question: ReportedQuestion) -> ReportedModel:
    """Raises LookbackError, which is TimeIsOverError if not even those of the last day can be read in time."""
    week, day = context.now_ms - MAX_SPAN_MS, context.now_ms - DAY_MS
    topics = (SCALE.name, RETENTION.name)
    reports, searched_to = {topic: list(reports_on(context, question.stream, topic, day)) for topic in topics}, day
    try:
        before = {topic: list(reports_on(context, question.stream, topic, week, day)) for topic in topics}
        reports, searched_to = {topic: before[topic] + reports[topic] for topic in topics}, week
    except TimeIsOverError:
        pass
    known = Reported(question.creation_id, question.segments)
    for record in reports[SCALE.name]:
        known.load(_scale.decode(record.value), record.at)
    for record in reports[RETENTION.name]:
        known.retention(_retention.decode(record.value))
    return known.shown(context.now_ms, searched_to, complete=searched_to == week)


REPORTED = Job("reported", ReportedQuestion, ReportedModel, reported)
