"""A Kafka topic into the stream: its partitions are dealt to the nodes, and dealt anew when a node joins or leaves.

Where each partition stands is a document of the job and no consumer group's: the lock on the task says who reads, so a
group would be a second opinion; the position is noted by the node that holds it, so that a late node notes nothing; and
`status`, `reset` and a node that goes on read it where everything else of the job is. Nothing is committed to Kafka.

Concurrency: belongs to one event loop; each task's consumer is called in one thread of its own.
"""

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from distributed_ingest.feed import Lag, Reach, Scene, lag
from distributed_ingest.ledger import Ledger, positions
from distributed_ingest.outlet import BATCH_BYTES
from distributed_ingest.records import MAX_EVENT_BYTES, Event
from sluice.kafka.topic_ids import topic_ids
from sluice.kafka_config import clients
from sluice_cli.errors import RefusedError, UnreachableError
from sluice_cli.records.clients import client_of
from sluice_coordination import Functions, NodeEntry, PartitionedSource, SourceState, Task, TaskContext

log = logging.getLogger(__name__)
T = TypeVar("T")

NAME = "kafka"
_FUNCTION = "read-partitions"
ANSWER_S = 10.0
POLL_S = 0.2
ID_EVERY_S = 10.0
"""How often it is looked whether the topic is still the same one."""
BATCH_RECORDS = 2_000


class TopicRenewedError(Exception):
    """The topic was deleted and made anew while it was read."""


