"""Topics as lists, read by the same questions as Kafka's; and what the services would write into them.

Time is a counter of milliseconds that goes on with every record.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sluice.domain.commands import Command
from sluice.domain.config import StreamConfig
from sluice.domain.decision import Context, Decision
from sluice.domain.ids import StreamId
from sluice.domain.model import DomainModel, JournalEntry, JournalRecord, decode_record, encode_record
from sluice.domain.registry import DECIDE
from sluice.domain.scope.commands import CreateScope
from sluice.domain.stream import decide as streams
from sluice.domain.stream import scale
from sluice.domain.stream.commands import CreateStream
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.transaction.stream_deletion import finish_delete
from sluice.engine.fold import GuardedReader, Outcome, PartitionView
from sluice.engine.partition import partition_keys, partition_of
from sluice.engine.record import Source
from sluice.kafka import topics
from sluice.kafka.headers import cloud_event_headers
from sluice.kafka.requests import Request, decode_request, encode_request
from sluice.lookback.errors import NotFoundError
from sluice.lookback.source import KafkaRecord, Span, TopicFacts

PARTITIONS = 4
BEGAN = 1_700_000_000_000
TOPIC_ID = "0a" * 16

Decide = Callable[[GuardedReader, Context], Decision]


class MemorySource:
    """Kafka's topics; every one that Sluice declares is there."""

    def __init__(self) -> None:
        self.logs = {t.name: [list[KafkaRecord]() for _ in range(t.partitions or PARTITIONS)] for t in topics.TOPICS}
        self.begins: dict[tuple[str, int], int] = {}
        self.now = BEGAN

    def __exit__(self, *_error: object) -> None: ...

    def topics(self) -> list[TopicFacts]:
        return [TopicFacts(n, len(log), sum(map(len, log))) for n, log in sorted(self.logs.items())]

    def partitions(self, topic: str) -> int:
        if topic not in self.logs:
            raise NotFoundError(f"there is no topic {topic}")
        return len(self.logs[topic])

    def id(self, topic: str) -> str:
        self.partitions(topic)
        return TOPIC_ID

    def spans(
        self,
        topics: Iterable[str],
        since_ms: int | None = None,
        until_ms: int | None = None,
        partitions: Iterable[int] | None = None,
    ) -> list[Span]:
        chosen = None if partitions is None else set(partitions)
        return [
            Span(topic, p, max(begin, _first(log, since_ms, 0)), max(begin, _first(log, until_ms, len(log))))
            for topic in topics
            for p, log in enumerate(self.logs[topic])
            if chosen is None or p in chosen
            for begin in (self.begins.get((topic, p), 0),)
        ]

    def trim(self, topic: str, partition: int, offset: int) -> None:
        """Drop what a partition has before an offset."""
        self.begins[topic, partition] = offset

    def read(self, spans: Sequence[Span]) -> Iterator[KafkaRecord | Span]:
        for span in spans:
            assert span.start >= self.begins.get((span.topic, span.partition), 0), "it was trimmed"
            yield from self.logs[span.topic][span.partition][span.start : span.end]
            yield span

    def follow(self, spans: Sequence[Span]) -> Iterator[KafkaRecord | None]:
        at = {(s.topic, s.partition): s.end for s in spans}
        while True:
            for (topic, partition), offset in list(at.items()):
                log = self.logs[topic][partition]
                yield from log[offset:]
                at[topic, partition] = len(log)
            yield None

    def append(
        self,
        topic: str,
        key: str,
        value: bytes | None,
        headers: Iterable[tuple[str, Any]] = (),
        partition: int | None = None,
    ) -> KafkaRecord:
        self.now += 1
        number = partition_of(key, len(self.logs[topic])) if partition is None else partition
        texts = tuple((name, text.decode() if isinstance(text, bytes) else text) for name, text in headers)
        record = KafkaRecord(topic, number, len(self.logs[topic][number]), self.now, key, value, texts)
        self.logs[topic][number].append(record)
        return record


class MemoryTopics:
    """Makes the topics of an empty source anew, and appends to them."""

    def __init__(self, source: MemorySource) -> None:
        self.source = source
        self.unflushed = 0
        self.meanwhile: Callable[[], None] = lambda: None
        """Called before the first record is appended."""

    def create(self, partitions: int, replication: int) -> None:
        assert replication == topics.BROKERS_OWN
        for topic in topics.TOPICS:
            self.source.logs[topic.name] = [[] for _ in range(topic.partitions or partitions)]

    def append(self, topic: str, partition: int, key: str, value: bytes, headers: Any) -> None:
        assert partition_of(key, len(self.source.logs[topic])) == partition
        if not self.unflushed:
            self.meanwhile()
        self.source.append(topic, key, value, headers, partition)
        self.unflushed += 1

    def flush(self) -> dict[int, int]:
        self.unflushed = 0
        return {partition: len(log) for partition, log in enumerate(self.source.logs[topics.JOURNAL.name])}


def _first(log: list[KafkaRecord], at_ms: int | None, otherwise: int) -> int:
    if at_ms is None:
        return otherwise
    return next((record.offset for record in log if record.at >= at_ms), len(log))


