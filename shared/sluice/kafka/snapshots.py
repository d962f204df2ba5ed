"""The store of snapshots on Kafka: a topic of notes, which are JSON, and one of chunks.

They stand apart so that a process that looks for the newest snapshot reads some kilobytes. Each has as many partitions
as the journal; neither expires by age. Kafka's clients compress chunks, so what is stored here is not. Every read makes
a consumer of its own: reads are rare.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from sluice.engine.ports import RecordFacts, SnapshotStoreError
from sluice.exceptions import in_words
from sluice.kafka.deleting import RecordDeleter
from sluice.kafka.deliveries import delivery_error
from sluice.kafka.headers import JSON, MESSAGE_PACK, cloud_event_headers
from sluice.kafka.reading import Spans, read_records
from sluice.kafka.topics import MAX_RECORD_BYTES, SNAPSHOT_CHUNKS, SNAPSHOTS
from sluice.kafka_config import clients

T = TypeVar("T")

SILENCE_S = 15.0
"""How long the broker may send nothing of what is there."""

_LARGE_FETCHES = {"max.partition.fetch.bytes": 16 * 1024 * 1024}


class KafkaSnapshotStore:
    """See SnapshotStore. `client` is the common librdkafka configuration."""

    def __init__(
        self,
        client: Mapping[str, Any],
        notes: str = SNAPSHOTS.name,
        chunks: str = SNAPSHOT_CHUNKS.name,
    ) -> None:
        self._client = client
        self._notes = notes
        self._chunks = chunks
        self._deleter = RecordDeleter(client)
        self._producer: Producer | None = None

    async def notes(self, partitions: Collection[int]) -> dict[int, list[tuple[int, bytes]]]:
        """See SnapshotStore."""
        return await self._blocking(self._read_notes, partitions)

    async def append_note(self, partition: int, value: bytes, facts: RecordFacts) -> None:
        """See SnapshotStore."""
        await self._blocking(self._append, self._notes, partition, value, facts)

    async def append_chunk(self, partition: int, value: bytes, facts: RecordFacts) -> int:
        """See SnapshotStore."""
        return await self._blocking(self._append, self._chunks, partition, value, facts)

    async def chunks(self, partition: int, first: int, last: int) -> list[bytes]:
        """See SnapshotStore."""
        return await self._blocking(self._read_chunks, partition, first, last)

    async def trim(self, partition: int, notes_before: int, chunks_before: int) -> None:
        """See SnapshotStore."""
        await self._blocking(self._deleter.delete, self._notes, {partition: notes_before})
        await self._blocking(self._deleter.delete, self._chunks, {partition: chunks_before})

    async def _blocking(self, call: Callable[..., T], *args: Any) -> T:
        try:
            return await asyncio.to_thread(call, *args)
        except KafkaException as error:
            raise SnapshotStoreError(in_words(error)) from error

    # In threads.

    def _append(self, topic: str, partition: int, value: bytes, facts: RecordFacts) -> int:
        producer = self._producer
        if producer is None:
            producer = self._producer = Producer(
                clients.producer(self._client, {"message.max.bytes": MAX_RECORD_BYTES})
            )
        outcome: list[int | KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            outcome.append(delivery_error(error, message) or message.offset() or 0)

        content_type = JSON if topic == self._notes else MESSAGE_PACK
        headers = cloud_event_headers(facts.kind, facts.id, facts.by, facts.at, str(partition), content_type)
        producer.produce(topic, value, str(partition), partition, headers=headers, on_delivery=delivered)
        producer.flush(SILENCE_S)
        if not outcome:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - that is its public name
        if isinstance(outcome[0], KafkaError):
            raise KafkaException(outcome[0])
        return outcome[0]

    def _read_notes(self, partitions: Collection[int]) -> dict[int, list[tuple[int, bytes]]]:
        found: dict[int, list[tuple[int, bytes]]] = {partition: [] for partition in partitions}
        for message in self._read(self._notes, dict.fromkeys(partitions, (0, None))):
            found[message.partition() or 0].append((message.offset() or 0, message.value() or b""))
        return found

    def _read_chunks(self, partition: int, first: int, last: int) -> list[bytes]:
        return [message.value() or b"" for message in self._read(self._chunks, {partition: (first, last)})]

    def _read(self, topic: str, spans: Spans) -> Iterator[Message]:
        return read_records(self._client, "sluice-snapshots", topic, spans, SILENCE_S, _LARGE_FETCHES)
