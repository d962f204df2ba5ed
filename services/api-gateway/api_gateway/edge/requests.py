"""The request path: a command goes into its topic, the reply comes off the journal.

Belongs to the event loop. What waits is bounded in number and in time; a caller that goes away is forgotten at once,
while the requested operation goes on.
"""

import asyncio
import itertools
import logging
from collections import Counter

from api_gateway import metrics
from api_gateway.edge.errors import OverloadedError, RequestTimeoutError
from api_gateway.edge.shares import Shares
from sluice.domain.commands import Command
from sluice.domain.decision import Reply
from sluice.domain.reader_group.commands import CreateReaderGroup
from sluice.domain.scope.commands import DeleteScope, DeleteScopeRecursive
from sluice.domain.stream.commands import CreateStream
from sluice.domain.table.commands import CreateTable
from sluice.engine.deadline import at_most
from sluice.engine.errors import PartitionFailedError
from sluice.engine.partition import partition_keys
from sluice.kafka.topics import is_control
from sluice.runtime import Runtime
from sluice.security.caller import calling_principal
from sluice.telemetry import tracing
from sluice.telemetry.scrape import on_scrape

log = logging.getLogger(__name__)

KEYS_SHARE = 10


class Requests:
    """Submits commands to the services that decide. `max_pending` bounds what waits, `timeout_s` how long.

    A user has a quarter of that (`Shares`). One key has a tenth, so that a stuck stream leaves room for the others; a
    control command is not held to the tenth, for it is what gets a stuck stream going.
    """

    def __init__(self, runtime: Runtime, max_pending: int, timeout_s: float) -> None:
        self._runtime = runtime
        self._max_pending = max_pending
        self._timeout_s = timeout_s
        self._shares = Shares(max_pending, "requests")
        self._max_of_a_key = max(1, max_pending // KEYS_SHARE)
        self._of_key: Counter[str] = Counter()
        self._sent: set[asyncio.Future[Reply]] = set()
        self._has_ended = False
        on_scrape("requests", self._publish)
        self._ids = map(f"{runtime.connections.chance.token()}-{{:x}}".format, itertools.count(1))

    def _publish(self) -> None:
        metrics.PENDING.set(self._runtime.journal.replies_expected)
        metrics.PENDING_LIMIT.set(self._max_pending)

    def new_id(self, trace: str = "") -> str:
        """An id for a request; `trace`, the caller's own id for it, becomes part of ours."""
        return f"{next(self._ids)}.{trace}" if trace else next(self._ids)

    async def submit(self, command: Command, trace: str = "", *, id: str = "") -> Reply:
        """The reply to a command, sent to its topic, under `id` if the caller has made one already.

        Raises OverloadedError, QuotaExceededError, RequestTimeoutError, SendError, and PartitionFailedError if it was
        not even sent.
        """
        if self._has_ended:
            raise OverloadedError("this gateway ends, and takes no more requests")
        key = command.key
        if self._of_key[key] >= self._max_of_a_key and not is_control(command):
            reason = f"{self._max_of_a_key} requests on {key} are waiting for their replies, no more may wait"
            raise OverloadedError(reason)
        with self._shares.taken():
            return await self._reply_to(command, id or self.new_id(trace))

    async def _reply_to(self, command: Command, id: str) -> Reply:
        journal, key = self._runtime.journal, command.key
        expected = journal.expect_reply(id, _keys(command, journal.partitions))
        self._of_key[key] += 1
        self._sent.add(expected)

        def sent(sending: asyncio.Future[None]) -> None:
            error = sending.exception()
            if error is not None and not expected.done():
                expected.set_exception(error)

        try:
            self._runtime.sender.send(id, command, calling_principal()).add_done_callback(sent)
            with tracing.within(tracing.child("await reply", "internal", {"sluice.request": id})) as span:
                reply: Reply = await at_most(self._timeout_s, expected)
                span.note({"sluice.status": reply.status})
        except TimeoutError:
            log.warning("no reply in time", extra={"request": id, "command": type(command).__name__})
            raise RequestTimeoutError(f"no reply to request {id} within {self._timeout_s:g} s, it goes on") from None
        except PartitionFailedError as error:
            raise RequestTimeoutError(f"no reply to request {id} here, it goes on: {error}") from error
        finally:
            expected.cancel()
            self._sent.discard(expected)
            self._of_key[key] -= 1
            if not self._of_key[key]:
                del self._of_key[key]
        if reply.reason:
            log.info("refused", extra={"request": id, "status": reply.status, "reason": reply.reason})
        return reply

    def end(self) -> None:
        """Wait for no reply any longer: who still does gets RequestTimeoutError, who comes later OverloadedError."""
        self._has_ended = True
        for expected in self._sent:
            if not expected.done():
                expected.set_exception(RequestTimeoutError("this gateway ends, the request goes on"))


def _keys(command: Command, partitions: int) -> tuple[str, ...]:
    """Whose partitions it takes to answer a command: a creation reads its scope, a deletion of a scope everything."""
    match command:
        case CreateStream() | CreateReaderGroup() | CreateTable():
            return command.key, command.scope
        case DeleteScope() | DeleteScopeRecursive():
            return partition_keys(partitions)
        case _:
            return (command.key,)
