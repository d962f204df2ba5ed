"""The producer: idempotent, acknowledged by all replicas, without linger: records gather only behind others.

A thread of its own serves librdkafka's callbacks; everything else belongs to the event loop. confluent-kafka's own
asyncio producer was measured slower than this.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from sluice.engine.partition import partition_of
from sluice.engine.ports import RecordTooLargeError, SendError, SendQueueFullError
from sluice.exceptions import in_words
from sluice.kafka.batching import Batches
from sluice.kafka.deliveries import delivery_error
from sluice.kafka.headers import Headers
from sluice.kafka.topics import MAX_RECORD_BYTES, TOPICS
from sluice.kafka_config import clients
from sluice.service_context import as_this_service
from sluice.telemetry import metrics
from sluice.telemetry.scrape import on_scrape

log = logging.getLogger(__name__)

STOP_LOOK_S = 0.2
"""How often the thread looks whether it shall end, for which a stop waits; what Kafka answers wakes it at once."""

BATCH_LOOK_S = 0.005
"""How often a stop looks whether the loop has begun the next batch."""

MAX_QUEUED = 50_000
"""Records that wait for their batch, and as many in librdkafka's own queue."""

Failed = Callable[[SendError], None]
Ended = Callable[[SendError | None], None]
"""Called on the loop when a record is acknowledged, or with what kept it from being."""


class _Record(msgspec.Struct, frozen=True, eq=False):
    """One to be sent; `partition` is its topic, and which of that topic's partitions its key belongs to."""

    partition: tuple[str, int]
    key: str
    value: bytes | None
    headers: Headers
    ended: Ended
    loop: asyncio.AbstractEventLoop


class RecordProducer(Protocol):
    """See KafkaProducer."""

    def start(self) -> None: ...

    def stop(self, timeout_s: float = 5.0) -> None: ...

    def send(self, topic: str, key: str, value: bytes | None, headers: Headers) -> asyncio.Future[None]: ...


