"""Reads what stands in a topic, by a consumer that belongs to no group and lives for one reading. Blocks."""

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from sluice.kafka_config import clients

LASTING = frozenset(
    {
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
"""What a consumer reports and no patience mends. It rides out all else, and a topic that is new, by itself."""

POLL_S = 0.1
BATCH = 1000

Spans = Mapping[int, tuple[int, int | None]]
"""By partition the first offset and the last that matters; None: all that is there."""


def read_records(
    client: clients.Client,
    name: str,
    topic: str,
    spans: Spans,
    silence_s: float,
    more: clients.Client = clients.NOTHING,
) -> Iterator[Message]:
    """The records of the spans, in order for each partition; fewer where a partition ends before its span does.

    The consumer goes by `name`; `more` is of its configuration. Raises KafkaException when the consumer reports what is
    `LASTING`, or nothing has come for `silence_s` seconds: then with what it last reported, if it did.
    """
    # That a partition is at its end is known after an empty fetch.
    more = {"enable.partition.eof": True, "fetch.wait.max.ms": 20, **more}
    passed_over: KafkaError | None = None
    consumer = Consumer(clients.consumer(client, name, more))
    try:
        consumer.assign([TopicPartition(topic, p, first) for p, (first, _) in spans.items()])
        unread, silent_at = set(spans), time.monotonic() + silence_s
        while unread:
            # A consumer that waits for many waits until it has as many.
            first = consumer.poll(POLL_S)
            for message in [first, *consumer.consume(BATCH, 0)] if first is not None else ():
                partition, offset, error = message.partition() or 0, message.offset() or 0, message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - that is its public name
                    if error.code() in LASTING:
                        raise KafkaException(error)
                    passed_over = error
                    continue
                silent_at, last = time.monotonic() + silence_s, spans[partition][1]
                if error is None and partition in unread and (last is None or offset <= last):
                    yield message
                if error is not None or (last is not None and offset >= last):
                    unread.discard(partition)
            if time.monotonic() > silent_at:
                silence = KafkaError(KafkaError._TIMED_OUT, f"nothing came for {silence_s:g} s")  # noqa: SLF001 - likewise
                raise KafkaException(passed_over or silence)
    finally:
        consumer.close()
