"""All that a process reaches of Kafka, made in one module."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from confluent_kafka import KafkaException, TopicPartition

from sluice.engine.ports import (
    Chance,
    Clock,
    Following,
    GroupProgress,
    Log,
    Message,
    RequestSource,
    Room,
    SnapshotStore,
    SystemChance,
    SystemClock,
    Terms,
    TopicUnreadableError,
)
from sluice.exceptions import in_words
from sluice.kafka.dead_letters import read_dead_letters
from sluice.kafka.group_progress import KafkaGroupProgress
from sluice.kafka.leadership import Leadership
from sluice.kafka.log import KafkaLog
from sluice.kafka.poll_thread import PollThread
from sluice.kafka.producer import KafkaProducer, RecordProducer
from sluice.kafka.reading import read_records
from sluice.kafka.request_source import KafkaRequestSource
from sluice.kafka.snapshots import KafkaSnapshotStore
from sluice.kafka.topics import ensure_topics
from sluice.kafka_config import clients

TOPICS_TIMEOUT_S = 2.0
READ_SILENCE_S = 10.0
_TAIL = -2000
"""Below it logical offsets count from the end, as in librdkafka (`RD_KAFKA_OFFSET_TAIL`)."""

Observe = Callable[[Sequence[Message]], Room]


class Connections(Protocol):
    """The outside of a process, but for the segment stores."""

    @property
    def clock(self) -> Clock: ...

    @property
    def chance(self) -> Chance: ...

    @property
    def producer(self) -> RecordProducer: ...

    @property
    def log(self) -> Log: ...

    @property
    def snapshots(self) -> SnapshotStore | None:
        """Where the journal's snapshots are; None: it is always followed from its begin."""
        ...

    def request_source(self, topic: str, group: str) -> RequestSource:
        """The requests of a topic, as a member of the group."""
        ...

    def ensure_topics(self, replication: int) -> Sequence[str]:
        """See `sluice.kafka.topics`; blocks."""
        ...

    def follow(self, name: str, topic: str, begins: Mapping[int, int], observe: Observe) -> Following:
        """Have `observe` take in these partitions, on the running loop, each from an offset on.

        An offset may be a logical one of Kafka's: OFFSET_BEGINNING, or so many records before the end. If `observe`
        returns a future, only a few more batches come until that is done.
        """
        ...

    async def read_all(self, topic: str) -> Sequence[Message]:
        """The records that a topic with the usual partitions holds. Raises TopicUnreadableError."""
        ...

    def policy_terms(self) -> Terms:
        """Whether this process is the one that decides by policies."""
        ...

    def read_dead_letters(
        self, begin: Mapping[int, int], end: Mapping[int, int], on_message: Callable[[Message], None]
    ) -> None:
        """See `sluice.kafka.dead_letters`; blocks."""
        ...

    def group_progress(self) -> GroupProgress:
        """How far the consumers of all topics of requests are."""
        ...


class KafkaConnections:
    """See Connections. `client` is the common librdkafka configuration, `session_s` that of members of groups.

    For `gather_ms` see KafkaLog.
    """

    def __init__(self, client: dict[str, Any], partitions: int, session_s: float, gather_ms: int = 0) -> None:
        self.clock = SystemClock()
        self.chance = SystemChance()
        self.producer = KafkaProducer(client, partitions)
        self.log = KafkaLog(client, self.producer, partitions, gather_ms=gather_ms)
        self.snapshots = KafkaSnapshotStore(client)
        self._client = client
        self._partitions = partitions
        self._session_s = session_s

    def request_source(self, topic: str, group: str) -> RequestSource:
        """See Connections."""
        return KafkaRequestSource(self._client, topic, group, self._session_s)

    def ensure_topics(self, replication: int) -> Sequence[str]:
        """See Connections."""
        return ensure_topics(self._client, self._partitions, replication, TOPICS_TIMEOUT_S)

    def follow(self, name: str, topic: str, begins: Mapping[int, int], observe: Observe) -> Following:
        """See Connections. Nothing else is requested on its connections, so nothing waits for the end of a fetch."""
        begin = [TopicPartition(topic, partition, offset) for partition, offset in begins.items()]
        reset = "latest" if any(offset <= _TAIL for offset in begins.values()) else "earliest"
        more = {"auto.offset.reset": reset, "fetch.wait.max.ms": 5000}
        config = clients.consumer(self._client, f"sluice-{name}", more)
        poll = PollThread(name, config, lambda consumer: consumer.assign(begin), observe)
        poll.start()
        return poll

    def read_dead_letters(
        self, begin: Mapping[int, int], end: Mapping[int, int], on_message: Callable[[Message], None]
    ) -> None:
        """See Connections."""
        read_dead_letters(self._client, begin, end, on_message)

    async def read_all(self, topic: str) -> Sequence[Message]:
        """See Connections."""
        spans = dict.fromkeys(range(self._partitions), (0, None))
        more = {"auto.offset.reset": "earliest"}
        records = read_records(self._client, "sluice-topic-reader", topic, spans, READ_SILENCE_S, more)
        try:
            return await asyncio.to_thread(list, records)
        except KafkaException as error:
            raise TopicUnreadableError(f"{topic}: {in_words(error)}") from error

    def policy_terms(self) -> Terms:
        """See Connections."""
        return Leadership(self._client, self._session_s)

    def group_progress(self) -> GroupProgress:
        """See Connections."""
        return KafkaGroupProgress(self._client, self._partitions)
