"""What the engine runs over in these tests: the twin in memory, or a real Kafka, with topics of the test's own.

A world gives logs, sources and producers, and does to them what a test asks for. Everything belongs to the loop.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, cast
from uuid import uuid4

import msgspec
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from support.counters import CounterEntry, CounterModel, add
from support.wait import eventually_async

from harness import System
from sluice.engine.consumer import Continuation, Delivery, RequestConsumer
from sluice.engine.journal import Journal
from sluice.engine.partition import partition_of
from sluice.engine.ports import Log, RequestSource, SnapshotStore
from sluice.kafka.log import KafkaLog
from sluice.kafka.producer import KafkaProducer, RecordProducer
from sluice.kafka.request_source import KafkaRequestSource
from sluice.kafka.snapshots import KafkaSnapshotStore
from sluice.kafka.topics import JOURNAL
from sluice.memory.broker import MemoryBroker
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.memory.snapshots import MemorySnapshotStore

PARTITIONS = 4
MAX_BYTES = 50_000
SESSION_S = 6.0
DEADLINE_S = 120.0
"""As in the tests of faults: on a loaded machine a restarted broker takes its time to be let in again."""


class World(Protocol):
    """`producer` serves those that have none of their own."""

    @property
    def topic(self) -> str: ...

    @property
    def producer(self) -> RecordProducer: ...

    def log(self) -> Log:
        """One more follower of the journal."""
        ...

    def snapshots(self) -> SnapshotStore:
        """Where its snapshots are."""
        ...

    def source(self) -> RequestSource:
        """One more member of the group that reads the requests; it joins when it is started."""
        ...

    async def lose_commits(self) -> None:
        """What the group has committed is gone. It has no member now."""
        ...

    async def recreate(self) -> None:
        """Delete the topic of requests and create it anew."""
        ...

    async def change_leader(self) -> None:
        """What is appended from now on has another leader."""
        ...

    def outage(self) -> AbstractAsyncContextManager[None]:
        """Inside, the broker does not answer."""
        ...

    async def stop(self) -> None: ...


class MemoryWorld:
    """See World. Whatever is on its way takes a little, by chance."""

    def __init__(self) -> None:
        self.broker = MemoryBroker(PARTITIONS, random.Random(7), (0.0, 0.001, 0.02), max_bytes=MAX_BYTES)
        self.topic = "requests"
        self._groups = MemoryGroups(self.broker)
        self.producer = MemoryConnections(self._groups).producer

    def log(self) -> Log:
        return MemoryConnections(self._groups).log

    def snapshots(self) -> SnapshotStore:
        return MemorySnapshotStore(self.broker)

    def source(self) -> RequestSource:
        return MemoryConnections(self._groups).request_source(self.topic, "g")

    async def lose_commits(self) -> None:
        self._groups.group(self.topic).lose_offsets()

    async def recreate(self) -> None:
        self.broker.recreate(self.topic)

    async def change_leader(self) -> None:
        for partition in range(PARTITIONS):
            self.broker.change_leader(self.topic, partition)

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        self.broker.go_away(3600)
        yield
        self.broker.come_back()

    async def stop(self) -> None:
        pass


class KafkaWorld:
    """See World. The broker is one that nothing else needs, so it may be frozen and restarted."""

    def __init__(self, broker: System, admin: AdminClient) -> None:
        self.topic = f"requests-{uuid4().hex}"
        self._journal = f"journal-{uuid4().hex}"
        self._notes, self._chunks = f"notes-{uuid4().hex}", f"chunks-{uuid4().hex}"
        self._has_snapshots = False
        self._group = uuid4().hex
        self._broker = broker
        self._client: dict[str, Any] = {"bootstrap.servers": broker.kafka_bootstrap, "log_level": 2}
        self._admin = admin
        self._create(self.topic, self._journal)
        self.producer = KafkaProducer(self._client, PARTITIONS)
        self.producer.start()

    def log(self, gather_ms: int = 0) -> Log:
        return KafkaLog(self._client, self.producer, PARTITIONS, self._journal, gather_ms)

    def snapshots(self) -> SnapshotStore:
        if not self._has_snapshots:
            self._has_snapshots = True
            self._create(self._notes, self._chunks)
        return KafkaSnapshotStore(self._client, self._notes, self._chunks)

    def source(self) -> RequestSource:
        return KafkaRequestSource(self._client, self.topic, self._group, SESSION_S)

    async def lose_commits(self) -> None:
        begin = [TopicPartition(self.topic, p, 0) for p in range(PARTITIONS)]
        wanted = [ConsumerGroupTopicPartitions(self._group, begin)]

        async def are_lost() -> bool:
            answers = self._admin.alter_consumer_group_offsets(wanted, request_timeout=DEADLINE_S)
            result = await asyncio.to_thread(answers[self._group].result, DEADLINE_S)
            return all(p.error is None for p in result.topic_partitions)

        await eventually_async(cast(Callable[[], object], are_lost), DEADLINE_S, "the group has begun anew")

    async def recreate(self) -> None:
        deleted = self._admin.delete_topics([self.topic], operation_timeout=DEADLINE_S)
        await asyncio.to_thread(deleted[self.topic].result, DEADLINE_S)

        def is_there() -> bool:
            self._create(self.topic)
            return True

        await eventually_async(is_there, DEADLINE_S, "the topic is there anew")

    async def change_leader(self) -> None:
        await asyncio.to_thread(self._broker.restart, "kafka")

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        await asyncio.to_thread(self._broker.freeze, "kafka")
        try:
            yield
        finally:
            self._broker.thaw("kafka")

    async def stop(self) -> None:
        await asyncio.to_thread(self.producer.stop)
        of_snapshots = [self._notes, self._chunks] if self._has_snapshots else []
        self._admin.delete_topics([self.topic, self._journal, *of_snapshots])

    def _create(self, *topics: str) -> None:
        config = {**JOURNAL.config(), "max.message.bytes": str(MAX_BYTES)}
        created = self._admin.create_topics([NewTopic(name, PARTITIONS, 1, config=config) for name in topics])
        for future in created.values():
            future.result(DEADLINE_S)


class Outcome(msgspec.Struct, frozen=True):
    """What became of a request in a handler; None for a duplicate."""

    request: str
    reply: str | None


class Member:
    """A process that follows the journal and adds to the counter that a request names as its key.

    `entries` are those that count, as it folded them; `outcomes` are of the requests that it handled. Handlers wait
    for `go`.
    """

    def __init__(self, world: World, name: str, max_open: int = 10_000) -> None:
        self.entries: list[CounterEntry] = []
        self.outcomes: list[Outcome] = []
        self.failures: list[Exception] = []
        self.go = asyncio.Event()
        self.go.set()
        self.log = world.log()
        self.journal = Journal(self.log, CounterModel(), f"test/{name}")
        self.journal.on_entry.append(lambda _partition, entry: self.entries.append(entry))
        self.consumer = RequestConsumer(
            world.source(), self.journal, self._handle, self._nothing, self._failed, max_open=max_open
        )

    async def _handle(self, delivery: Delivery) -> Continuation | None:
        await self.go.wait()
        request = delivery.value.decode()
        decision = await self.journal.propose(
            delivery.key,
            add(delivery.key),
            delivery.facts(request),
        )
        self.outcomes.append(Outcome(request, decision.reply if decision is not None else None))
        return None

    async def _nothing(self, _partition: int) -> None:
        pass

    async def _failed(self, _delivery: Delivery, error: Exception) -> None:
        self.failures.append(error)

    def total(self, key: str) -> int:
        counter = self.journal.reader(key).get(key)
        return counter.total if counter is not None else 0

    def decided(self) -> list[str]:
        """The requests whose entries count, in the order of the log within each partition."""
        return [entry.request for entry in self.entries if entry.source is not None and entry.request is not None]

    async def follow(self) -> None:
        """Follow the journal, and nothing more."""
        self.journal.start()
        await asyncio.wait_for(self.journal.loaded.wait(), DEADLINE_S)

    async def join(self) -> None:
        """Follow the journal and take requests."""
        await self.follow()
        self.consumer.start()

    async def stop(self) -> None:
        await self.consumer.stop()
        await self.journal.stop()


class Play:
    """A test's world with its members; `requests` are those that were sent, by key."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.members: list[Member] = []
        self.requests: dict[str, list[str]] = {}

    async def member(self, *, joins: bool = True, max_open: int = 10_000) -> Member:
        made = Member(self.world, str(len(self.members)), max_open)
        self.members.append(made)
        await (made.join() if joins else made.follow())
        return made

    async def leave(self, member: Member) -> None:
        self.members.remove(member)
        await member.stop()

    async def send(self, keys: Iterable[str], count: int = 1) -> None:
        """Send so many requests to each key, acknowledged."""
        sent = []
        for _ in range(count):
            for key in keys:
                request = f"{key}/{len(self.requests.setdefault(key, []))}"
                self.requests[key].append(request)
                sent.append(self.world.producer.send(self.world.topic, key, request.encode(), []))
        await asyncio.gather(*sent)

    @property
    def sent(self) -> int:
        return sum(len(requests) for requests in self.requests.values())

    async def until_decided(self, observer: Member) -> None:
        """Return once all that was sent is decided, each once and in the order of its key."""
        await eventually_async(lambda: len(observer.decided()) >= self.sent, DEADLINE_S, "all is decided")
        decided = observer.decided()
        for key, requests in self.requests.items():
            assert [r for r in decided if r.rpartition("/")[0] == key] == requests
        assert len(decided) == self.sent

    async def until_handled(self, member: Member) -> None:
        """Return once that is so, and the member that handles it has noted and acknowledged all outcomes."""
        await self.until_decided(member)
        await eventually_async(lambda: member.consumer.open_requests == 0, DEADLINE_S, "all is acknowledged")

    async def stop(self) -> None:
        for member in self.members:
            await member.stop()
        await self.world.stop()


Scenario = Callable[[Play], Awaitable[None]]


def keys_of(partition: int, count: int) -> list[str]:
    keys = (key for n in range(10_000) if partition_of(key := f"k{n}", PARTITIONS) == partition)
    return [next(keys) for _ in range(count)]


KEYS = [key for partition in range(PARTITIONS) for key in keys_of(partition, 3)]