class Kafka:
    """See Feed. `latest`: partitions without a position begin at their end, and not at their first record.

    Raises UsageError if Kafka's clients cannot be configured as the environment says.
    """

    def __init__(self, scene: Scene, bootstrap: str, topic: str, *, latest: bool) -> None:
        self._scene = scene
        self._bootstrap = bootstrap
        self._client = client_of(bootstrap, "sluice-ingest", _quiet)
        self._topic = topic
        self._latest = latest
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kafka-watch")
        self._watching: Consumer | None = None
        self._ends: dict[int, int] = {}
        self._stopped_at: dict[int, int] = {}
        """The offset at which a partition that is read here ended last, for who may read only what is committed."""
        self._id = ""
        """Which of all topics of the name there is, as found last; each task compares it with the one it reads."""
        self._id_found_at = float("-inf")

    async def open(self) -> None:
        """See Feed."""
        try:
            # A partition ends behind transactions that are still open, too.
            self._watching = self._consumer({"isolation.level": "read_uncommitted"})
            self._ends = await self._watch(self._find_ends)
            self._id = await self._watch(self._find_id)
        except KafkaException as error:
            raise UnreachableError(
                f"cannot reach Kafka at {self._bootstrap}: {error.args[0]}",
                "is it running? Another address: --kafka HOST:PORT or SLUICE_KAFKA_BOOTSTRAP",
            ) from error

    def register(self, functions: Functions) -> None:
        """See Feed."""
        functions.register(_FUNCTION)(self._read)

    def source(self) -> PartitionedSource:
        """See Feed."""
        return PartitionedSource(NAME, self._partition, self._scene.settle_s)

    async def reach(self, state: SourceState) -> Reach:  # noqa: ARG002 - positions say it all
        """See Feed. Counts offsets; the end is that of when this process began, unless it goes on for ever."""
        try:
            if time.monotonic() - self._id_found_at >= ID_EVERY_S:
                await self._look_at_topic()
            if not self._scene.once:
                self._ends = await self._watch(self._find_ends)
        except (KafkaException, RefusedError) as error:
            self._scene.outlet.tally.problem(f"Kafka at {self._bootstrap}: {error}")
        recorded = await positions(self._scene.store, self._scene.job.progress())
        done = {number: _next(recorded.get(_part(number), {}), self._id) or 0 for number in self._ends}
        finished = all(done[number] >= end for number, end in self._ends.items())
        if self._scene.once:
            self._tell_what_waits(done)
        reached = sum(min(done[number], end) for number, end in self._ends.items())
        return Reach(reached, sum(self._ends.values()), "offsets", finished)

    def _tell_what_waits(self, done: Mapping[int, int]) -> None:
        for number, offset in self._stopped_at.items():
            if done.get(number) == offset < self._ends.get(number, 0):
                why = f"what follows offset {offset} is in a transaction that its producer has not ended"
                self._scene.outlet.tally.problem(f"{self._topic}/{number}: {why}; waiting for that")

    async def close(self) -> None:
        """See Feed."""
        if self._watching is not None:
            await self._watch(self._watching.close)
        await asyncio.to_thread(self._thread.shutdown)

    # --- the leader's part

    def _partition(self, nodes: Sequence[NodeEntry]) -> list[Task]:
        """Deal the partitions to as many tasks as there are workers."""
        partitions = len(self._ends)
        tasks = min(partitions, max(1, sum(node.workers for node in nodes)))
        return [Task(_FUNCTION, {"partitions": list(range(number, partitions, tasks))}) for number in range(tasks)]

    # --- the part of any node

    async def _read(self, context: TaskContext, partitions: list[int]) -> None:
        """Read these partitions until stopped. Raises TopicRenewedError; begun anew it reads the new one."""
        store, job = self._scene.store, self._scene.job
        thread, consumer = ThreadPoolExecutor(1, thread_name_prefix="kafka"), self._consumer()

        async def call(ask: Callable[[], T]) -> T:
            return await asyncio.get_running_loop().run_in_executor(thread, ask)

        try:
            topic_id = await self._look_at_topic()
            ledgers = {
                number: _Offset(await Ledger.begin(store, job.progress(_part(number)), context), topic_id)
                for number in partitions
            }
            starts = [TopicPartition(self._topic, n, self._start(n, ledger)) for n, ledger in ledgers.items()]
            await call(functools.partial(consumer.assign, starts))
            while True:
                context.check()
                messages = await call(functools.partial(consumer.consume, BATCH_RECORDS, POLL_S))
                if any(message.partition() in ledgers and _is_trouble(message) for message in messages):
                    await self._look_at_topic()
                if self._id != topic_id:
                    raise TopicRenewedError(self._topic)
                refused = await self._deliver(context, messages, ledgers)
                context.held_lock.report(await call(functools.partial(_lag, consumer, self._topic, ledgers)))
                for number in refused:
                    low, high = await call(functools.partial(_marks, consumer, self._topic, number))
                    at = await self._go_on(number, ledgers[number], low, high)
                    await call(functools.partial(_restart, consumer, TopicPartition(self._topic, number, at)))
        except KafkaException as error:
            self._scene.outlet.tally.problem(f"Kafka at {self._bootstrap}: {error}")
            raise
        finally:
            # In the consumer's own thread, behind what it does just now; the event loop does not wait for that.
            thread.submit(consumer.close)
            thread.shutdown(wait=False)

    def _start(self, number: int, at: "_Offset") -> int:
        from confluent_kafka import OFFSET_BEGINNING, OFFSET_END

        if at.is_of_another:
            self._scene.outlet.tally.problem(f"{self._topic}/{number}: the topic was made anew, so it is begun anew")
            return int(OFFSET_BEGINNING)
        recorded = at.next
        return recorded if recorded is not None else OFFSET_END if self._latest else OFFSET_BEGINNING

    async def _deliver(
        self, context: TaskContext, messages: Sequence[Message], ledgers: "Mapping[int, _Offset]"
    ) -> set[int]:
        """Write what has come; return the partitions whose next offset Kafka has refused."""
        outlet = self._scene.outlet
        by_partition: dict[int, list[Event]] = {}
        ahead: dict[int, int] = {}
        refused: set[int] = set()
        size = 0
        for message in messages:
            number, offset, error = message.partition(), message.offset(), message.error()
            if number is None or number not in ledgers:
                # What is wrong with the topic or with all brokers says of no partition that it is its own.
                outlet.tally.problem(f"{self._topic}: {error}")
            elif error is None and offset is not None:
                ahead[number] = offset + 1
                events = self._events(message, number)
                by_partition.setdefault(number, []).extend(events)
                size += sum(len(event.data) for event in events)
                if size >= BATCH_BYTES:
                    await self._flush(context, by_partition, ahead, ledgers)
                    by_partition, ahead, size = {}, {}, 0
            elif error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                # What is not for readers, as the marks of transactions, ends here too.
                if offset is not None and offset >= 0:
                    ahead[number] = self._stopped_at[number] = offset
            elif error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
                refused.add(number)
            elif error is not None:
                outlet.tally.problem(f"{self._topic}, partition {number}: {error}")
        await self._flush(context, by_partition, ahead, ledgers)
        return refused

    async def _flush(
        self,
        context: TaskContext,
        by_partition: Mapping[int, list[Event]],
        ahead: Mapping[int, int],
        ledgers: "Mapping[int, _Offset]",
    ) -> None:
        outlet = self._scene.outlet
        for number, offset in ahead.items():
            note = functools.partial(ledgers[number].note, offset)
            await outlet.deliver(context, f"{self._topic}/{number}", by_partition.get(number, []), note)

    def _events(self, message: Message, number: int) -> list[Event]:
        value, origin, outlet = message.value(), f"{self._topic}/{number}", self._scene.outlet
        if not value:
            # A deletion in a compacted topic, or nothing at all.
            return []
        data = value if isinstance(value, bytes) else value.encode()
        if len(data) > MAX_EVENT_BYTES:
            outlet.skipped(origin, 1, f"{origin}: offset {message.offset()} has more than {MAX_EVENT_BYTES} bytes")
            return []
        key = message.key()
        return [outlet.event(data, origin, key.encode() if isinstance(key, str) else key)]

    async def _go_on(self, number: int, ledger: "_Offset", low: int, high: int) -> int:
        """Return where to go on in a partition whose next offset was refused; note it, and say what is missing.

        `low` and `high`: the first offset that Kafka has, and the one behind the last.
        """
        origin, outlet, recorded = f"{self._topic}/{number}", self._scene.outlet, ledger.next
        if recorded is not None and low <= recorded <= high:
            outlet.tally.problem(f"{origin}: Kafka has refused offset {recorded}, which it has; asking again")
            return recorded
        at = high if recorded is None and self._latest and not ledger.is_of_another else low
        await ledger.note(at)
        what = "where it begins" if recorded is None else f"offset {recorded}"
        outlet.skipped(origin, 1, f"{origin}: Kafka does not have {what} any more; going on with offset {at}")
        return at

    # --- Kafka

    async def _look_at_topic(self) -> str:
        """Find which topic of the name there is and, if it is another one, where it ends; return its id.

        Raises KafkaException, RefusedError.
        """
        found = await self._watch(self._find_id)
        if found != self._id:
            self._ends = await self._watch(self._find_ends)
        self._id, self._id_found_at = found, time.monotonic()
        return found

    def _consumer(self, more: Mapping[str, str] = clients.NOTHING) -> Consumer:
        ours = {"enable.partition.eof": True, "auto.offset.reset": "error", "fetch.wait.max.ms": 100, **more}
        # Librdkafka wants a group; as nothing is subscribed or committed, Kafka never hears of it.
        return Consumer(clients.consumer(self._client, f"sluice-ingest-{self._scene.job.name}", ours))

    def _find_ends(self) -> dict[int, int]:
        assert self._watching is not None
        found = self._watching.list_topics(self._topic, timeout=ANSWER_S).topics[self._topic]
        if found.error is not None or not found.partitions:
            raise RefusedError(f"there is no topic {self._topic}", "`sluice topic list` shows the topics there are")
        ends = {}
        for number in found.partitions:
            marks = self._watching.get_watermark_offsets(TopicPartition(self._topic, number), timeout=ANSWER_S)
            # An empty partition, or one that is read from its end, has nothing to wait for.
            ends[number] = 0 if marks is None or marks[0] == marks[1] else marks[1]
        return ends

    def _find_id(self) -> str:
        return topic_ids(AdminClient(clients.admin(self._client)), [self._topic], ANSWER_S)[self._topic]

    async def _watch(self, ask: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, ask)


