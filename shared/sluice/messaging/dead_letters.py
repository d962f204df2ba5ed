"""Dead letters: the records nobody could handle, kept with the reason, so that their key can go on.

A dead letter has the value and key of the source record; headers name where it came from and what went wrong.
"""

import logging

from sluice.messaging.keyed_consumer import Delivery
from sluice.messaging.producer import KafkaProducer, ProduceError
from sluice.messaging.requests import Headers
from sluice.messaging.topics import DEAD_LETTERS

log = logging.getLogger(__name__)


async def send_dead_letter(producer: KafkaProducer, delivery: Delivery, service: str, reason: str) -> None:
    """Keep the record; should even that fail, the log is the last place left to say so."""
    message = delivery.message
    if message is None:
        log.error("work failed that came from no record", extra={"key": delivery.key, "reason": reason})
        return
    headers: Headers = [
        ("sluice_reason", reason),
        ("sluice_service", service),
        ("sluice_topic", message.topic() or ""),
        ("sluice_partition", str(message.partition())),
        ("sluice_offset", str(message.offset())),
        *(message.headers() or []),
    ]
    log.error("dead letter", extra={"key": delivery.key, "reason": reason, "offset": message.offset()})
    try:
        await producer.send(DEAD_LETTERS.name, delivery.key, message.value() or b"", headers)
    except ProduceError as error:
        log.critical(
            "dead letter lost",
            extra={"key": delivery.key, "reason": reason, "value": message.value(), "error": str(error)},
        )
