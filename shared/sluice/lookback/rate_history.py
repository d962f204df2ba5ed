"""Past rates of a stream's segments, and since when something is unread.

Both are read off the cuts that are sampled where there is a policy, for retention or for scaling.
`sluice.retention` has one a minute, for a week. Between two of them a segment's offsets say how much was written to it.
Only the partition of the stream is read, at most `MAX_RECORDS` records of it in one call, and of others' nothing is
decoded. Rules: background-and-other-workflows 1.6.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import msgspec

from sluice.domain.ids import StreamId
from sluice.domain.segment import epoch_of
from sluice.domain.stream.retention import RetentionReport
from sluice.engine.partition import partition_of
from sluice.kafka.topics import RETENTION
from sluice.lookback.errors import TimeIsOverError
from sluice.lookback.jobs import Job, JobContext
from sluice.lookback.source import KafkaRecord, Span

MAX_RECORDS = 50_000
MAX_BUCKETS = 1_500
MAX_VALUES = 300_000
"""Segments times buckets: where there would be more, the buckets are longer."""

MAX_GAP_MS = 10 * 60_000
"""Between samples further apart nothing is known: the stream had no policy meanwhile, or no service ran."""

_decode = msgspec.json.Decoder(RetentionReport).decode


class RateHistoryQuestion(msgspec.Struct, frozen=True):
    """Of a stream the rates from `from_ms` to `to_ms`, epoch ms; 0 is now. In buckets of about `bucket_ms`."""

    scope: str
    stream: str
    from_ms: int
    to_ms: int
    bucket_ms: int


class UnreadQuestion(msgspec.Struct, frozen=True):
    """Since when is there something unread behind these offsets of a stream? Nothing before `from_ms` is looked at."""

    scope: str
    stream: str
    position: dict[int, int]
    from_ms: int


class Unread(msgspec.Struct, frozen=True):
    """Epoch ms; None if it is not known."""

    since: int | None


class SegmentRates(msgspec.Struct, frozen=True):
    """Bytes a second in each bucket; -1 where they are not known."""

    id: int
    bytes_per_s: list[float]


class RateHistory(msgspec.Struct, frozen=True):
    """Buckets of `bucket_ms` from `from_ms` on; those that have samples of a time before `searched_to` are final.

    `complete` if that is the end of what was requested.
    """

    from_ms: int
    bucket_ms: int
    segments: list[SegmentRates]
    searched_to: int
    complete: bool


class Sample(msgspec.Struct, frozen=True):
    """The stream's end at a time, epoch ms: bytes by segment id."""

    at: int
    cut: Mapping[int, int]


