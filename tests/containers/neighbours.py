"""What the other services do, as far as the one under test can tell: they put records into topics. Blocking.

Everything that is put anywhere is noted, so that all other records are known to be those of the service.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any
from uuid import uuid4

import msgspec
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from support.kafka import header

from containers.journal_watch import JournalWatch
from harness import eventually
from sluice.catalog.examples import Example
from sluice.domain.model import decode_record
from sluice.engine.partition import partition_of
from sluice.kafka.topics import DEAD_LETTERS, TOPICS, ensure_topics

ANSWERS_S = 60.0
CONSUMED_S = 60.0


class RecordOffset(msgspec.Struct, frozen=True, order=True):
    """Where a record stands."""

    topic: str
    partition: int
    offset: int


def record_offset_of(message: Message) -> RecordOffset:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None and partition is not None and offset is not None
    return RecordOffset(topic, partition, offset)


def failed_record_of(dead_letter: Message) -> RecordOffset:
    """Where the record of a dead letter stood before."""
    partition, offset = (int(header(dead_letter, f"sluice_{name}")) for name in ("partition", "offset"))
    return RecordOffset(header(dead_letter, "sluice_topic"), partition, offset)


class Neighbours:
    """All services but the one under test, on topics that are new."""

    def __init__(self, bootstrap: str, partitions: int) -> None:
        self.sent: set[RecordOffset] = set()
        self._bootstrap = bootstrap
        self._partitions = partitions
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        renew_topics(self._admin, bootstrap, partitions)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "acks": "all", "partitioner": "murmur2_random", "log_level": 0}
        )
        self.journal = JournalWatch(bootstrap, partitions)

    def close(self) -> None:
        self.journal.close()

    def send(self, *records: Example) -> list[RecordOffset]:
        """Put records into their topics, in this order for each key; return where they stand."""
        offsets: dict[int, RecordOffset] = {}

        def delivered(number: int, error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            offsets[number] = record_offset_of(message)

        for number, record in enumerate(records):
            headers: Any = record.headers
            acknowledged = partial(delivered, number)
            self._producer.produce(record.topic, record.value, record.key, headers=headers, on_delivery=acknowledged)
        assert self._producer.flush(ANSWERS_S) == 0, f"not acknowledged in {ANSWERS_S} s"
        self.sent.update(offsets.values())
        return [offsets[number] for number in range(len(records))]

    def append(self, *records: Example) -> None:
        """Put journal records there one by one, each with the versions that its aggregates have now: all count."""
        for record in records:
            partition, value = self.partition_of(record.key), record.json()
            for entry in value["entries"]:
                entry["expect"] = {name: self.journal.version(partition, name) for name in entry.get("expect", {})}
            before = len(self.journal.counted)
            encoded = msgspec.json.encode(value)
            self.send(msgspec.structs.replace(record, value=encoded))
            self.journal.catch_up()
            # The service may have answered with records of its own.
            counted = [each.entry for each in self.journal.counted[before:]]
            assert all(entry in counted for entry in decode_record(encoded).entries), f"void: {value}"

    def partition_of(self, key: str) -> int:
        return partition_of(key, self._partitions)

    def consumed(self, group: str, offsets: Iterable[RecordOffset]) -> None:
        """Return once the group has committed that it need not see these records again."""
        ends: dict[tuple[str, int], int] = {}
        for each in offsets:
            at = (each.topic, each.partition)
            ends[at] = max(ends.get(at, 0), each.offset + 1)
        if not ends:
            return
        eventually(lambda: self._has_committed(group, ends), CONSUMED_S, f"{group} has taken everything")

    def _has_committed(self, group: str, ends: dict[tuple[str, int], int]) -> bool:
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(*at) for at in ends])
        committed = self._admin.list_consumer_group_offsets([wanted])[group].result(ANSWERS_S)
        return all(c.offset >= ends[c.topic, c.partition] for c in committed.topic_partitions)

    def rewind(self, group: str, *topics: str) -> None:
        """Have a group that has no members begin anew with these topics, as if all it has committed were lost."""
        starts = [TopicPartition(topic, p, 0) for topic in topics for p in range(self._partitions)]
        request = ConsumerGroupTopicPartitions(group, starts)
        eventually(lambda: self._alter(request), CONSUMED_S, f"{group} has no members")

    def _alter(self, request: ConsumerGroupTopicPartitions) -> bool:
        altered = self._admin.alter_consumer_group_offsets([request])[request.group_id].result(ANSWERS_S)
        return all(each.error is None for each in altered.topic_partitions)

    def others(self, *topics: str) -> list[Message]:
        """All records of these topics, or of all, that were not put there from here: those of the service."""
        return [message for message in _read(self._bootstrap, topics) if record_offset_of(message) not in self.sent]

    def answered(self, request: Example) -> str:
        """The status of the answer to a request, once it is there."""
        id = request.json()["id"]
        reply = eventually(lambda: self.journal.answer(id), ANSWERS_S, f"{request.type} is answered")
        assert reply is not None
        return reply.status

    def dead_letters(self) -> list[Message]:
        """What the service gave up."""
        return self.others(DEAD_LETTERS.name)

    def check_dead_letters(self, offsets: Iterable[RecordOffset], bad: Iterable[Example]) -> None:
        """The service gave up these records and no others: as they stood at these offsets, each with its reason."""
        letters = self.dead_letters()
        found = {failed_record_of(letter): (letter.key(), letter.value() or b"") for letter in letters}
        assert found == {each: (e.key.encode(), e.value) for each, e in zip(offsets, bad, strict=True)}
        assert all(header(letter, "sluice_reason") for letter in letters)


def renew_topics(admin: AdminClient, bootstrap: str, partitions: int) -> None:
    """Have all topics empty, and no group remember where it was."""
    present = [t.name for t in TOPICS if t.name in admin.list_topics(timeout=ANSWERS_S).topics]
    if present:
        for deleted in admin.delete_topics(present, operation_timeout=ANSWERS_S).values():
            deleted.result(ANSWERS_S)
    eventually(lambda: _forget_groups(admin), ANSWERS_S, "the members of all groups are gone")
    ensure_topics({"bootstrap.servers": bootstrap, "log_level": 0}, partitions, 1, timeout_s=ANSWERS_S)
    consumer = _bystander(bootstrap)
    try:
        eventually(lambda: not any(_ends(consumer).values()), ANSWERS_S, "all partitions have a leader, and are empty")
    finally:
        consumer.close()


def _forget_groups(admin: AdminClient) -> bool:
    """Raises KafkaException while a group has members: one that was killed is missed only after a while."""
    groups = [group.group_id for group in admin.list_consumer_groups().result(ANSWERS_S).valid or []]
    for gone in (admin.delete_consumer_groups(groups) if groups else {}).values():
        gone.result(ANSWERS_S)
    return True


def _bystander(bootstrap: str) -> Consumer:
    return Consumer(
        {"bootstrap.servers": bootstrap, "group.id": uuid4().hex, "enable.auto.commit": False, "log_level": 0}
    )


def _ends(consumer: Consumer, topics: tuple[str, ...] = ()) -> dict[tuple[str, int], int]:
    """The end of each partition of these topics, of all of ours if there are none.

    Raises KafkaException for one without a leader.
    """
    there = consumer.list_topics(timeout=ANSWERS_S).topics
    names = topics or tuple(topic.name for topic in TOPICS)
    partitions = [TopicPartition(name, p) for name in names for p in there[name].partitions]
    return {(p.topic, p.partition): consumer.get_watermark_offsets(p, timeout=ANSWERS_S)[1] for p in partitions}


def _read(bootstrap: str, topics: tuple[str, ...]) -> list[Message]:
    """Every record of these topics, of all if there are none, up to their present end."""
    consumer = _bystander(bootstrap)
    try:
        open_ones = {each: end for each, end in _ends(consumer, topics).items() if end}
        consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in open_ones])
        found: list[Message] = []
        while open_ones:
            message = consumer.poll(ANSWERS_S)
            assert message is not None and message.error() is None, (message, open_ones)
            found_at = record_offset_of(message)
            end = open_ones.get((found_at.topic, found_at.partition), 0)
            if found_at.offset < end:
                found.append(message)
            if found_at.offset >= end - 1:
                open_ones.pop((found_at.topic, found_at.partition), None)
        return sorted(found, key=record_offset_of)
    finally:
        consumer.close()
