"""What brokers say of offsets (ListOffsets): where partitions begin and end, and where a time begins in them.

Everything here blocks until all answers are there, or the time for them is over; and raises KafkaException.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import wait

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from sluice.kafka.answers import GRACE_S, result_of

PartitionId = tuple[str, int]
"""Topic and partition."""

NONE_SO_LATE = -1
"""The offset of the first record since a time, where no record is as late as that."""

_EARLIEST = OffsetSpec.earliest()
_LATEST = OffsetSpec.latest()


def begins_of(admin: AdminClient, partitions: Iterable[PartitionId], timeout_s: float) -> dict[PartitionId, int]:
    """The offset of the first record that each of these still has."""
    return _offsets(admin, dict.fromkeys(partitions, _EARLIEST), timeout_s, 0)


def ends_of(admin: AdminClient, partitions: Iterable[PartitionId], timeout_s: float) -> dict[PartitionId, int]:
    """The offset of the next record that will be appended to each of these."""
    return _offsets(admin, dict.fromkeys(partitions, _LATEST), timeout_s, 0)


def first_since(admin: AdminClient, times: Mapping[PartitionId, int], timeout_s: float) -> dict[PartitionId, int]:
    """The offset of the first record that was appended at each of these times (epoch ms) or later, or NONE_SO_LATE."""
    question = {partition: OffsetSpec.for_timestamp(at_ms) for partition, at_ms in times.items()}
    return _offsets(admin, question, timeout_s, NONE_SO_LATE)


def _offsets(
    admin: AdminClient, question: Mapping[PartitionId, OffsetSpec], timeout_s: float, least: int
) -> dict[PartitionId, int]:
    if not question:
        return {}
    wanted = {TopicPartition(*partition): spec for partition, spec in question.items()}
    answers = admin.list_offsets(wanted, request_timeout=timeout_s)
    wait(answers.values(), timeout_s + GRACE_S)
    found = {}
    for one, answer in answers.items():
        found[one.topic, one.partition] = offset = int(result_of(answer, 0).offset)
        if offset < least:
            # A broker that does not answer in time is no error to the client: it gives -1001.
            raise KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT))
    return found
