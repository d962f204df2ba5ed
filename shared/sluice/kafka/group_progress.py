"""How far the consumers of requests are: who owns each partition, what it has not acknowledged, and since when.

Offsets of groups come by a consumer that subscribes to nothing: while a broker is not the group's coordinator yet, the
admin client's call for them was seen to end the process (confluent-kafka 2.16.1). When the broker took a record follows
from offsets alone, since times do not fall in a partition: so nothing is read, and no right to read is needed. The
clients are held between two calls; everything here blocks and belongs to one thread at a time.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from sluice.engine.ports import PartitionProgress
from sluice.exceptions import in_words
from sluice.kafka.answers import result_of
from sluice.kafka.offsets import PartitionId, begins_of, ends_of, first_since
from sluice.kafka.topics import TOPICS
from sluice.kafka_config import clients

LEAST_AGE_MS = 100
AGE_STEP = 1.1
"""Ages are found to within ten percent."""
_MAX_AGE_MS = 30 * 24 * 3600 * 1000
_AGES = math.ceil(math.log(_MAX_AGE_MS / LEAST_AGE_MS, AGE_STEP))

TIMEOUT_S = 5.0
"""Of each question to Kafka."""

FindFirst = Callable[[Mapping[PartitionId, int]], Mapping[PartitionId, int]]


class GroupsUnavailableError(Exception):
    """Kafka did not answer in time."""


class KafkaGroupProgress:
    """Of a Kafka; `client` is the common librdkafka configuration, `partitions` how many keyed topics have."""

    def __init__(self, client: dict[str, Any], partitions: int) -> None:
        self._client = client
        self._partitions = {
            topic.group: [TopicPartition(topic.name, p) for p in range(topic.partitions or partitions)]
            for topic in TOPICS
            if topic.group
        }
        self._admin: AdminClient | None = None
        self._consumers: dict[str, Consumer] = {}

    def fetch(self, now_ms: int) -> list[PartitionProgress]:
        """Of all partitions, by topic and partition; `now_ms` is the present. Raises GroupsUnavailableError."""
        try:
            return self._fetch(now_ms)
        except KafkaException as error:
            problem = f"Kafka does not say how far consumers are: {in_words(error)}"
        # Clients go by the leaders that they remember. They end here, and not by way of a traceback on the loop.
        self.close()
        raise GroupsUnavailableError(problem)

    def close(self) -> None:
        """Hold no clients any more."""
        consumers, self._consumers, self._admin = self._consumers, {}, None
        for consumer in consumers.values():
            consumer.close()

    def _fetch(self, now_ms: int) -> list[PartitionProgress]:
        every = [(one.topic, one.partition) for partitions in self._partitions.values() for one in partitions]
        begins, ends = begins_of(self._connected(), every, TIMEOUT_S), ends_of(self._connected(), every, TIMEOUT_S)
        committed = self._committed()
        # Records are acknowledged meanwhile, and retention removes some that never were.
        first = {id: min(max(committed.get(id, 0), begin), ends[id]) for id, begin in begins.items()}
        unacknowledged = {id: offset for id, offset in first.items() if offset < ends[id]}
        ages = ages_of(unacknowledged, now_ms, lambda times: first_since(self._connected(), times, TIMEOUT_S))
        owners = self._owners()
        return [
            PartitionProgress(*id, owners.get(id, ""), ends[id] - first[id], ends[id], ages.get(id))
            for id in sorted(first)
        ]

    def _connected(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient(clients.admin(self._client))
        return self._admin

    def _committed(self) -> dict[PartitionId, int]:
        """The first offset that is not acknowledged, of partitions of which any is."""
        found = {}
        for group, partitions in self._partitions.items():
            consumer = self._consumers.get(group)
            if consumer is None:
                consumer = self._consumers[group] = Consumer(clients.consumer(self._client, group))
            for one in consumer.committed(partitions, timeout=TIMEOUT_S):
                if one.error is not None:
                    raise KafkaException(one.error)
                if one.offset >= 0:
                    found[one.topic, one.partition] = one.offset
        return found

    def _owners(self) -> dict[PartitionId, str]:
        """The client id of the member that owns each partition."""
        answers = self._connected().describe_consumer_groups(list(self._partitions), request_timeout=TIMEOUT_S)
        return {
            (one.topic, one.partition): member.client_id
            for answer in answers.values()
            for member in result_of(answer, TIMEOUT_S).members
            if member.assignment is not None
            for one in member.assignment.topic_partitions
        }


def ages_of(first: Mapping[PartitionId, int], now_ms: int, find_first: FindFirst) -> dict[PartitionId, int]:
    """How long before `now_ms` the record at each offset was taken; one question for all in each step of the search.

    `find_first` gives the offset of the first record taken at each time or later, negative if none was.
    """
    # The record is younger than the age of the upper number, and not younger than that of the lower one.
    lower, upper = dict.fromkeys(first, -1), dict.fromkeys(first, _AGES)
    while searched := [id for id in first if upper[id] - lower[id] > 1]:
        middle = {id: (lower[id] + upper[id]) // 2 for id in searched}
        found = find_first({id: now_ms - _age(number) for id, number in middle.items()})
        for id, number in middle.items():
            is_younger = 0 <= found[id] <= first[id]
            (upper if is_younger else lower)[id] = number
    return {id: _age(number) for id, number in upper.items()}


def _age(number: int) -> int:
    return round(LEAST_AGE_MS * AGE_STEP**number)
