"""Publishes reports to retention-spark, as JSON with the attributes of CloudEvents beside them.

A report has the same id whenever it is sent, so that its readers can drop duplicates.
"""

import logging

import msgspec

from sluice.domain.stream.retention import RetentionReport
from sluice.domain.stream.traffic import ScaleReport
from sluice.engine.ports import Clock
from sluice.kafka.dead_letters import dead_letter_headers, fitting
from sluice.kafka.headers import cloud_event_headers
from sluice.kafka.producer import RecordProducer
from sluice.kafka.topics import DEAD_LETTERS, RETENTION, SCALE
from sluice.telemetry import metrics

log = logging.getLogger(__name__)

_TOPICS = {ScaleReport: SCALE, RetentionReport: RETENTION}
_encoder = msgspec.json.Encoder()


class ReportPublisher:
    """Sends to the topics of reports; `source` is this process as service/instance."""

    def __init__(self, producer: RecordProducer, source: str, clock: Clock) -> None:
        self.source = source
        self._producer = producer
        self._clock = clock

    async def publish(self, report: ScaleReport | RetentionReport) -> None:
        """Return when the report is in its topic. Raises SendError."""
        kind, key = type(report), report.stream_id.key
        headers = cloud_event_headers(kind.__name__, report.id, report.by, report.at, key)
        await self._producer.send(_TOPICS[kind].name, key, _encoder.encode(report), headers)

    async def dead_letter(self, key: str, segment: str, offset: int, value: bytes, reason: str) -> None:
        """Store what a segment holds at an offset, and cannot be decoded, as a dead letter. Raises SendError."""
        log.error("dead letter", extra={"key": key, "segment": segment, "offset": offset, "reason": reason})
        metrics.DEAD_LETTERS.labels(key).inc()
        origin = {"segment": segment, "offset": str(offset)}
        part, why = fitting(value, 2 * len(key.encode()), reason)
        headers = dead_letter_headers(origin, [], key, self.source, why, self._clock.now_ms())
        await self._producer.send(DEAD_LETTERS.name, key, part, headers)
