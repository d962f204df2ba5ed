"""Where topics end, as the driver wants to know it now and then."""

from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from sluice.kafka.offsets import PartitionId, ends_of
from sluice.kafka_config import clients

_TIMEOUT_S = 5.0

Ends = dict[PartitionId, int]
"""By topic and partition."""

ReadEnds = Callable[[Iterable[PartitionId]], Ends]
"""Where each of these partitions ends. Blocks; raises KafkaException."""


def ends_reader(client: dict[str, Any]) -> ReadEnds:
    """Of a Kafka; `client` is the common librdkafka configuration. Raises KafkaConfError."""
    admin = AdminClient(clients.admin(client))

    def read_ends(partitions: Iterable[PartitionId]) -> Ends:
        nonlocal admin
        try:
            return ends_of(admin, partitions, _TIMEOUT_S)
        except KafkaException:
            # It may wait for a broker that has gone without a word. A client that is new finds one that answers.
            admin = AdminClient(clients.admin(client))
            raise

    return read_ends
