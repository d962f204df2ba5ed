"""All that a process reaches of Kafka, made in one module."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from sluice.engine.ports import (
    Chance,
    Clock,
    Following,
    GroupProgress,
    Log,
    Message,
    RequestSource,
    SnapshotStore,
    SystemChance,
    SystemClock,
)
from sluice.kafka.dead_letters import read_dead_letters
from sluice.kafka.group_progress import KafkaGroupProgress
from sluice.kafka.log import KafkaLog
from sluice.kafka.poll_thread import PollThread
from sluice.kafka.producer import KafkaProducer, RecordProducer
from sluice.kafka.request_source import KafkaRequestSource
from sluice.kafka.snapshots import KafkaSnapshotStore
from sluice.kafka.topics import ensure_topics
from sluice.kafka_config import clients

TOPICS_TIMEOUT_S = 2.0

Observe = Callable[[Sequence[Message]], None]


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
        """Have `observe` take in these partitions, on the running loop, from a logical offset of Kafka's on.

        That is OFFSET_BEGINNING, or so many records before the end: the same for all.
        """
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
        reset = "earliest" if OFFSET_BEGINNING in begins.values() else "latest"
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

    def group_progress(self) -> GroupProgress:
        """See Connections."""
        return KafkaGroupProgress(self._client, self._partitions)
