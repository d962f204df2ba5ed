"""Removes records from the begin of a topic's partitions (DeleteRecords). Blocking; belongs to any thread."""

import ctypes
import sys
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from sluice.kafka.answers import result_of
from sluice.kafka.offsets import NONE_SO_LATE, first_since
from sluice.kafka_config import clients

TIMEOUT_S = 30.0


def request_deletion(
    admin: AdminClient, before: list[TopicPartition], timeout_s: float
) -> Mapping[TopicPartition, Future[Any]]:
    """As `AdminClient.delete_records`, which takes a reference to its list away that is not its own.

    It would be freed while it is used, and other objects be made in its place: processes ended by that, or went on with
    what was not theirs. That is a fault of confluent-kafka (its issue 2275).
    """
    held = [before, before]
    counted = sys.getrefcount(before)
    answers: Mapping[TopicPartition, Future[Any]] = admin.delete_records(before, request_timeout=timeout_s)
    for _ in range(counted - sys.getrefcount(before)):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(before))
    held.clear()
    return answers


class RecordDeleter:
    """`client` is the common librdkafka configuration."""

    def __init__(self, client: Mapping[str, Any]) -> None:
        self._client = client
        # It is kept: one that is collected on a thread of its own (librdkafka's) ends the process.
        self._admin: AdminClient | None = None

    def delete(self, topic: str, before: Mapping[int, int], appended_before_ms: int | None = None) -> dict[int, int]:
        """Remove the records of partitions below these offsets, as far as the broker appended them before that time.

        Returns where each of the partitions begins now. Raises KafkaException.
        """
        # Not by its truth: a client is as long as its queue, so an idle one is false.
        admin = self._admin = AdminClient(clients.admin(self._client)) if self._admin is None else self._admin
        bounds = dict(before)
        if appended_before_ms is not None:
            times = dict.fromkeys(((topic, partition) for partition in before), appended_before_ms)
            for (_, partition), offset in first_since(admin, times, TIMEOUT_S).items():
                if offset != NONE_SO_LATE:
                    bounds[partition] = min(bounds[partition], offset)
        if wrong := {partition: offset for partition, offset in bounds.items() if offset < 0}:
            # To Kafka -1 means all of it.
            raise ValueError(f"{topic}: no offsets to remove records below: {wrong}")
        wanted = [TopicPartition(topic, partition, offset) for partition, offset in bounds.items()]
        answers = request_deletion(admin, wanted, TIMEOUT_S)
        return {one.partition: result_of(answer, TIMEOUT_S).low_watermark for one, answer in answers.items()}
