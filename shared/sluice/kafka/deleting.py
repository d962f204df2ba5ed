"""Removes records from the begin of a topic's partitions (DeleteRecords). Blocking; belongs to any thread."""

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import ListOffsetsResultInfo, OffsetSpec

from sluice.kafka_config import clients

TIMEOUT_S = 30.0


class RecordDeleter:
    """`client` is the common librdkafka configuration."""

    def __init__(self, client: Mapping[str, Any]) -> None:
        self._client = client
        # It is kept: one that is collected on a thread of its own ends the process.
        self._admin: AdminClient | None = None

    def delete(self, topic: str, before: Mapping[int, int], appended_before_ms: int | None = None) -> dict[int, int]:
        """Remove the records of partitions below these offsets, as far as the broker appended them before that time.

        Returns where each of the partitions begins now. Raises KafkaException.
        """
        # Not by its truth: a client is as long as its queue, so an idle one is false.
        admin = self._admin = AdminClient(clients.admin(self._client)) if self._admin is None else self._admin
        bounds = dict(before)
        if appended_before_ms is not None:
            for partition, offset in self._first_since(admin, topic, before, appended_before_ms).items():
                bounds[partition] = min(bounds[partition], offset)
        wanted = [TopicPartition(topic, partition, offset) for partition, offset in bounds.items()]
        answers = admin.delete_records(wanted, request_timeout=TIMEOUT_S)
        return {partition.partition: answer.result().low_watermark for partition, answer in answers.items()}

    def _first_since(self, admin: AdminClient, topic: str, partitions: Mapping[int, int], at_ms: int) -> dict[int, int]:
        """The first record of each partition that was appended at that time or later, where there is one.

        A broker that does not answer in time is no error to the client, but looks like one that has none. So of these
        partitions the youngest record has to be seen, and to be older.
        """
        found = self._offsets(admin, topic, partitions, OffsetSpec.for_timestamp(at_ms))
        without = [partition for partition, answer in found.items() if answer.offset < 0]
        youngest: OffsetSpec = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
        for partition, answer in self._offsets(admin, topic, without, youngest).items():
            if answer.offset < 0 or answer.timestamp >= at_ms:
                problem = f"no answer for partition {partition}"
                raise KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT, problem))
        return {partition: int(answer.offset) for partition, answer in found.items() if answer.offset >= 0}

    def _offsets(
        self, admin: AdminClient, topic: str, partitions: Iterable[int], spec: OffsetSpec
    ) -> dict[int, ListOffsetsResultInfo]:
        question = {TopicPartition(topic, partition): spec for partition in partitions}
        answers = admin.list_offsets(question, request_timeout=TIMEOUT_S) if question else {}
        return {partition.partition: answer.result() for partition, answer in answers.items()}