class KafkaProducer:
    """Sends records; `client` is the common librdkafka configuration, keyed topics have so many `partitions`.

    Each record goes to the partition of its key among so many, also if a topic has been given more.

    `timeout_ms` bounds each record's delivery once it is handed to librdkafka, unless the configuration says another
    time.
    """

    def __init__(self, client: dict[str, Any], partitions: int, timeout_ms: int = 10_000) -> None:
        more = {
            "linger.ms": 0,
            "message.timeout.ms": timeout_ms,
            "message.max.bytes": MAX_RECORD_BYTES,
            "queue.buffering.max.messages": MAX_QUEUED,
        }
        self._partitions = partitions
        self._own = {topic.name: topic.partitions for topic in TOPICS if topic.partitions is not None}
        self._batches: Batches[tuple[str, int], _Record] = Batches(self._produce)
        self._config = clients.producer(client, more)
        self._producer = Producer(self._config)
        self._replaced: queue.SimpleQueue[Producer] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=as_this_service(self._serve), name="kafka-producer", daemon=True)

    def start(self) -> None:
        self._thread.start()
        _started.add(self)
        on_scrape("producer", _publish)

    @property
    def waiting(self) -> int:
        """Records that were handed over and are not acknowledged yet."""
        return len(self._producer) + self._batches.waiting

    def send(self, topic: str, key: str, value: bytes | None, headers: Headers) -> asyncio.Future[None]:
        """A future of the running loop, done when acknowledged; fails with SendError. No value is a tombstone."""
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._add(topic, key, value, headers, partial(_settle, sent))
        return sent

    def send_quietly(self, topic: str, key: str, value: bytes, headers: Headers, failed: Failed) -> None:
        """Send without a future; `failed(error)` is called on the running loop if the record was not acknowledged."""

        def ended(problem: SendError | None) -> None:
            if problem is not None:
                failed(problem)

        self._add(topic, key, value, headers, ended)

    def _add(self, topic: str, key: str, value: bytes | None, headers: Headers, ended: Ended) -> None:
        partition = topic, partition_of(key, self._own.get(topic, self._partitions))
        record = _Record(partition, key, value, headers, ended, asyncio.get_running_loop())
        if self._batches.waiting < MAX_QUEUED:
            self._batches.add(partition, record)
        else:
            metrics.PRODUCER_ERRORS.labels("queue full").inc()
            ended(_queue_full())

    def _produce(self, record: _Record) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            record.loop.call_soon_threadsafe(self._ended, record, _problem(delivery_error(error, message)))

        try:
            self._hand_over(record, delivered)
        except Exception as error:  # noqa: BLE001 - whatever it is, the records behind this one go on
            problem = error if isinstance(error, SendError) else SendError(in_words(error))
            record.loop.call_soon(self._ended, record, problem)

    def _ended(self, record: _Record, problem: SendError | None) -> None:
        self._batches.ended(record.partition)
        record.ended(problem)

    def _hand_over(self, record: _Record, delivered: Any) -> None:
        topic, partition = record.partition
        try:
            self._producer.produce(
                topic, record.value, record.key, partition, headers=record.headers, on_delivery=delivered
            )
        except BufferError:
            metrics.PRODUCER_ERRORS.labels("queue full").inc()
            raise _queue_full() from None
        except KafkaException as error:
            if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
                metrics.PRODUCER_ERRORS.labels("too large").inc()
                raise RecordTooLargeError(
                    f"{len(record.value or b'')} bytes, the limit is {MAX_RECORD_BYTES}"
                ) from error
            metrics.PRODUCER_ERRORS.labels("refused").inc()
            self._renew_if_fatal(error.args[0])
            raise SendError(str(error)) from error

    def _renew_if_fatal(self, error: KafkaError) -> None:
        """An idempotent producer that lost its sequence can send nothing more: only a new one can."""
        # What `produce` raises has the code, but is not marked as fatal itself.
        if error.fatal() or error.code() == KafkaError._FATAL:  # noqa: SLF001 - that is its public name
            log.error("producer failed for good, replaced", extra={"error": error.str()})
            self._replaced.put(self._producer)
            self._producer = Producer(self._config)

    def _serve(self) -> None:
        while not self._stopping.is_set():
            self._producer.poll(STOP_LOOK_S)
            while not self._replaced.empty():
                # Callers that wait for a record that it still had learn that it was not acknowledged.
                replaced = self._replaced.get_nowait()
                replaced.purge()
                while len(replaced) and not self._stopping.is_set():
                    replaced.flush(1.0)

    def stop(self, timeout_s: float = 5.0) -> None:
        """Wait for what is to be sent, then end; blocking. The loop must go on meanwhile: it begins each next batch."""
        end = time.monotonic() + timeout_s
        # What waits is counted first: a record that is handed over meanwhile is then one of those that are flushed.
        while (left := self._batches.waiting + self._producer.flush(max(0.0, end - time.monotonic()))) and (
            time.monotonic() < end
        ):
            self._stopping.wait(BATCH_LOOK_S)
        if left:
            log.warning("records not acknowledged at stop", extra={"records": left})
        self._stopping.set()
        _started.discard(self)
        if self._thread.is_alive():
            self._thread.join(timeout_s)


_started: set[KafkaProducer] = set()
"""Those of this process: each service that shares it has one. They stop on other threads."""


def _publish() -> None:
    metrics.PRODUCER_QUEUE.set(sum(producer.waiting for producer in list(_started)))


def _queue_full() -> SendQueueFullError:
    return SendQueueFullError("the queue of records to send is full")


def _problem(error: KafkaError | None) -> SendError | None:
    if error is None:
        return None
    metrics.PRODUCER_ERRORS.labels("not acknowledged").inc()
    if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        # The client looks at the value before it is packed; the broker at the whole batch.
        return RecordTooLargeError(error.str())
    return SendError(error.str())


def _settle(sent: asyncio.Future[None], problem: SendError | None) -> None:
    if sent.done():
        return
    if problem is None:
        sent.set_result(None)
    else:
        sent.set_exception(problem)
