"""What becomes of a request that nobody could handle: a dead letter, and an answer to whoever asked."""

import asyncio
import logging

import msgspec

from sluice.domain.decision import Decision, Reply
from sluice.journal.journal import JournalError, JournalUnavailableError
from sluice.messaging.dead_letters import Source, send_dead_letter
from sluice.messaging.producer import RecordTooLargeError
from sluice.messaging.requests import decode_request
from sluice.runtime import Runtime
from sluice.workflows.backoff import delays

log = logging.getLogger(__name__)


async def give_up(runtime: Runtime, source: Source, error: Exception) -> None:
    """Keep the record as a dead letter and, if it is a request at all, answer its caller; through outages of Kafka."""
    log.error("request not handled", extra={"topic": source.topic, "key": source.key}, exc_info=error)
    await send_dead_letter(runtime.producer, source, runtime.source, repr(error))
    try:
        request = decode_request(source.value)
    except msgspec.DecodeError:
        return
    answer = Decision(reply=Reply("FAILURE", f"kept as a dead letter: {error!r}"))
    for wait in delays():
        try:
            await runtime.journal.execute(request.command.key, request.id, lambda _reader, _context: answer)
            return
        except JournalError as problem:
            log.error("failure not answered", extra={"request": request.id, "error": str(problem)})
            if not isinstance(problem, JournalUnavailableError) or isinstance(problem.__cause__, RecordTooLargeError):
                return
        await asyncio.sleep(wait)
