"""A journal written as the services write it, at times of one's choosing: requests, decisions, records of workflows.

All is decided by the domain and lands in a broker in memory before any process follows it, so a gateway that starts
later finds the past of a system that never ran.
"""

import time
from collections.abc import Callable

from support.domain_log import Lengths

from sluice.domain.commands import Command
from sluice.domain.decision import Context, Decision, Reader, Reply
from sluice.domain.events import Event
from sluice.domain.ids import StreamId
from sluice.domain.model import DomainModel, JournalEntry, JournalRecord, encode_record
from sluice.domain.registry import DECIDE
from sluice.domain.status import Status
from sluice.domain.stream.state import Stream, find_stream
from sluice.engine.fold import GuardedReader, PartitionView
from sluice.engine.partition import partition_keys, partition_of
from sluice.engine.record import Source
from sluice.kafka.headers import cloud_event_headers
from sluice.kafka.requests import Request, encode_request
from sluice.kafka.topics import JOURNAL, Topic, topic_of
from sluice.memory.broker import MemoryBroker, MemoryMessage

GATEWAY, WORKFLOWS = "api-gateway/a", "stream-workflows/a"

_REFUSED = {Status.FAILURE, Status.PRECONDITION_FAILED, Status.STREAM_NOT_FOUND, Status.SCOPE_NOT_FOUND}


class DatedBroker(MemoryBroker):
    """A broker whose clock is the machine's; while `past_ms` is set that is the time (epoch ms)."""

    past_ms: int | None = None

    def now_ms(self) -> int:
        return self.past_ms if self.past_ms is not None else time.time_ns() // 1_000_000


class SampleLog:
    """Writes into the broker. Each record is a millisecond later than the one before; `at` leaps."""

    def __init__(self, broker: DatedBroker) -> None:
        self.broker = broker
        self.views = [
            PartitionView(DomainModel(), key, self.view, lambda: self.views)
            for key in partition_keys(broker.partitions)
        ]
        self._records = 0
        self._requests = 0

    @property
    def now(self) -> int:
        return self.broker.now_ms()

    def at(self, ms: int) -> None:
        """It is this time now, epoch ms."""
        self.broker.past_ms = ms

    def later(self, ms: int = 1) -> int:
        """Let so much time pass."""
        self.broker.past_ms = self.now + ms
        return self.now

    def view(self, key: str) -> PartitionView:
        """The view of the key's partition."""
        return self.views[partition_of(key, self.broker.partitions)]

    def stream(self, id: StreamId) -> Stream:
        """The stream as it is now, which must be there."""
        found = find_stream(self.view(id.key), id)
        assert found is not None, id
        return found

    def send(self, command: Command, principal: str = "", topic: Topic | None = None) -> tuple[Request, MemoryMessage]:
        """Put a command on its topic."""
        self._requests += 1
        request = Request(
            id=f"sample-{self._requests:06x}", at=self.later(), by=GATEWAY, command=command, principal=principal
        )
        headers = cloud_event_headers(type(command).__name__, request.id, GATEWAY, self.now, command.key)
        name = (topic or topic_of(command)).name
        return request, self.broker.land(name, command.key, encode_request(request), headers)

    def ask(self, command: Command, principal: str = "", refused: bool = False) -> tuple[str, Reply | None]:
        """Send a command and have it decided; the id of the request and the reply, if there is one at once.

        Only what is meant to be `refused` may be.
        """
        request, message = self.send(command, principal)
        self.later(3)
        source = Source(f"{message.topic()}@{self.broker.topic_id(message.topic())}", 0, message.offset())
        rule = DECIDE[type(command)]
        decision = self.decide(
            command.key,
            lambda reader, context: rule(reader, command, context),
            request.id,
            source,
            principal,
        )
        reply = decision.reply
        assert refused == (reply is not None and reply.status in _REFUSED), (command, reply)
        return request.id, reply

    def decide(
        self,
        key: str,
        choose: Callable[[Reader, Context], Decision],
        request: str | None = None,
        source: Source | None = None,
        principal: str = "",
    ) -> Decision:
        """Append what is decided, as the journal does."""
        reader = GuardedReader(self.view(key))
        decision = choose(reader, Context(self.now, request, self.now, caught_up=True, measured=Lengths()))
        for event in decision.events:
            reader.get(event.aggregate)
        replied = request if decision.reply is not None else None
        if decision.events or replied or source is not None:
            self._append(key, JournalEntry(reader.seen, decision.events, replied, decision.reply, source, principal))
        return decision

    def happen(self, key: str, *events: Event) -> None:
        """Append events that no command of this log leads to."""
        self.decide(key, lambda _reader, _context: Decision(events))

    def _append(self, key: str, entry: JournalEntry) -> None:
        self._records += 1
        record = JournalRecord(f"sample-record-{self._records}", self.later(), WORKFLOWS, (entry,))
        headers = cloud_event_headers("Record", record.id, record.by, record.at, key)
        message = self.broker.land(JOURNAL.name, key, encode_record(record), headers)
        self.view(key).fold(record, message.offset(), self.now)
