"""Requests as deliveries: how one is read, and what becomes of one, or of a report, that could not be handled."""

import logging
from collections.abc import Iterable

import msgspec

from sluice.domain.commands import Command
from sluice.domain.decision import Context, Decision, Reader, refusal
from sluice.domain.status import Status
from sluice.domain.stream.decide import admitted_on_dead_letter
from sluice.engine.consumer import Delivery
from sluice.engine.formats import NewerFormatError
from sluice.engine.journal import JournalError
from sluice.engine.offsets import RequestFacts
from sluice.exceptions import in_words
from sluice.kafka.dead_letters import failed_record_of, send_dead_letter
from sluice.kafka.requests import Request, decode_request, request_id
from sluice.kafka.topics import DEAD_LETTERS, Topic, topics_of
from sluice.runtime import Runtime
from sluice.telemetry import metrics
from sluice.workflows.report_decider import OutgoingRecord

log = logging.getLogger(__name__)


class MisplacedRequestError(Exception):
    """The request stands in another topic, or under another key, than its command's."""


def request_of(delivery: Delivery, topic: Topic) -> Request:
    """The request that was delivered from the topic.

    Raises msgspec.DecodeError or msgspec.ValidationError for what is none, MisplacedRequestError.
    """
    request = decode_request(delivery.value)
    kind = type(request.command)
    if topic not in topics_of(kind):
        raise MisplacedRequestError(f"{kind.__name__} does not belong in {topic.name}")
    if request.command.key != delivery.key:
        raise MisplacedRequestError(f"the command belongs to {request.command.key!r}, not to {delivery.key!r}")
    return request


def _command_of(delivery: Delivery) -> Command | None:
    """None if this release cannot read it."""
    try:
        return decode_request(delivery.value).command
    except (msgspec.DecodeError, msgspec.ValidationError, NewerFormatError):
        return None


async def dead_letter(runtime: Runtime, delivery: Delivery, error: Exception) -> None:
    """Keep the request as a dead letter and, if it says its id, reply to its caller; through outages of Kafka.

    The reply marks the request as decided, so that it does nothing when it is delivered a second time. What was decided
    already is no dead letter: its workflow goes on.
    """
    log.error("request not handled", extra={"key": delivery.key, "offset": delivery.offset}, exc_info=error)
    origin = delivery.origin
    if origin is not None and runtime.journal.reader(delivery.key).is_decided(origin.source):
        return
    record, now_ms = failed_record_of(delivery.message), runtime.clock.now_ms()
    await send_dead_letter(runtime.producer, record, runtime.source, in_words(error), now_ms)
    id = request_id(delivery.value)
    if id is None:
        return
    reply = refusal(Status.FAILURE, f"stored as a dead letter: {in_words(error)}")
    is_in_place = runtime.journal.partition_of(delivery.key) == delivery.partition
    command = _command_of(delivery) if is_in_place else None

    def refused(reader: Reader, _context: Context) -> Decision:
        return Decision(admitted_on_dead_letter(reader, command), reply)

    try:
        await runtime.journal.propose(delivery.key, refused, RequestFacts(id, origin, delivery.appended_at))
    except JournalError as problem:
        # The partition has stopped, or no record can hold the reply: the letter says it all.
        log.error("failure not replied", extra={"request": id, "error": str(problem)})


def count_dead_letters(records: Iterable[OutgoingRecord]) -> None:
    """Log which reports could not be decided on, and count them: what found that has neither log nor metrics."""
    for record in records:
        if record.topic == DEAD_LETTERS.name:
            headers = dict(record.headers)
            offset, reason = headers["sluice_offset"], headers["sluice_reason"]
            log.error("dead letter", extra={"key": record.key, "offset": offset, "reason": reason})
            metrics.DEAD_LETTERS.labels(headers["sluice_topic"]).inc()
