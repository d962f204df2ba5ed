"""All that a process reaches of Kafka, made in one module."""

import asyncio
from typing import Any, Protocol

from sluice.engine.ports import (
    Chance,
    Clock,
    Log,
    RequestSource,
    SnapshotStore,
    SystemChance,
    SystemClock,
)
from sluice.kafka.headers import Headers
from sluice.kafka.log import KafkaLog
from sluice.kafka.producer import KafkaProducer
from sluice.kafka.request_source import KafkaRequestSource
from sluice.kafka.snapshots import KafkaSnapshotStore


class RecordProducer(Protocol):
    """See KafkaProducer."""

    def start(self) -> None: ...

    def stop(self, timeout_s: float = 5.0) -> None: ...

    def send(self, topic: str, key: str, value: bytes, headers: Headers) -> asyncio.Future[None]: ...


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
        self._session_s = session_s

    def request_source(self, topic: str, group: str) -> RequestSource:
        """See Connections."""
        return KafkaRequestSource(self._client, topic, group, self._session_s)