def decided(command: Command) -> Decide:
    """The decision on a command of stream-workflows."""
    return lambda reader, context: DECIDE[type(command)](reader, command, context)


class History:
    """Writes what the services write: requests, what they decide of them, and the records of their workflows."""

    def __init__(self) -> None:
        self.source = MemorySource()
        self.views = [
            PartitionView(DomainModel(), key, lambda key: self.view(key), lambda: self.views)
            for key in partition_keys(PARTITIONS)
        ]
        self._records = 0

    @property
    def now(self) -> int:
        return self.source.now

    def view(self, key: str) -> PartitionView:
        """The view of the key's partition."""
        return self.views[partition_of(key, PARTITIONS)]

    def send(self, command: Command, id: str, by: str = "api-gateway/a", principal: str = "") -> KafkaRecord:
        """Put a command on its topic."""
        request = Request(id=id, at=self.now, by=by, command=command, principal=principal)
        headers = cloud_event_headers(type(command).__name__, id, by, self.now, command.key)
        return self.source.append(topics.topic_of(command).name, command.key, encode_request(request), headers)

    def ask(self, command: Command, id: str, by: str = "api-gateway/a", principal: str = "") -> Any:
        """Send a command and have it decided; the reply (`Reply`), if it is replied to at once."""
        sent = self.send(command, id, by, principal)
        return self.decide(command.key, decided(command), id, sent).reply

    def decide(
        self,
        key: str,
        choose: Decide,
        request: str | None = None,
        sent: KafkaRecord | None = None,
    ) -> Decision:
        """Append what is decided, as the journal does; `sent` is the request that this decides."""
        decision, entry = self.entry(key, choose, request, sent)
        if entry.events or entry.reply is not None or entry.source is not None:
            self.append_record(key, entry)
        return decision

    def entry(
        self,
        key: str,
        choose: Decide,
        request: str | None = None,
        sent: KafkaRecord | None = None,
    ) -> tuple[Decision, JournalEntry]:
        """What is decided, and the entry of it that is still to be appended."""
        reader = GuardedReader(self.view(key))
        decision = choose(reader, Context(self.now, request, caught_up=True))
        for event in decision.events:
            reader.get(event.aggregate)
        source = Source(f"{sent.topic}@{TOPIC_ID}", 0, sent.offset) if sent is not None else None
        replied = request if decision.reply is not None else None
        principal = decode_request(sent.value or b"").principal if sent is not None else ""
        return decision, JournalEntry(reader.seen, decision.events, replied, decision.reply, source, principal)

    def append_record(self, key: str, *entries: JournalEntry) -> list[Outcome]:
        """Append a record of the journal and fold it."""
        self._records += 1
        record = JournalRecord(f"record-{self._records}", self.now, "stream-workflows/b", entries)
        headers = cloud_event_headers("Test", record.id, record.by, record.at, key)
        message = self.source.append(topics.JOURNAL.name, key, encode_record(record), headers)
        return self.views[message.partition].fold(record, message.offset, message.at)

    def twin(self, key: str, *, decides: bool = True) -> Outcome:
        """Append the last entry of the key's partition a second time, as another instance that has not seen it.

        Without `decides` it is one that a workflow recorded.
        """
        last = self.source.logs[topics.JOURNAL.name][partition_of(key, PARTITIONS)][-1]
        (entry,) = decode_record(last.value or b"").entries
        assert (entry.source is not None) is decides
        (outcome,) = self.append_record(key, entry)
        return outcome

    def stream(self, scope: str, name: str) -> Stream:
        """The stream as it is now."""
        key = StreamId(scope, name).key
        found = find_stream(self.view(key), StreamId(scope, name))
        assert found is not None, f"{scope}/{name}"
        return found

    def create_stream(self, config: StreamConfig) -> None:
        """`demo/orders`, by the requests "scope" and "create"."""
        self.ask(CreateScope("demo"), "scope")
        self.ask(CreateStream("demo", "orders", config), "create")
        self.finish_create("demo", "orders", "create")

    def finish_create(self, scope: str, stream: str, request: str) -> None:
        self.decide(
            StreamId(scope, stream).key, lambda r, _: streams.finish_create(r, StreamId(scope, stream)), request
        )

    def finish_scale(self, scope: str, stream: str) -> None:
        """The two records of a scale that has begun; they name no request."""
        key = StreamId(scope, stream).key
        self.decide(key, lambda r, _: scale.add_epoch(r, StreamId(scope, stream)))
        workflow = self.stream(scope, stream).workflow
        assert workflow is not None and workflow.replacement is not None
        sizes = dict.fromkeys(workflow.replacement.seals, 100)
        self.decide(key, lambda r, _: scale.finish_scale(r, StreamId(scope, stream), sizes))

    def finish_seal(self, scope: str, stream: str, request: str) -> None:
        self.decide(StreamId(scope, stream).key, lambda r, _: streams.finish_seal(r, StreamId(scope, stream)), request)

    def finish_delete(self, scope: str, stream: str, request: str) -> None:
        self.decide(StreamId(scope, stream).key, lambda r, _: finish_delete(r, StreamId(scope, stream)), request)