def history_of(samples: Iterable[Sample], from_ms: int, to_ms: int, bucket_ms: int) -> tuple[int, list[SegmentRates]]:
    """The length of a bucket as it came to be, and the rates of all segments that have any; by id.

    In a bucket it is the mean over the part of it that is known. A segment that a later sample is the first to name
    was empty at the earlier one, if it is of a later epoch than all that one names.
    """
    parts = [part for before, after in pairwise(samples) for part in _parts(before, after)]
    ids = sorted({id for id, _, _, _ in parts})
    span = max(to_ms - from_ms, 1)
    most = max(1, min(MAX_BUCKETS, MAX_VALUES // max(len(ids), 1)))
    length = max(bucket_ms, -(-span // most))
    count = -(-span // length)
    known = {id: ([0.0] * count, [0] * count) for id in ids}
    for id, begin, end, rate in parts:
        amounts, times = known[id]
        for at in range(max(begin - from_ms, 0) // length, min(-(-(end - from_ms) // length), count)):
            overlap = min(end, from_ms + (at + 1) * length) - max(begin, from_ms + at * length)
            if overlap > 0:
                amounts[at] += rate * overlap
                times[at] += overlap
    return length, [
        SegmentRates(id, [a / t if t else -1.0 for a, t in zip(amounts, times, strict=True)])
        for id, (amounts, times) in known.items()
    ]


def _parts(before: Sample, after: Sample) -> Iterator[tuple[int, int, int, float]]:
    """Of each segment: its id, from when to when, and bytes a second."""
    span_ms = after.at - before.at
    if not 0 < span_ms <= MAX_GAP_MS:
        return
    newest = max(map(epoch_of, before.cut), default=-1)
    for id, offset in after.cut.items():
        earlier = before.cut.get(id, 0 if epoch_of(id) > newest else None)
        if earlier is not None and offset >= max(earlier, 0):
            yield id, before.at, after.at, (offset - max(earlier, 0)) * 1000 / span_ms


def unread_since(samples: Iterable[Sample], position: Mapping[int, int]) -> int | None:
    """When the first byte behind the position was written, epoch ms; None if nothing is known of that.

    Where that was before the first sample, it is the time of that sample. Between two it is interpolated.
    """
    found: list[int] = []
    ordered = list(samples)
    for id, offset in position.items():
        known = [(sample.at, sample.cut[id]) for sample in ordered if id in sample.cut]
        if not known:
            continue
        behind = next((at for at, (_, length) in enumerate(known) if length > offset), len(known))
        if behind == 0 or behind == len(known):
            # It was written before all samples of the segment, or behind them, since the last one.
            found.append(known[min(behind, len(known) - 1)][0])
            continue
        (begin, shorter), (end, longer) = known[behind - 1], known[behind]
        found.append(begin + round((end - begin) * max(offset - shorter, 0) / (longer - shorter)))
    return min(found, default=None)


def _samples(context: JobContext, stream: StreamId, from_ms: int, to_ms: int) -> tuple[list[Sample], int, bool]:
    """The samples in the order of their times, the last moment that is taken in, and whether that is the end."""
    key = stream.key
    partition = partition_of(key, context.source.partitions(RETENTION.name))
    (span,) = context.source.spans([RETENTION.name], from_ms, to_ms + 1, [partition])
    end = min(span.end, span.start + MAX_RECORDS)
    samples: list[Sample] = []
    is_complete, last_ms = end == span.end, from_ms
    try:
        for record in context.source.read([Span(span.topic, partition, span.start, end)]):
            if isinstance(record, KafkaRecord):
                last_ms = record.at
                if record.key == key and (sample := _sample(record, stream)) is not None:
                    samples.append(sample)
    except TimeIsOverError:
        is_complete = False
    # Several instances may report a stream while it goes from one to another.
    samples.sort(key=lambda one: one.at)
    return samples, to_ms if is_complete else last_ms, is_complete


def _rate_history(context: JobContext, question: RateHistoryQuestion) -> RateHistory:
    to_ms = question.to_ms or context.now_ms
    samples, searched_to, complete = _samples(
        context, StreamId(question.scope, question.stream), question.from_ms, to_ms
    )
    bucket_ms, segments = history_of(samples, question.from_ms, to_ms, question.bucket_ms)
    return RateHistory(question.from_ms, bucket_ms, segments, searched_to, complete)


def _unread_since(context: JobContext, question: UnreadQuestion) -> Unread:
    samples, _, complete = _samples(
        context, StreamId(question.scope, question.stream), question.from_ms, context.now_ms
    )
    # Of a part of them the later ones are missing, which may be those that matter.
    return Unread(unread_since(samples, question.position) if complete else None)


def _sample(record: KafkaRecord, stream: StreamId) -> Sample | None:
    """What is no report is retention-spark's to say; a mark stream has the key of its stream."""
    try:
        report = _decode(record.value or b"")
    except msgspec.DecodeError:
        return None
    if report.sample is None or report.stream_id != stream:
        return None
    return Sample(report.at, report.sample.cut)


UNREAD = Job("unread-since", UnreadQuestion, Unread, _unread_since)
RATE_HISTORY = Job("rate-history", RateHistoryQuestion, RateHistory, _rate_history)
