"""Topics as far back as the archive goes: what Kafka no longer has is read from there.

A source like Kafka's, so that all that reads topics reaches back without knowing of it. Kafka's own records come from
Kafka; of each partition the archive gives those before Kafka's first one, so none comes twice. Headers are not
archived.
"""

from collections.abc import Iterable, Iterator, Sequence

from sluice.archive.layout import ArchiveFile
from sluice.archive.reading import Archive, ArchiveUnreadableError
from sluice.kafka.topics import JOURNAL, RETENTION, SCALE
from sluice.lookback.errors import UnreachableError
from sluice.lookback.source import FollowedSource, KafkaRecord, Span, TopicFacts

ARCHIVED = frozenset((JOURNAL.name, SCALE.name, RETENTION.name))


class ArchivedSource:
    """See Source; `target` is where the archive is. Raises UnreachableError for an archive that cannot be read, too."""

    def __init__(self, kafka: FollowedSource, target: str) -> None:
        self._kafka = kafka
        self._target = target
        self._archives: dict[str, Archive] = {}
        self._begins: dict[tuple[str, int], int] = {}

    def __exit__(self, *error: object) -> None:
        self._kafka.__exit__(*error)

    def topics(self) -> list[TopicFacts]:
        return self._kafka.topics()

    def partitions(self, topic: str) -> int:
        return self._kafka.partitions(topic)

    def id(self, topic: str) -> str:
        return self._kafka.id(topic)

    def spans(
        self,
        topics: Iterable[str],
        since_ms: int | None = None,
        until_ms: int | None = None,
        partitions: Iterable[int] | None = None,
    ) -> list[Span]:
        names = list(topics)
        chosen = None if partitions is None else list(partitions)
        whole = self._kafka.spans([name for name in names if name in ARCHIVED], partitions=chosen)
        self._begins |= {(span.topic, span.partition): span.start for span in whole}
        found = self._kafka.spans(names, since_ms, until_ms, chosen)
        try:
            return [self._extended(span, since_ms, until_ms) for span in found]
        except ArchiveUnreadableError as error:
            raise _unreadable(error) from error

    def read(self, spans: Sequence[Span]) -> Iterator[KafkaRecord | Span]:
        try:
            yield from _in_turn([self._archived(span) for span in spans])
        except ArchiveUnreadableError as error:
            raise _unreadable(error) from error
        yield from self._kafka.read([self._in_kafka(span) for span in spans])

    def follow(self, spans: Sequence[Span]) -> Iterator[KafkaRecord | None]:
        return self._kafka.follow(spans)

    def _extended(self, span: Span, since_ms: int | None, until_ms: int | None) -> Span:
        """The span, with what the archive has of it before Kafka's first record."""
        begin = self._begins.get((span.topic, span.partition), 0)
        if begin == 0:
            return span
        archive = self._archive(span.topic)
        start, end = span.start, span.end
        if until_ms is not None and end == begin:
            end = _before(begin, archive.offset_at(span.partition, until_ms))
        if since_ms is not None:
            start = _before(begin, archive.offset_at(span.partition, since_ms)) if start == begin else start
        elif span.topic == JOURNAL.name:
            start = _unbroken(archive.files(span.partition), min(begin, end))
        else:
            start = min((file.start for file in archive.files(span.partition)), default=begin)
        return Span(span.topic, span.partition, start, end)

    def _archived(self, span: Span) -> Iterator[KafkaRecord]:
        end = min(span.end, self._begins.get((span.topic, span.partition), 0))
        if span.start >= end:
            return
        for one in self._archive(span.topic).read(span.partition, span.start, end):
            yield KafkaRecord(span.topic, one.partition, one.offset, one.at, one.key, one.value)

    def _in_kafka(self, span: Span) -> Span:
        begin = self._begins.get((span.topic, span.partition), 0)
        return Span(span.topic, span.partition, max(span.start, begin), max(span.end, begin))

    def _archive(self, topic: str) -> Archive:
        found = self._archives.get(topic)
        if found is None:
            found = Archive(self._target, topic, self.id(topic), splits_entries=topic == JOURNAL.name)
            self._archives[topic] = found
        return found


def _before(begin: int, offset: int | None) -> int:
    return begin if offset is None else min(offset, begin)


def _unbroken(files: Iterable[ArchiveFile], end: int) -> int:
    """From where on no offset up to `end` is missing: a fold that begins from a snapshot needs nothing before a gap."""
    start = end
    for file in sorted(files, key=lambda one: one.end, reverse=True):
        if file.start < start <= file.end:
            start = file.start
    return start


def _in_turn(partitions: list[Iterator[KafkaRecord]]) -> Iterator[KafkaRecord]:
    """One record of each in turn, as long as it has some: so none runs far ahead of the others."""
    while partitions:
        left = []
        for partition in partitions:
            record = next(partition, None)
            if record is not None:
                yield record
                left.append(partition)
        partitions = left


def _unreadable(error: ArchiveUnreadableError) -> UnreachableError:
    return UnreachableError(f"cannot read the archive: {error}", "SLUICE_ARCHIVE, or the context, says where it is")
