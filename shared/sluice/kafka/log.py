"""The journal's log on Kafka: one topic, followed by a consumer of no group."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from sluice.engine.ports import Ends, EndsUnknownError, Message, RecordFacts, SendError
from sluice.exceptions import in_words
from sluice.kafka.deleting import RecordDeleter
from sluice.kafka.ends import EndOffsets
from sluice.kafka.headers import cloud_event_headers
from sluice.kafka.poll_thread import PollThread
from sluice.kafka.producer import KafkaProducer
from sluice.kafka.topics import JOURNAL
from sluice.kafka_config import clients

GATHERED_BYTES = 256 * 1024
"""With so much a fetch returns before its time."""


class KafkaLog:
    """See Log. `client` is the common librdkafka configuration; the topic has so many partitions.

    The broker may keep records back for `gather_ms`, so that a fetch brings many: one costs it more than a record does.
    """

    def __init__(
        self,
        client: dict[str, Any],
        producer: KafkaProducer,
        partitions: int,
        topic: str = JOURNAL.name,
        gather_ms: int = 0,
    ) -> None:
        self.name = topic
        self.partitions = partitions
        self._producer = producer
        self._ends = EndOffsets(client, topic, partitions, timeout_s=2.0)
        more = {
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 500,
            "fetch.queue.backoff.ms": 10,
            # What is not requested when a fetch begins waits for its end, which is now up to half a second away.
            "queued.min.messages": 10_000,
            "max.partition.fetch.bytes": 512 * 1024,
            "fetch.max.bytes": 2 * 1024 * 1024,
            **({"fetch.min.bytes": GATHERED_BYTES, "fetch.wait.max.ms": gather_ms} if gather_ms else {}),
        }
        self._config = clients.consumer(client, "sluice-journal-follower", more)
        self._deleter = RecordDeleter(client)
        self._follower: PollThread | None = None

    @property
    def failure(self) -> str | None:
        """See Log."""
        if self._follower is not None and self._follower.failure is not None:
            return in_words(self._follower.failure)
        return self._ends.failure

    def start(self, on_batch: Callable[[Sequence[Message]], None], begin: Mapping[int, int]) -> None:
        """See Log."""
        if self._follower is not None:
            self._follower.end()

        def attach(consumer: Consumer) -> None:
            consumer.assign([TopicPartition(self.name, p, offset) for p, offset in begin.items()])

        def deliver(batch: Sequence[Message]) -> None:
            if self._follower is follower:
                on_batch(batch)

        follower = self._follower = PollThread("journal-follower", self._config, attach, deliver)
        follower.start()

    async def stop(self) -> None:
        """See Log."""
        self._ends.stop()
        if self._follower is not None:
            await self._follower.stop()

    def append(
        self,
        key: str,
        value: bytes,
        facts: RecordFacts,
        carrier: Mapping[str, str],
        failed: Callable[[SendError], None],
    ) -> None:
        """See Log."""
        headers = cloud_event_headers(facts.kind, facts.id, facts.by, facts.at, key)
        headers.extend(carrier.items())
        self._producer.send_quietly(self.name, key, value, headers, failed)

    def ends(self, partitions: Collection[int] | None = None) -> asyncio.Future[Ends]:
        """See Log."""
        return self._ends.request(partitions)

    async def trim(self, before: Mapping[int, int], appended_before_ms: int) -> Ends:
        """See Log."""
        try:
            return await asyncio.to_thread(self._deleter.delete, self.name, before, appended_before_ms)
        except KafkaException as error:
            raise EndsUnknownError(in_words(error)) from error
