"""How far the archive is: stored by Kafka, as the offsets of a group without members.

So it can be read from every machine that reaches Kafka, whatever file system the archive is on, and every tool that
shows the lag of groups shows the archive's. All but `trimmable_offsets` block.

Kafka forgets the offsets of a group that has committed none for `offsets.retention.minutes` (7 days by default), and
those of a topic that is deleted. Both are on the safe side: what is not known to be archived is not trimmed, and the
archive's next batch says it anew.

By a consumer that subscribes to nothing: while a broker is not the group's coordinator yet, the admin client's call for
offsets of groups was seen to end the process (confluent-kafka 2.16.1).
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from sluice.engine.ports import EndsUnknownError
from sluice.exceptions import in_words
from sluice.kafka.topics import JOURNAL
from sluice.kafka_config import clients

GROUP = "sluice-archive"
"""The group whose offsets say what is archived; it has no members."""

_TIMEOUT_S = 10.0
_PAUSE_S = 0.2

Progress = dict[tuple[str, int], int]
"""By topic and partition the offset of the first record that is not archived."""


def archived_offsets(client: dict[str, Any]) -> dict[int, int] | None:
    """By partition of the journal: all records before this offset are in the archive, durably.

    The rule for trimming, where the setting `archive` (SLUICE_ARCHIVE) is not empty: nothing of a partition at or
    behind the offset given here may be deleted, and nothing at all of one that is not in the answer. None if no
    partition is: no archive has ever run, or Kafka has forgotten how far it was. `client` is
    `ServiceSettings.kafka_client()`. Raises KafkaException while the brokers cannot be reached.
    """
    found = recorded_progress(client, [JOURNAL.name])
    return {partition: offset for (_, partition), offset in found.items()} or None


async def trimmable_offsets(client: dict[str, Any]) -> dict[int, int]:
    """The same without blocking; empty if no partition is archived. Raises EndsUnknownError."""
    try:
        return await asyncio.to_thread(archived_offsets, client) or {}
    except KafkaException as error:
        raise EndsUnknownError(f"how far the archive is: {in_words(error)}") from error


def recorded_progress(client: dict[str, Any], topics: Iterable[str]) -> Progress:
    """The same of any topics that are there. Raises KafkaException."""
    consumer = Consumer(clients.consumer(client, GROUP))
    try:
        there = consumer.list_topics(timeout=_TIMEOUT_S).topics
        wanted = [TopicPartition(name, p) for name in topics if name in there for p in there[name].partitions]
        found = _insist(lambda: consumer.committed(wanted, timeout=_TIMEOUT_S))
    finally:
        consumer.close()
    return {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}


def record_progress(client: dict[str, Any], progress: Progress) -> None:
    """Say how far the archive is, once that is durable. Raises KafkaException."""
    offsets = [TopicPartition(topic, partition, offset) for (topic, partition), offset in progress.items()]
    consumer = Consumer(clients.consumer(client, GROUP))
    try:
        _insist(lambda: consumer.commit(offsets=offsets, asynchronous=False) or [])
    finally:
        consumer.close()


def _insist(call: Callable[[], list[TopicPartition]]) -> list[TopicPartition]:
    """What the call gives. A broker that has only just become the group's coordinator, or is not it yet, refuses it."""
    end = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            answered = call()
            for one in answered:
                if one.error is not None:
                    raise KafkaException(one.error)
        except KafkaException:
            if time.monotonic() > end:
                raise
            time.sleep(_PAUSE_S)
        else:
            return answered
