"""Kafka as a bystander sees it: read topics from the outside, put records there, ask who owns which partition.

Everything blocks, with a deadline.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import uuid4

import msgspec
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from sluice.domain.model import DomainModel, JournalEntry, JournalRecord, decode_record
from sluice.engine.fold import Outcome, PartitionView
from sluice.kafka.topics import JOURNAL
from sluice.kafka_config.clients import NOTHING

DEADLINE_S = 60.0


class Folded(msgspec.Struct, frozen=True):
    """An entry of the journal with the record it stands in, and whether it counted."""

    partition: int
    offset: int
    record: JournalRecord
    entry: JournalEntry
    outcome: Outcome


def produce(bootstrap: str, topic: str, key: str | None, *values: bytes, partition: int = -1) -> list[Message]:
    """Put records there, by the key's partition unless one is given; return them as they were acknowledged."""
    config = {"bootstrap.servers": bootstrap, "acks": "all", "partitioner": "murmur2_random"}
    producer, done = Producer(config), list[Message]()

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        done.append(message)

    for value in values:
        producer.produce(topic, value, key=key, partition=partition, on_delivery=delivered)
    assert producer.flush(DEADLINE_S) == 0, f"{topic}: not acknowledged in {DEADLINE_S} s"
    return done


def read(
    bootstrap: str, topic: str, partitions: Iterable[int] | None = None, conf: Mapping[str, str] = NOTHING
) -> list[Message]:
    """All records of a topic up to its present end, partition by partition; `conf` is what the consumer needs besides.

    A topic that is written to all the time is never at its end, so that is read first.
    """
    consumer = Consumer(
        {
            **conf,
            "bootstrap.servers": bootstrap,
            "group.id": uuid4().hex,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        if partitions is None:
            partitions = consumer.list_topics(topic, DEADLINE_S).topics[topic].partitions
        wanted = list(partitions)
        # Before the assignment: a question waits behind a long poll, half a second for each partition.
        ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=DEADLINE_S)[1] for p in wanted}
        consumer.assign([TopicPartition(topic, p, 0) for p in wanted])
        found: dict[int, list[Message]] = {p: [] for p in wanted}
        open_ones = set(wanted)
        while open_ones:
            message = consumer.poll(DEADLINE_S)
            assert message is not None, f"{topic}: no end of {sorted(open_ones)} in {DEADLINE_S} s"
            error, partition = message.error(), message.partition()
            assert partition is not None
            if error is None:
                offset = message.offset() or 0
                if offset < ends[partition]:
                    found[partition].append(message)
                if offset >= ends[partition] - 1:
                    open_ones.discard(partition)
                continue
            assert error.code() == KafkaError._PARTITION_EOF, error
            open_ones.discard(partition)
        return [message for p in wanted for message in found[p]]
    finally:
        consumer.close()


def fold(bootstrap: str, partitions: Iterable[int] | None = None) -> list[Folded]:
    """The entries of the journal, each with what the fold rule makes of it."""
    views: dict[int, PartitionView] = {}
    folded = []
    for message in read(bootstrap, JOURNAL.name, partitions):
        partition, offset = message.partition(), message.offset()
        assert partition is not None and offset is not None
        record = decode_record(message.value() or b"")
        view = views.setdefault(partition, PartitionView(DomainModel()))
        outcomes = view.fold(record, offset, message.timestamp()[1])
        for entry, outcome in zip(record.entries, outcomes, strict=True):
            folded.append(Folded(partition, offset, record, entry, outcome))
    return folded


def events(entries: Iterable[Folded], holds: Callable[[Any], bool]) -> list[Any]:
    """The events that came true, and that hold."""
    counted = (f.entry.events for f in entries if f.outcome is Outcome.COUNTED)
    return [event for batch in counted for event in batch if holds(event)]


class Groups:
    """Consumer groups of one Kafka."""

    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})

    def owners(self, group: str) -> dict[str, set[int]]:
        """The partitions of each member, by its client id; empty while the group is not settled."""
        described = self._admin.describe_consumer_groups([group], request_timeout=DEADLINE_S)[group].result(DEADLINE_S)
        if described.state != ConsumerGroupState.STABLE:
            return {}
        return {m.client_id: {p.partition for p in m.assignment.topic_partitions} for m in described.members}

    def committed(self, group: str, topic: str, partition: int) -> int:
        """The offset that the group goes on from; negative if it has committed none."""
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition)])
        answered = self._admin.list_consumer_group_offsets([wanted], request_timeout=DEADLINE_S)[group]
        (found,) = answered.result(DEADLINE_S).topic_partitions
        return int(found.offset)


def header(message: Message, name: str) -> str:
    """A header's text; the name must be there once."""
    values = [pair[1] for pair in message.headers() or [] if pair[0] == name]
    assert len(values) == 1, f"{name}: {values}"
    value = values[0]
    return value.decode() if isinstance(value, bytes) else str(value)
