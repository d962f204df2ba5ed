"""Services in memory and in virtual time: a broker, segment stores, and processes with runtimes of their own.

All that stands outside of the processes is `sluice.memory`; what runs in them is production code.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from sluice.domain.commands import Command
from sluice.domain.decision import Context, Decision, Reader, Reply
from sluice.domain.events import Event
from sluice.domain.model import JournalEntry, JournalRecord, decode_record, encode_record
from sluice.domain.registry import decide
from sluice.engine.fold import PartitionView
from sluice.engine.journal import Journal
from sluice.engine.offsets import RequestFacts
from sluice.engine.ports import Clock
from sluice.engine.record import Entry
from sluice.kafka.requests import Request, decode_request
from sluice.kafka.topics import JOURNAL, Topic
from sluice.memory.broker import MemoryBroker, MemoryMessage
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.memory.log import MemoryLog
from sluice.pravega.memory import InMemorySegmentStore
from sluice.runtime import Runtime
from sluice.settings import ServiceSettings
from support.domain_log import Lengths

PARTITIONS = 4
BEGAN_MS = 1_000_000


class Process:
    """One process, whose journal follows the log from the start."""

    def __init__(self, world: "MemoryWorld", service: str, instance: str, clock: Clock | None) -> None:
        connections = MemoryConnections(world.groups)
        if clock is not None:
            connections.clock = clock
        settings = ServiceSettings(instance=instance, partitions=world.broker.partitions)
        self.runtime = Runtime(service, settings, connections)
        self.log: MemoryLog = connections.log
        self.journal.start()

    @property
    def journal(self) -> Journal:
        return self.runtime.journal


class MemoryWorld:
    """Everything that processes share, and the first of them."""

    def __init__(
        self,
        service: str = "stream-workflows",
        partitions: int = PARTITIONS,
        store: InMemorySegmentStore | None = None,
    ) -> None:
        self.broker = MemoryBroker(partitions, began_ms=BEGAN_MS)
        self.groups = MemoryGroups(self.broker)
        self.store = store or InMemorySegmentStore(clock_ms=self.broker.now_ms)
        self._service = service
        self._processes = 0
        self.first = self.process()

    def process(self, clock: Clock | None = None) -> Process:
        """One more; with a clock of its own if that is not the broker's."""
        self._processes += 1
        return Process(self, self._service, str(self._processes - 1), clock)

    @property
    def now_ms(self) -> int:
        return self.broker.now_ms()

    # The journal.

    def land(self, key: str, *events: Event) -> None:
        """Append the events, as one entry; the processes fold it a moment later."""
        offset = len(self.log_of(key))
        record = JournalRecord(f"landed-{offset}", self.now_ms, "test/0", (Entry(events=events),))
        self.broker.land(JOURNAL.name, key, encode_record(record))

    async def seed(self, key: str, *events: Event) -> None:
        """Make the events true for all processes but those that are frozen."""
        self.land(key, *events)
        await settle()

    def log_of(self, key: str) -> list[MemoryMessage]:
        """What stands in the key's partition of the journal."""
        return self.broker.log(JOURNAL.name, self.first.journal.partition_of(key))

    def view(self, key: str) -> PartitionView:
        return self.first.journal.reader(key)

    def entries(self, key: str | None = None) -> list[JournalEntry]:
        """All entries of the key's partition, or of all partitions; void ones included."""
        logs = [self.log_of(key)] if key is not None else self.broker.logs(JOURNAL.name)
        return [entry for log in logs for message in log for entry in decode_record(message.value()).entries]

    def events(self, kind: type) -> list[Any]:
        return [event for entry in self.entries() for event in entry.events if isinstance(event, kind)]

    def refuse(self, topic: Topic, count: int) -> None:
        """The topic takes none of the next records."""
        self.broker.faulty_topic, self.broker.refusals = topic.name, count

    # Topics.

    def values(self, topic: Topic) -> list[dict[str, Any]]:
        """The JSON values in a topic, partition by partition."""
        return [msgspec.json.decode(message.value()) for message in self.messages(topic)]

    def messages(self, topic: Topic) -> list[MemoryMessage]:
        return [message for log in self.broker.logs(topic.name) for message in log]

    def requests(self, topic: Topic) -> list[Request]:
        """What was requested in a topic, partition by partition."""
        return [decode_request(message.value()) for message in self.messages(topic)]

    def request(self, id: str, command: Command) -> None:
        """What the gateway does: send the command to its topic."""
        self.first.runtime.sender.send(id, command)

    # Decisions.

    async def do(self, key: str, rule: Callable[[Reader, Context], Decision], request: str | None = None) -> Decision:
        """Have the first process decide something; return when that counts."""
        decision = await self.first.journal.propose(key, rule, RequestFacts(request))
        assert decision is not None
        return decision

    async def ask(self, command: Command, request: str | None = None) -> Reply | None:
        """Have the command decided under its key, by views that have caught up, and nothing more done.

        Raises BusyError.
        """

        def rule(reader: Reader, context: Context) -> Decision:
            return decide(reader, command, msgspec.structs.replace(context, caught_up=True, measured=Lengths()))

        decision = await self.do(command.key, rule, request)
        reply: Reply | None = decision.reply
        return reply


class ManualClock:
    """A clock that a test sets, in epoch ms."""

    def __init__(self, now: int) -> None:
        self.now = now

    def now_ms(self) -> int:
        """See Clock."""
        return self.now


class LateClock:
    """A clock that is behind another one."""

    def __init__(self, clock: Clock, late_ms: int) -> None:
        self._clock = clock
        self._late_ms = late_ms

    def now_ms(self) -> int:
        """See Clock."""
        return self._clock.now_ms() - self._late_ms


async def settle(turns: int = 20) -> None:
    """Let everything run that is ready to."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def until(holds: Callable[[], bool], max_s: float = 600.0) -> None:
    """Let time pass until the condition holds."""
    async with asyncio.timeout(max_s):
        while not holds():  # noqa: ASYNC110 - looking again costs nothing, time is virtual
            await asyncio.sleep(0.01)
