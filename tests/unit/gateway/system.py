"""A gateway in memory with the services that decide behind it: all as they are, over the twin of Kafka.

Requests on streams are decided and seen through by the real workflow service, on segment stores in memory. Those on
transactions are decided by the domain, for the real service needs Redis; a transaction's segments are taken as there.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from api_gateway.settings import GatewaySettings
from sluice.domain.decision import Context, Decision, Reader, Reply
from sluice.domain.events import Event
from sluice.domain.ids import StreamId, TransactionId
from sluice.domain.model import JournalRecord, encode_record
from sluice.domain.names import REQUEST_STREAM, SYSTEM_SCOPE
from sluice.domain.registry import DECIDE
from sluice.domain.stream.state import find_stream
from sluice.domain.transaction import decide
from sluice.domain.transaction.events import TransactionOpened
from sluice.engine.fold import PartitionView
from sluice.engine.journal import Journal, PartitionFailedError
from sluice.engine.offsets import RequestFacts
from sluice.engine.record import Record
from sluice.kafka.requests import Request, decode_request
from sluice.kafka.topics import ABORT, COMMIT, JOURNAL, REQUESTS_STREAMS, REQUESTS_TRANSACTIONS
from sluice.memory.broker import MemoryBroker, MemoryMessage
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.pravega.memory import InMemorySegmentStore
from sluice.runtime import Runtime
from stream_workflows.service import WorkflowService
from stream_workflows.settings import WorkflowSettings

PARTITIONS = 16
CONTAINERS = 4
BEGAN_MS = 1_767_603_628_000
"""When the system is started: a time at which a day ago is one, too."""

_OF_TRANSACTIONS = {REQUESTS_TRANSACTIONS.name, COMMIT.name, ABORT.name}
_REQUESTS = {REQUESTS_STREAMS.name, *_OF_TRANSACTIONS}


class MemorySystem:
    """`runtime` is the gateway's, `journal` that of the services behind it.

    `sent` are the requests of the gateway, each with its topic. `touch` is called with each thing that the gateway does
    to the outside. A `broker` with PARTITIONS may hold a past already. Call `start` before anything else, and `stop` at
    the end.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        touch: Callable[[str], None] = lambda _what: None,
        broker: MemoryBroker | None = None,
    ) -> None:
        self.broker = broker or MemoryBroker(PARTITIONS, began_ms=BEGAN_MS)
        groups = MemoryGroups(self.broker)
        self.connections = MemoryConnections(groups, touch=touch)
        self.runtime = Runtime("api-gateway", settings, self.connections)
        self.store = InMemorySegmentStore(clock_ms=self.broker.now_ms)
        self.sent: list[tuple[str, Request]] = []
        self._services = Runtime(
            "stream-workflows", WorkflowSettings(instance="behind", crash_at=""), MemoryConnections(groups)
        )
        self._workflows = WorkflowService(self._services, WorkflowSettings(crash_at=""), self.store)
        self._answer: Reply | None = None
        self._is_deciding = False
        self._background: set[asyncio.Task[None]] = set()
        self.broker.on_landed.append(self._landed)

    @property
    def journal(self) -> Journal:
        return self._services.journal

    async def start(self, *, deciding: bool = True) -> None:
        """Without `deciding` requests stay unanswered and workflows where they are."""
        for journal in (self.runtime.journal, self.journal):
            journal.start()
            await journal.loaded.wait()
        if deciding:
            self._is_deciding = True
            self._workflows.consumer.start()
            await self.journal.until(StreamId(SYSTEM_SCOPE, REQUEST_STREAM).key, _is_bootstrapped)

    async def stop_deciding(self) -> None:
        """From now on requests stay unanswered and workflows where they are."""
        if self._is_deciding:
            self._is_deciding = False
            await self._workflows.consumer.stop()

    async def answer_all(self, reply: Reply) -> None:
        """From now on every request is answered like this, whatever it is."""
        await self.stop_deciding()
        self._answer = reply

    async def stop(self) -> None:
        await self.stop_deciding()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        for runtime in (self.runtime, self._services):
            await runtime.journal.stop()
            await runtime.stack.aclose()

    # The journal.

    async def append(self, key: str, *events: Event) -> None:
        """Append events as one entry, and wait until all have folded it."""
        await self.journal.propose(key, lambda _reader, _context: Decision(events))
        await self.runtime.journal.barrier((self.journal.partition_of(key),))

    def land_without_entries(self, partition: int) -> None:
        """A record of the journal that changes nothing."""
        record: JournalRecord = Record(id="none", at=0, by="test")
        self.broker.land_in(JOURNAL.name, partition, "", encode_record(record))

    async def stop_partition_of(self, key: str) -> None:
        """Land a record of the journal that cannot be read, so that the key's partition stops there."""
        self.broker.land(JOURNAL.name, key, b"no record")
        with suppress(PartitionFailedError):
            await self.runtime.journal.until(key, lambda _view: False)

    # Requests.

    def _landed(self, message: MemoryMessage) -> None:
        topic = message.topic()
        if topic not in _REQUESTS:
            return
        request = decode_request(message.value())
        if request.by == self.runtime.source:
            self.sent.append((topic, request))
            if self._answer is not None:
                answer = self._answer
                self._spawn(self._decide(request, lambda _reader, _command, _context: Decision(reply=answer)))
        if self._is_deciding and topic in _OF_TRANSACTIONS:
            self._spawn(self._decide(request, DECIDE[type(request.command)]))

    async def _decide(self, request: Request, choose: Callable[[Reader, Any, Context], Decision]) -> None:
        command = request.command
        decision = await self._propose(request, lambda reader, context: choose(reader, command, context))
        for event in decision.events if decision is not None else ():
            if isinstance(event, TransactionOpened):
                await self._propose(request, _ready(event))

    def _propose(
        self, request: Request, choose: Callable[[Reader, Context], Decision]
    ) -> "asyncio.Future[Decision | None]":
        return self.journal.propose(
            request.command.key, choose, RequestFacts(request.id, appended_at=self.broker.now_ms())
        )

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.broker.loop.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _ready(opened: TransactionOpened) -> Callable[[Reader, Context], Decision]:
    scope, stream, id = opened.scope, opened.stream, opened.transaction
    return lambda reader, context: decide.decide_ready(reader, TransactionId(scope, stream, id), context.now)


def _is_bootstrapped(view: PartitionView) -> bool:
    stream = find_stream(view, StreamId(SYSTEM_SCOPE, REQUEST_STREAM))
    return stream is not None and stream.workflow is None
