"""Sends requests to who decides them: always by a topic, never by a call."""

import asyncio

from sluice.domain.commands import Command
from sluice.engine.consumer import CONTROL_HEADER
from sluice.engine.ports import Clock, RecordTooLargeError
from sluice.kafka.headers import cloud_event_headers
from sluice.kafka.producer import RecordProducer
from sluice.kafka.requests import Request, encode_request
from sluice.kafka.topics import MAX_REQUEST_BYTES, Topic, is_control, topic_of
from sluice.telemetry import tracing


class RequestSender:
    """Of one process; `by` is service/instance."""

    def __init__(self, producer: RecordProducer, clock: Clock, by: str) -> None:
        self._producer = producer
        self._clock = clock
        self._by = by

    def request(self, id: str, command: Command, principal: str = "") -> Request:
        """A request that is made now; `principal` is whom it is made for."""
        return Request(id=id, at=self._clock.now_ms(), by=self._by, command=command, principal=principal)

    def send(self, id: str, command: Command, principal: str = "", topic: Topic | None = None) -> asyncio.Future[None]:
        """Done when the request is in its topic, that of its command if no other is given; fails with SendError.

        Raises RecordTooLargeError.
        """
        topic, request = topic or topic_of(command), self.request(id, command, principal)
        kind, key, value = type(command).__name__, command.key, encode_request(request)
        if len(value) > MAX_REQUEST_BYTES:
            raise RecordTooLargeError(f"the request has {len(value)} bytes, the limit is {MAX_REQUEST_BYTES}")
        headers = cloud_event_headers(kind, id, self._by, request.at, key)
        if is_control(command):
            headers.append((CONTROL_HEADER, "true"))
        span = tracing.sending(topic.name, kind, {"sluice.request": id, "sluice.key": key})
        if span is tracing.NOTHING:
            return self._producer.send(topic.name, key, value, headers)
        sent = self._producer.send(topic.name, key, value, [*headers, *span.carrier().items()])
        sent.add_done_callback(lambda sending: span.end(None if sending.cancelled() else sending.exception()))
        return sent
