"""What grows: of each topic its records, their bytes, and the oldest one.

Kafka's clients cannot ask how many bytes a partition has, so some records of its begin and of its end are read, and the
others taken to be like them. Bytes are those of keys and values as they are read: on disk they are compressed, and
there once for each replica.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from sluice.kafka.topics import TOPICS
from sluice.lookback.source import KafkaRecord, Source, Span

SAMPLE = 20
"""Records read at each end of a partition."""

_DECLARED = {topic.name: topic for topic in TOPICS}


class _Sample(msgspec.Struct):
    records: int = 0
    bytes: int = 0
    oldest: int | None = None


def topic_sizes(source: Source) -> list[dict[str, Any]]:
    """The topics, the largest first."""
    spans = source.spans([topic.name for topic in source.topics()])
    samples = {(span.topic, span.partition): _Sample() for span in spans}
    for part in (_heads(spans), _tails(spans)):
        for item in source.read(part):
            if isinstance(item, KafkaRecord):
                _take(samples[item.topic, item.partition], item)
    names = dict.fromkeys(span.topic for span in spans)
    found = [_document(name, [s for s in spans if s.topic == name], samples) for name in names]
    return sorted(found, key=lambda document: (-document["bytes"], document["topic"]))


def _heads(spans: Iterable[Span]) -> list[Span]:
    return [msgspec.structs.replace(s, end=min(s.end, s.start + SAMPLE)) for s in spans if s.length]


def _tails(spans: Iterable[Span]) -> list[Span]:
    """The last records that are not among the first ones."""
    return [msgspec.structs.replace(s, start=max(s.start + SAMPLE, s.end - SAMPLE)) for s in spans if s.length > SAMPLE]


def _take(sample: _Sample, record: KafkaRecord) -> None:
    sample.records += 1
    sample.bytes += len(record.key) + len(record.value or b"")
    sample.oldest = record.at if sample.oldest is None else min(sample.oldest, record.at)


def _bytes(span: Span, sample: _Sample) -> int:
    return round(span.length * sample.bytes / sample.records) if sample.records else 0


def _document(name: str, spans: Sequence[Span], samples: dict[tuple[str, int], _Sample]) -> dict[str, Any]:
    of_partitions = [
        {
            "partition": span.partition,
            "begin": span.start,
            "end": span.end,
            "bytes": _bytes(span, samples[name, span.partition]),
            "oldest": samples[name, span.partition].oldest,
        }
        for span in spans
    ]
    declared = _DECLARED.get(name)
    return {
        "topic": name,
        "records": sum(span.length for span in spans),
        "bytes": sum(one["bytes"] or 0 for one in of_partitions),
        "oldest": min((one["oldest"] for one in of_partitions if one["oldest"] is not None), default=None),
        "bound": declared.bound if declared is not None else None,
        "partitions": of_partitions,
    }
