"""Dead letters: the records nobody could handle, kept with the reason, so that their key can go on.

A dead letter has the value and key of the source record; headers name where it came from and what went wrong.
"""

import logging
from collections.abc import Mapping

import msgspec
from confluent_kafka import Message

from sluice.messaging.producer import KafkaProducer, ProduceError
from sluice.messaging.requests import Headers
from sluice.messaging.topics import DEAD_LETTERS
from sluice.telemetry import metrics

log = logging.getLogger(__name__)


class Source(msgspec.Struct, frozen=True):
    """The record that could not be handled, and where it stands."""

    topic: str
    partition: int
    offset: int
    key: str
    value: bytes
    headers: Headers = []


def source_of(message: Message) -> Source:
    return Source(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        key=(message.key() or b"").decode(errors="replace"),
        value=message.value() or b"",
        headers=_listed(message.headers()),
    )


def _listed(headers: Mapping[str, str | bytes | None] | Headers | None) -> Headers:
    return list(headers.items()) if isinstance(headers, Mapping) else list(headers or [])


async def send_dead_letter(producer: KafkaProducer, source: Source, service: str, reason: str) -> None:
    """Keep the record; should even that fail, the log is the last place left to say so."""
    headers: Headers = [
        ("sluice_reason", reason),
        ("sluice_service", service),
        ("sluice_topic", source.topic),
        ("sluice_partition", str(source.partition)),
        ("sluice_offset", str(source.offset)),
        *source.headers,
    ]
    log.error("dead letter", extra={"key": source.key, "reason": reason, "offset": source.offset})
    metrics.DEAD_LETTERS.labels(source.topic).inc()
    try:
        await producer.send(DEAD_LETTERS.name, source.key, source.value, headers)
    except ProduceError as error:
        log.critical(
            "dead letter lost",
            extra={"key": source.key, "reason": reason, "value": source.value, "error": str(error)},
        )
