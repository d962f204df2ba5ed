"""The topics that a restore writes: made as the services would make them, written by one producer, in order."""

from typing import Any

from confluent_kafka import KafkaException, Producer

from sluice.kafka.deliveries import delivery_error
from sluice.kafka.headers import Headers
from sluice.kafka.topics import MAX_RECORD_BYTES, TopicsUnfitError, ensure_topics
from sluice.kafka_config import clients
from sluice_cli.errors import CommandError, RefusedError, UnreachableError
from sluice_cli.records.clients import client_of, quiet

DELIVERED_S = 120.0


class KafkaTopics:
    """See Topics. Raises UnreachableError."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._client = client_of(bootstrap, "sluice-cli", quiet)
        more: dict[str, Any] = {
            "message.max.bytes": MAX_RECORD_BYTES,
            "message.timeout.ms": int(DELIVERED_S * 1000),
            # With more, the first record of a new topic can be lost and yet be acknowledged: refused while that has
            # no leader, overtaken by the next request, and then taken for a repetition.
            "max.in.flight.requests.per.connection": 1,
        }
        self._producer = Producer(clients.producer(self._client, more))
        self._problem = ""
        self._ends: dict[int, int] = {}

    def create(self, partitions: int, replication: int) -> None:
        """See Topics."""
        try:
            ensure_topics(self._client, partitions, replication, timeout_s=30.0)
        except TopicsUnfitError as error:
            raise RefusedError(str(error), "delete the topics first") from error
        except KafkaException as error:
            raise UnreachableError(f"the topics could not be made at {self._bootstrap}: {error}") from error

    def append(self, topic: str, partition: int, key: str, value: bytes, headers: Headers) -> None:
        """See Topics."""
        while True:
            try:
                self._producer.produce(
                    topic, partition=partition, key=key, value=value, headers=headers, on_delivery=self._delivered
                )
                self._producer.poll(0)
                break
            except BufferError:
                self._producer.poll(1.0)
            except KafkaException as error:
                raise CommandError(f"a record could not be appended to {topic}: {error}") from error
        self._check()

    def flush(self) -> dict[int, int]:
        """See Topics."""
        left = self._producer.flush(DELIVERED_S)
        self._check()
        if left:
            raise UnreachableError(f"Kafka at {self._bootstrap} did not acknowledge {left} records", _ANEW)
        return self._ends

    def _delivered(self, error: Any, message: Any) -> None:
        problem = delivery_error(error, message)
        if problem is not None:
            self._problem = self._problem or problem.str()
        elif not self._problem:
            self._ends[message.partition()] = message.offset() + 1

    def _check(self) -> None:
        if self._problem:
            raise UnreachableError(f"Kafka at {self._bootstrap} did not take all records: {self._problem}", _ANEW)


_ANEW = "delete the topics and restore once more: half of a restore is none"
