"""The past of topics in memory: the jobs as they are, done in a thread instead of a helper process."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from sluice.kafka.topics import TOPICS
from sluice.lookback.errors import NotFoundError
from sluice.lookback.folded import FoldedPartitions
from sluice.lookback.jobs import Job, run_job
from sluice.lookback.source import KafkaRecord, Span, TopicFacts
from sluice.memory.broker import MemoryBroker, MemoryMessage

ArgumentsT = TypeVar("ArgumentsT", bound=msgspec.Struct)
ResultT = TypeVar("ResultT")

_NAMES = [topic.name for topic in TOPICS]


class BrokerSource:
    """See Source: the topics of the broker in memory."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    def __exit__(self, *_error: object) -> None: ...

    def topics(self) -> list[TopicFacts]:
        return [TopicFacts(name, self.partitions(name), sum(map(len, self._broker.logs(name)))) for name in _NAMES]

    def partitions(self, topic: str) -> int:
        if topic not in _NAMES:
            raise NotFoundError(f"there is no topic {topic}")
        return self._broker.count(topic)

    def id(self, topic: str) -> str:
        return f"{topic}-{self._broker.topic_id(topic)}"

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
            for p, log in enumerate(self._broker.logs(topic))
            if chosen is None or p in chosen
            for begin in (self._broker.begin(topic, p),)
        ]

    def read(self, spans: Sequence[Span]) -> Iterator[KafkaRecord | Span]:
        for span in spans:
            yield from map(_record, self._broker.log(span.topic, span.partition)[span.start : span.end])
            yield span


def _first(log: list[MemoryMessage], at_ms: int | None, otherwise: int) -> int:
    if at_ms is None:
        return otherwise
    return next((message.offset() for message in log if message.timestamp()[1] >= at_ms), len(log))


def _record(message: MemoryMessage) -> KafkaRecord:
    headers = tuple((name, value.decode()) for name, value in message.headers())
    return KafkaRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key().decode(),
        message.value(),
        headers,
    )


class MemoryLookback:
    """See Lookback; `done` are the names of the jobs that were done."""

    def __init__(self, broker: MemoryBroker) -> None:
        self.done: list[str] = []
        self._broker = broker
        self._folded = FoldedPartitions()

    async def run(self, job: Job[ArgumentsT, ResultT], arguments: ArgumentsT) -> ResultT:
        """What the job comes to, as it would have travelled."""
        self.done.append(job.name)
        source, now_ms = BrokerSource(self._broker), self._broker.now_ms()
        travelled = msgspec.msgpack.decode(msgspec.msgpack.encode(arguments), type=job.arguments)
        result = await asyncio.to_thread(run_job, job, travelled, source, now_ms, self._folded)
        return msgspec.msgpack.decode(msgspec.msgpack.encode(result), type=job.result)
