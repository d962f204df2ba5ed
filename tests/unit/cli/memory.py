"""Topics as lists, read by the same questions as Kafka's; and what the services would write into them.

Time is a counter of milliseconds that goes on with every record.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from sluice.domain.aggregates import DECIDE, evolve, index
from sluice.domain.commands import Command
from sluice.domain.decision import Context, Decision, Reply
from sluice.domain.names import stream_key
from sluice.domain.stream import decide as streams
from sluice.domain.stream import scale
from sluice.domain.stream.state import Stream, find_stream
from sluice.journal.partition_view import GuardedReader, Outcome, PartitionView
from sluice.journal.record import Record, encode_record
from sluice.messaging import topics
from sluice.messaging.partition import partition_of
from sluice.messaging.requests import Request, cloud_event_headers, encode_request
from sluice_cli.errors import RefusedError
from sluice_cli.records.source import KafkaRecord, Span, TopicFacts

PARTITIONS = 4
BEGAN = 1_700_000_000_000


class MemorySource:
    """Kafka's topics; every one that Sluice declares is there."""

    def __init__(self) -> None:
        self.logs = {t.name: [list[KafkaRecord]() for _ in range(t.partitions or PARTITIONS)] for t in topics.TOPICS}
        self.now = BEGAN

    def __exit__(self, *_error: object) -> None: ...

    def topics(self) -> list[TopicFacts]:
        return [TopicFacts(n, len(log), sum(map(len, log))) for n, log in sorted(self.logs.items())]

    def partitions(self, topic: str) -> int:
        if topic not in self.logs:
            raise RefusedError(f"there is no topic {topic}")
        return len(self.logs[topic])

    def spans(
        self,
        topics: Iterable[str],
        since_ms: int | None = None,
        until_ms: int | None = None,
        partitions: Iterable[int] | None = None,
    ) -> list[Span]:
        chosen = None if partitions is None else set(partitions)
        return [
            Span(topic, p, _first(log, since_ms, 0), _first(log, until_ms, len(log)))
            for topic in topics
            for p, log in enumerate(self.logs[topic])
            if chosen is None or p in chosen
        ]

    def read(self, spans: Sequence[Span]) -> Iterator[KafkaRecord | Span]:
        for span in spans:
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
        place = partition_of(key, len(self.logs[topic])) if partition is None else partition
        texts = tuple((name, text.decode() if isinstance(text, bytes) else text) for name, text in headers)
        record = KafkaRecord(topic, place, len(self.logs[topic][place]), self.now, key, value, texts)
        self.logs[topic][place].append(record)
        return record


def _first(log: list[KafkaRecord], at_ms: int | None, otherwise: int) -> int:
    if at_ms is None:
        return otherwise
    return next((record.offset for record in log if record.at >= at_ms), len(log))


class History:
    """Writes what the services write: requests, what they decide of them, and the records of their workflows."""

    def __init__(self) -> None:
        self.source = MemorySource()
        self.views = [PartitionView(evolve, index) for _ in range(PARTITIONS)]
        self._records = 0

    @property
    def now(self) -> int:
        return self.source.now

    def send(self, command: Command, id: str, by: str = "api-gateway/a") -> KafkaRecord:
        """Put a command on its topic."""
        request = Request(id=id, at=self.now, by=by, command=command)
        headers = cloud_event_headers(type(command).__name__, id, by, self.now, command.key)
        return self.source.append(topics.topic_of(command).name, command.key, encode_request(request), headers)

    def ask(self, command: Command, id: str, by: str = "api-gateway/a") -> Reply | None:
        """Send a command and have it decided, and what it passes on, too; the last reply."""
        self.send(command, id, by)
        decision = self.decide(command.key, lambda r, c: DECIDE[type(command)](r, command, c), id)
        replies = [decision.reply, *(self.ask(passed, id, "stream-workflows/b") for passed in decision.sends)]
        return next((reply for reply in reversed(replies) if reply is not None), None)

    def decide(
        self,
        key: str,
        choose: Callable[[GuardedReader, Context], Decision],
        request: str | None = None,
        answers: Callable[[Decision], dict[str, Reply]] | None = None,
    ) -> Decision:
        """Append what is decided, as the journal does; with `answers` as records of several requests are appended."""
        view = self.views[partition_of(key, PARTITIONS)]
        reader = GuardedReader(view)
        decision = choose(reader, Context(self.now, request))
        if not decision.events and decision.reply is None:
            return decision
        for event in decision.events:
            reader.get(event.aggregate)
        told = answers(decision) if answers is not None else {}
        single = answers is None
        self.append_record(
            key,
            Record(
                id=self._next(),
                at=self.now,
                by="stream-workflows/b" if single else "txn-manager/c",
                expect=reader.seen,
                request=request if single else None,
                events=decision.events,
                reply=decision.reply if single else None,
                answers=told,
            ),
        )
        return decision

    def append_record(self, key: str, record: Record) -> Outcome:
        """Append a record of the journal and fold it."""
        headers = cloud_event_headers("Test", record.id, record.by, record.at, key)
        message = self.source.append(topics.JOURNAL.name, key, encode_record(record), headers)
        return self.views[message.partition].fold(record, message.offset, message.at)

    def stale_twin(self, key: str) -> None:
        """Append the last record of the key's partition once more, as another instance that has not seen it."""
        last = self.source.logs[topics.JOURNAL.name][partition_of(key, PARTITIONS)][-1]
        record = msgspec.json.decode(last.value or b"", type=Record)
        assert self.append_record(key, msgspec.structs.replace(record, id=self._next())) is not Outcome.COUNTED

    def stream(self, scope: str, name: str) -> Stream:
        """The stream as it is now."""
        key = stream_key(scope, name)
        found = find_stream(self.views[partition_of(key, PARTITIONS)], scope, name)
        assert found is not None, f"{scope}/{name}"
        return found

    def finish_create(self, scope: str, stream: str, request: str) -> None:
        self.decide(stream_key(scope, stream), lambda r, _: streams.finish_create(r, scope, stream), request)

    def finish_scale(self, scope: str, stream: str) -> None:
        """The two records of a scale that has begun; they name no request."""
        key = stream_key(scope, stream)
        self.decide(key, lambda r, _: scale.add_epoch(r, scope, stream))
        workflow = self.stream(scope, stream).workflow
        assert workflow is not None and workflow.replacement is not None
        sizes = dict.fromkeys(workflow.replacement.seals, 100)
        self.decide(key, lambda r, _: scale.finish_scale(r, scope, stream, sizes))

    def finish_seal(self, scope: str, stream: str, request: str) -> None:
        self.decide(stream_key(scope, stream), lambda r, _: streams.finish_seal(r, scope, stream), request)

    def finish_delete(self, scope: str, stream: str, request: str) -> None:
        self.decide(stream_key(scope, stream), lambda r, _: streams.finish_delete(r, scope, stream), request)

    def _next(self) -> str:
        self._records += 1
        return f"record-{self._records}"
