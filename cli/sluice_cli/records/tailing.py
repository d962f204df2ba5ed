"""Following one topic: where to begin, what to show, in which order."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from sluice.kafka.topics import TOPICS
from sluice.lookback.decoding import Decoded, decode
from sluice.lookback.source import FollowedSource, KafkaRecord, Source, TopicFacts, by_time
from sluice.lookback.times import show_time, time_of
from sluice.lookback.wording import line

_PREFIX = "sluice."
_DECLARED = {topic.name: topic for topic in TOPICS}


class Filter(msgspec.Struct, frozen=True):
    """What to show; None shows all. A record that cannot be decoded is shown unless it says itself that it is other."""

    stream: str | None = None
    request: str | None = None
    types: tuple[str, ...] = ()

    def takes(self, found: Decoded) -> bool:
        return self._takes_name(found) and self._takes_request(found) and self._takes_type(found)

    def _takes_name(self, found: Decoded) -> bool:
        return self.stream is None or self.stream in found.names or (found.content is None and not found.names)

    def _takes_request(self, found: Decoded) -> bool:
        if self.request is None or self.request in found.requests:
            return True
        return found.content is None and not found.requests and self.request.encode() in (found.record.value or b"")

    def _takes_type(self, found: Decoded) -> bool:
        if not self.types or not set(self.types).isdisjoint(found.types):
            return True
        return found.content is None and not found.types


def full_name(topic: str, source: Source) -> str:
    """The topic's whole name; `sluice.` may be left out. Raises RefusedError if there is none."""
    name = topic if topic.startswith(_PREFIX) or f"{_PREFIX}{topic}" not in _DECLARED else f"{_PREFIX}{topic}"
    source.partitions(name)
    return name


def tailed(
    source: FollowedSource, topic: str, begin: str, now_ms: int, wanted: Filter, count: int | None, *, follow: bool
) -> Iterator[Decoded]:
    """The topic's records from `begin` on ("start", "end" or a time): those there are by time, then as they come."""
    found = (decode(record) for record in _records(source, topic, begin, now_ms, follow=follow))
    return islice((one for one in found if wanted.takes(one)), count)


def _records(source: FollowedSource, topic: str, begin: str, now_ms: int, *, follow: bool) -> Iterator[KafkaRecord]:
    since = None if begin in ("start", "end") else time_of(begin, now_ms)
    spans = source.spans([topic], since_ms=since)
    if begin != "end":
        yield from by_time(source.read(spans), spans)
    if follow:
        yield from (record for record in source.follow(spans) if record is not None)


def line_of(found: Decoded) -> str:
    """A record as one line."""
    record = found.record
    return f"{show_time(record.at)}  {record.partition}@{record.offset}  {line(found)}"


def topic_documents(facts: Iterable[TopicFacts]) -> list[dict[str, Any]]:
    """The topics with what they are declared for; others only with what Kafka says."""
    return [{"topic": f.name, "partitions": f.partitions, "records": f.records, **_declared(f.name)} for f in facts]


def _declared(name: str) -> dict[str, Any]:
    topic = _DECLARED.get(name)
    if topic is None:
        return {}
    return {
        "key": topic.key,
        "holds": topic.holds,
        "writtenBy": list(topic.written_by),
        "readBy": list(topic.read_by),
        "retentionMs": topic.retention_ms,
        "cleanup": topic.cleanup,
    }