class _Offset:
    """Where a partition stands in the topic of an id: one made anew has the name of the one before, but another id."""

    def __init__(self, ledger: Ledger, topic_id: str) -> None:
        self._ledger = ledger
        self._topic_id = topic_id

    @property
    def next(self) -> int | None:
        """The offset of the next record to read, None if nothing of this topic was read yet."""
        return _next(self._ledger.position, self._topic_id)

    @property
    def is_of_another(self) -> bool:
        """Whether another topic of the name was read before."""
        return bool(self._ledger.position) and self.next is None

    async def note(self, offset: int) -> None:
        """Note that everything before the offset is copied. Raises LockLostError."""
        await self._ledger.note({"next": offset, "topic": self._topic_id})


def _next(position: Mapping[str, Any], topic_id: str) -> int | None:
    found = position.get("next")
    return found if isinstance(found, int) and position.get("topic", topic_id) == topic_id else None


def _is_trouble(message: Message) -> bool:
    """Whether it is an error that says more than that a partition ends here."""
    error = message.error()
    return error is not None and error.code() != KafkaError._PARTITION_EOF  # noqa: SLF001 - its public name


def _marks(consumer: Consumer, topic: str, number: int) -> tuple[int, int]:
    """Return the offset of the first record of a partition, and the one behind the last. Raises KafkaException."""
    marks: tuple[int, int] | None = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=ANSWER_S)
    if marks is None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - its public name
    return marks


def _lag(consumer: Consumer, topic: str, ledgers: "Mapping[int, _Offset]") -> Lag:
    """Return how many offsets are left, as far as the consumer knows the ends."""
    left = 0
    for number, ledger in ledgers.items():
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, number), cached=True)
        left += max(0, high - (ledger.next or 0))
    return lag(left, "offsets")


def _restart(consumer: Consumer, at: TopicPartition) -> None:
    """Read a partition anew from an offset, and leave the others as they are. Raises KafkaException.

    A consumer that was refused an offset has stopped with that partition, and cannot seek in it.
    """
    consumer.incremental_unassign([at])
    consumer.incremental_assign([at])


_quiet = logging.getLogger("distributed_ingest.librdkafka")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


def _part(number: int) -> str:
    return f"partition-{number}"
