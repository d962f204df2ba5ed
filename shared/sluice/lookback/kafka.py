"""The topics of a real Kafka.

One consumer that belongs to no group reads all partitions it is given side by side: librdkafka fetches them in
parallel, so what is read at once is bounded by the slowest disk and not by the number of partitions. Belongs to the
thread that made it.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from sluice.exceptions import in_words
from sluice.kafka.offsets import PartitionId, begins_of, ends_of, first_since
from sluice.kafka.reading import LASTING
from sluice.kafka.topic_ids import topic_ids
from sluice.kafka_config import clients
from sluice.lookback.errors import NotFoundError, UnreachableError
from sluice.lookback.source import Headers, KafkaRecord, Span, TopicFacts

ANSWER_S = 5.0
SILENCE_S = 15.0
"""How long the rest of a span may take to come: what is there comes at once, or the broker is away."""

OUTAGE_S = 60.0
"""How long Kafka may be away from a command that follows a topic."""

POLL_S = 0.25
BATCH = 1000


class KafkaSource:
    """Reads the topics behind `bootstrap`; `client` is what all clients have in common, see `clients.common`.

    `name` is that of its consumer, `more` of its configuration. Raises UnreachableError.
    """

    def __init__(
        self, bootstrap: str, client: clients.Client, name: str, more: Mapping[str, Any] = clients.NOTHING
    ) -> None:
        self._bootstrap = bootstrap
        self._readings = 0
        self._passed_over = ""
        try:
            self._admin = AdminClient(clients.admin(client))
            self._consumer = Consumer(
                clients.consumer(client, name, {"enable.partition.eof": True, "fetch.wait.max.ms": 50, **more})
            )
        except KafkaException as error:
            raise self._unreachable(error) from error
        self._ask_anew()

    def __exit__(self, *_error: object) -> None:
        self._consumer.close()

    def topics(self) -> list[TopicFacts]:
        self._ask_anew()
        names = sorted(name for name in self._sizes if not name.startswith("__"))
        lengths = dict.fromkeys(names, 0)
        for span in self.spans(names):
            lengths[span.topic] += span.length
        return [TopicFacts(name, self._sizes[name], lengths[name]) for name in names]

    def partitions(self, topic: str) -> int:
        if topic not in self._sizes:
            self._ask_anew()
        found = self._sizes.get(topic)
        if found is None:
            raise NotFoundError(f"there is no topic {topic}", "`sluice topic list` shows the topics there are")
        return found

    def id(self, topic: str) -> str:
        self.partitions(topic)
        try:
            return topic_ids(self._admin, [topic], ANSWER_S)[topic]
        except KafkaException as error:
            raise self._unreachable(error) from error

    def spans(
        self,
        topics: Iterable[str],
        since_ms: int | None = None,
        until_ms: int | None = None,
        partitions: Iterable[int] | None = None,
    ) -> list[Span]:
        chosen = None if partitions is None else set(partitions)
        every = [(t, p) for t in topics for p in range(self.partitions(t)) if chosen is None or p in chosen]
        try:
            ends = ends_of(self._admin, every, ANSWER_S)
            starts = self._first(every, since_ms) if since_ms is not None else begins_of(self._admin, every, ANSWER_S)
            stops = ends if until_ms is None else self._first(every, until_ms)
        except KafkaException as error:
            raise self._unreachable(error) from error
        return [Span(*at, _found(starts[at], ends[at]), _found(stops[at], ends[at])) for at in every]

    def read(self, spans: Sequence[Span]) -> Iterator[KafkaRecord | Span]:
        open_ones = {(span.topic, span.partition): span for span in spans if span.length}
        yield from (span for span in spans if not span.length)
        self._readings += 1
        reading = self._readings
        self._consumer.assign([TopicPartition(s.topic, s.partition, s.start) for s in open_ones.values()])
        try:
            yield from self._read(open_ones)
        finally:
            # A reading that was left early may end after the next one has begun.
            if reading == self._readings:
                self._consumer.unassign()

    def _read(self, open_ones: dict[tuple[str, int], Span]) -> Iterator[KafkaRecord | Span]:
        last_received = time.monotonic()
        while open_ones:
            messages = self._consume()
            if messages:
                last_received = time.monotonic()
            elif time.monotonic() - last_received > SILENCE_S:
                raise UnreachableError(
                    f"Kafka at {self._bootstrap} has sent nothing for {SILENCE_S:g} s{self._passed_over}",
                    "try again once it answers",
                )
            for message in messages:
                tp = (message.topic() or "", message.partition() or 0)
                span = open_ones.get(tp)
                if span is None:
                    continue
                if message.error() is not None:
                    # A leader that is new may for a moment know less than what was acknowledged.
                    if (message.offset() or 0) >= span.end:
                        yield open_ones.pop(tp)
                    continue
                record = _record(message)
                if record.offset < span.end:
                    yield record
                if record.offset >= span.end - 1:
                    yield open_ones.pop(tp)

    def follow(self, spans: Sequence[Span]) -> Iterator[KafkaRecord | None]:
        self._consumer.assign([TopicPartition(s.topic, s.partition, s.end) for s in spans])
        last_received = checked = time.monotonic()
        while True:
            messages = [m for m in self._consume() if m.error() is None]
            yield from map(_record, messages)
            now = time.monotonic()
            if messages:
                last_received = checked = now
            else:
                yield None
            # A topic in which nothing happens and a broker that is away look alike, so this calls it.
            if now - checked > SILENCE_S:
                failure = self._failure()
                checked = time.monotonic()
                if failure is None:
                    last_received = checked
                elif checked - last_received > OUTAGE_S:
                    raise self._unreachable(failure) from failure

    def _ask_anew(self) -> None:
        """Which topics there are: some may have been made since."""
        try:
            self._sizes = self._partition_counts()
        except KafkaException as error:
            raise self._unreachable(error) from error

    def _failure(self) -> KafkaException | None:
        """Why Kafka does not answer, None if it does."""
        try:
            self._partition_counts()
        except KafkaException as error:
            return error
        return None

    def _consume(self) -> list[Message]:
        """What is there, and the marks of partitions' ends. What passes, the client rides out by itself."""
        found = []
        for message in self._consumer.consume(BATCH, POLL_S):
            error = message.error()
            if error is None or error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - that is its public name
                found.append(message)
            elif error.code() in LASTING:
                raise self._unreachable(KafkaException(error))
            else:
                self._passed_over = f": {error.str()}"
        return found

    def _partition_counts(self) -> dict[str, int]:
        return {name: len(topic.partitions) for name, topic in self._admin.list_topics(timeout=ANSWER_S).topics.items()}

    def _first(self, partitions: Iterable[PartitionId], since_ms: int) -> dict[PartitionId, int]:
        return first_since(self._admin, dict.fromkeys(partitions, since_ms), ANSWER_S)

    def _unreachable(self, error: KafkaException) -> UnreachableError:
        return UnreachableError(
            f"cannot read from Kafka at {self._bootstrap}: {in_words(error)}",
            "is it running (`make status`, `kubectl get pods`)? "
            "SLUICE_KAFKA_BOOTSTRAP, or --kafka HOST:PORT, says where it is",
        )


def _found(offset: int, end: int) -> int:
    """Kafka answers -1 where no record is as late as that."""
    return end if offset < 0 else min(offset, end)


def _record(message: Message) -> KafkaRecord:
    return KafkaRecord(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        at=message.timestamp()[1],
        key=_text(message.key()),
        value=_bytes(message.value()),
        headers=_headers(message.headers()),
    )


def _headers(headers: Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]] | None) -> Headers:
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    return tuple((name, _text(value)) for name, value in pairs)


def _text(value: str | bytes | None) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value or ""


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
