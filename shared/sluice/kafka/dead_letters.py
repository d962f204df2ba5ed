"""Dead letters: the records that could not be handled, stored with the reason, so that their key can go on.

A dead letter is the source record passed on: its key, its value and its attributes of CloudEvents; further headers
(`sluice_…`) name where it came from and what went wrong. A record that came without such attributes is given some.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import msgspec
from confluent_kafka import KafkaException

from sluice.engine.ports import Message, RecordTooLargeError, SendError
from sluice.exceptions import in_words
from sluice.kafka.headers import Headers, cloud_event_headers
from sluice.kafka.producer import RecordProducer
from sluice.kafka.reading import read_records
from sluice.kafka.topics import DEAD_LETTERS, MAX_RECORD_BYTES, REPLAYABLE
from sluice.telemetry import metrics

log = logging.getLogger(__name__)

UNREADABLE = "UnreadableRecord"
"""The type of a dead letter that did not say itself what it is."""

AGAIN_S = 1.0
SILENCE_S = 5.0

HEADERS_BYTES = 64 * 1024
"""Room that a dead letter leaves for its headers, beside those that hold its key."""

_OURS = "sluice_"

for _topic in REPLAYABLE:
    # Exposed as 0 from now on: a rate sees no increase in a first sample.
    metrics.DEAD_LETTERS.labels(_topic.name)


class FailedRecord(msgspec.Struct, frozen=True):
    """The record that could not be handled, and where it stands."""

    topic: str
    partition: int
    offset: int
    key: str
    value: bytes
    headers: Headers = []


def failed_record_of(message: Message) -> FailedRecord:
    return FailedRecord(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        key=(message.key() or b"").decode(errors="replace"),
        value=message.value() or b"",
        headers=_listed(message.headers()),
    )


def _listed(headers: Mapping[str, str | bytes | None] | Headers | None) -> Headers:
    return list(headers.items()) if isinstance(headers, Mapping) else list(headers or [])


def dead_letter_headers(
    origin: dict[str, str], own: Headers, key: str, service: str, reason: str, time_ms: int
) -> Headers:
    """The headers of a dead letter that was made at `time_ms` (epoch ms).

    `origin` says where the record stands: names and values, the same for the same record. `own` are its own headers;
    what earlier dead letters of it added is left out.
    """
    described: Headers = [("sluice_reason", reason), ("sluice_service", service)]
    described += [(_OURS + name, text) for name, text in origin.items()]
    retained: dict[str, str | bytes | None] = {}
    for name, text in own:
        if text and not name.startswith(_OURS):
            retained.setdefault(name, text)
    given = dict(cloud_event_headers(UNREADABLE, "/".join(origin.values()), service, time_ms, key))
    given["content-type"] = "application/octet-stream"
    return [*described, *{**given, **retained}.items()]


def fitting(value: bytes, others: int, reason: str) -> tuple[bytes, str]:
    """What of a value fits into a dead letter beside so many other bytes, and the reason; it says if not all does."""
    part = value[: max(MAX_RECORD_BYTES - HEADERS_BYTES - others, 0)]
    return part, reason if len(part) == len(value) else f"{reason} (stored are {len(part)} of {len(value)} bytes)"


async def send_dead_letter(
    producer: RecordProducer, record: FailedRecord, service: str, reason: str, now_ms: int
) -> None:
    """Store the record, through any outage of Kafka; one that no topic can hold goes to the log."""
    origin = {"topic": record.topic, "partition": str(record.partition), "offset": str(record.offset)}
    headers = dead_letter_headers(origin, record.headers, record.key, service, reason, now_ms)
    log.error("dead letter", extra={"key": record.key, "reason": reason, "offset": record.offset})
    metrics.DEAD_LETTERS.labels(record.topic).inc()
    while True:
        try:
            await producer.send(DEAD_LETTERS.name, record.key, record.value, headers)
            return
        except RecordTooLargeError as error:
            log.critical(
                "dead letter lost",
                extra={"key": record.key, "reason": reason, "value": record.value, "error": str(error)},
            )
            return
        except SendError as error:
            log.warning("dead letter not stored yet", extra={"key": record.key, "error": str(error)})
            await asyncio.sleep(AGAIN_S)


class Settlement(Enum):
    """What a person decided on a dead letter."""

    DROPPED = "dropped"
    REPLAYED = "replayed"


class DeadLetterSettled(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    """The dead letter at this offset of the topic is dealt with; `at` in epoch ms, `by` is service/instance.

    `principal` is who called for it, empty if unknown. Kafka keeps what is written, so this is a record of the same
    topic, with the key of the letter.
    """

    partition: int
    offset: int
    how: Settlement
    at: int
    by: str
    principal: str = ""


class DeadLettersUnavailableError(Exception):
    """Kafka did not answer in time."""


_settled_encoder = msgspec.json.Encoder()
_settled_decoder = msgspec.json.Decoder(DeadLetterSettled)


def settled_in(message: Message) -> DeadLetterSettled | None:
    """The settlement that a record of the topic is; None for a dead letter."""
    headers = dict(_listed(message.headers()))
    if "sluice_reason" in headers or headers.get("ce_type") != DeadLetterSettled.__name__.encode():
        return None
    return _settled_decoder.decode(message.value() or b"")


async def send_settlement(producer: RecordProducer, key: str, settled: DeadLetterSettled) -> None:
    """Note what became of a dead letter. Raises SendError."""
    id = f"{settled.partition}-{settled.offset}-{settled.how.value}"
    headers = cloud_event_headers(DeadLetterSettled.__name__, id, settled.by, settled.at, key)
    await producer.send(DEAD_LETTERS.name, key, _settled_encoder.encode(settled), headers)


def read_dead_letters(
    client: dict[str, Any],
    begin: Mapping[int, int],
    end: Mapping[int, int],
    on_message: Callable[[Message], None],
) -> None:
    """Pass every record from the offsets in `begin`, by partition, up to the ends there are now; blocking.

    An offset in `end` is the last one that matters of its partition. The reader belongs to no group and commits
    nothing. Raises DeadLettersUnavailableError when nothing came for `SILENCE_S` seconds.
    """
    spans = {partition: (first, end.get(partition)) for partition, first in begin.items()}
    try:
        for message in read_records(client, "sluice-dead-letters-reader", DEAD_LETTERS.name, spans, SILENCE_S):
            on_message(message)
    except KafkaException as error:
        raise DeadLettersUnavailableError(f"the dead letters cannot be read: {in_words(error)}") from error
