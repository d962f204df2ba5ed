"""Removes records from the begin of a topic's partitions (DeleteRecords)."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from sluice.kafka_config import clients

TIMEOUT_S = 30.0


def delete_records(
    client: Mapping[str, Any], topic: str, before: Mapping[int, int], appended_before_ms: int | None = None
) -> dict[int, int]:
    """Remove the records of partitions below these offsets, as far as the broker appended them before that time.

    Returns where each of the partitions begins now; blocking. Raises KafkaException.
    """
    admin = AdminClient(clients.admin(client))
    bounds = dict(before)
    if appended_before_ms is not None:
        question = {TopicPartition(topic, p): OffsetSpec.for_timestamp(appended_before_ms) for p in before}
        for partition, answer in admin.list_offsets(question, request_timeout=TIMEOUT_S).items():
            # -1: no record is as late as that.
            young = answer.result().offset
            if young >= 0:
                bounds[partition.partition] = min(bounds[partition.partition], young)
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in bounds.items()]
    answers = admin.delete_records(wanted, request_timeout=TIMEOUT_S)
    begins, failures = {}, []
    for partition, deleted in answers.items():
        try:
            begins[partition.partition] = deleted.result().low_watermark
        except KafkaException as error:
            failures.append(error)
    if failures:
        raise failures[0]
    return begins
