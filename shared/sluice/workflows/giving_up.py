"""What becomes of a request that nobody could handle: a dead letter, and an answer to whoever asked."""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from sluice.domain.commands import Command, CreateReserved
from sluice.domain.decision import Context, Decision, Reader, refusal
from sluice.journal.journal import JournalError, JournalUnavailableError, now_ms
from sluice.journal.record import Place
from sluice.messaging.dead_letters import Source, send_dead_letter
from sluice.messaging.producer import RecordTooLargeError
from sluice.messaging.requests import decode_request
from sluice.runtime import Runtime
from sluice.workflows.backoff import delays

log = logging.getLogger(__name__)


async def give_up(
    runtime: Runtime, source: Source, error: Exception, place_of: Callable[[Command], Place | None] = lambda _: None
) -> None:
    """Keep the record as a dead letter and, if it is a request at all, answer its caller; through outages of Kafka.

    With the place of its command, if that has one and its aggregate was ever there, the request comes to nothing when
    it is delivered again. But what a name is held for is tried again when somebody asks for the name: it is told of
    this answer, which is not remembered.
    """
    log.error("request not handled", extra={"topic": source.topic, "key": source.key}, exc_info=error)
    await send_dead_letter(runtime.producer, source, runtime.source, repr(error))
    try:
        request = decode_request(source.value)
    except msgspec.DecodeError:
        return
    command = request.command
    answer = refusal("FAILURE", f"kept as a dead letter: {error!r}")

    def refused(reader: Reader, _context: Context) -> Decision:
        reader.get(command.aggregate)
        return Decision(reply=answer)

    async def answered() -> None:
        if isinstance(command, CreateReserved):
            answers = {request.id: answer}
            await runtime.journal.append(command.key, {}, (), answers=answers, at=now_ms())
        else:
            await runtime.journal.execute(command.key, request.id, refused, place_of(command))

    for wait in delays():
        try:
            await answered()
            return
        except JournalError as problem:
            log.error("failure not answered", extra={"request": request.id, "error": str(problem)})
            if not isinstance(problem, JournalUnavailableError) or isinstance(problem.__cause__, RecordTooLargeError):
                return
        await asyncio.sleep(wait)
