"""The real journal over lists in memory: several instances, each with a view of its own, that follow one log.

Only Kafka is replaced. An instance can be frozen, so that it learns nothing; the log can be away, refuse what is
appended, or take it and lose the acknowledgement.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

from confluent_kafka import Message

from sluice.domain.commands import Command
from sluice.domain.decision import Decision
from sluice.domain.events import Event
from sluice.journal.barrier import Ends
from sluice.journal.journal import Journal
from sluice.journal.partition_view import PartitionView
from sluice.journal.record import Record, decode_record, encode_record
from sluice.messaging.producer import ProduceError, RecordTooLargeError
from sluice.messaging.requests import Headers, Request
from sluice.messaging.topics import JOURNAL, Topic

PARTITIONS = 4


class MemoryMessage:
    """As much of Kafka's message as followers and consumers look at."""

    def __init__(self, partition: int, offset: int, value: bytes, key: bytes = b"") -> None:
        self._facts = partition, offset, value, key

    def partition(self) -> int:
        return self._facts[0]

    def offset(self) -> int:
        return self._facts[1]

    def value(self) -> bytes:
        return self._facts[2]

    def key(self) -> bytes:
        return self._facts[3]

    def timestamp(self) -> tuple[int, int]:
        return 2, 0

    def headers(self) -> None:
        return None

    def error(self) -> None:
        return None


class Instance:
    """One process: its journal, and as much of a runtime and a producer as transactions need."""

    def __init__(self, world: "JournalWorld", number: int) -> None:
        self.world = world
        self.source = f"txn-manager/{number}"
        self.producer = self
        self.frozen = False
        self.refusing = False
        self.sent: list[tuple[str, Request]] = []
        self.journal = Journal({}, cast(Any, self), self.source, PARTITIONS)
        self.journal._ends = cast(Any, self)
        self.journal.loaded.set()
        self.thaw()

    def thaw(self) -> None:
        """Learn what was appended meanwhile, at once."""
        self.frozen = False
        for view, log in zip(self.journal.views(), self.world.log, strict=True):
            self.journal._on_batch(log[view.next_offset :])

    def ask(self) -> asyncio.Future[Ends]:
        """Part of EndOffsets."""
        return done({p: len(log) for p, log in enumerate(self.world.log)})

    def request(self, id: str, command: Command) -> Request:
        return Request(id=id, at=0, by=self.source, command=command)

    def send(self, topic: Topic, request: Request) -> asyncio.Future[None]:
        """Part of Runtime."""
        if self.refusing:
            raise ProduceError("refused")
        self.sent.append((topic.name, request))
        return done(None)

    def send_quietly(self, topic: str, key: str, value: bytes, _headers: Headers, _failed: Callable[..., None]) -> None:
        """Part of KafkaProducer."""
        assert topic == JOURNAL.name, topic
        self.world.appending(self, self.journal.partition_of(key), value)

    def tell(self, message: Message) -> None:
        """Whoever has missed a record learns no later one either, until it has caught up."""
        view = self.journal.views()[message.partition() or 0]
        if not self.frozen and message.offset() == view.next_offset:
            self.journal._on_batch([message])


class JournalWorld:
    """`refusals` and `losses` count the next appends that are not taken, and that are taken without a word.

    No record may have more than `most_bytes`.
    """

    def __init__(self, instances: int = 1) -> None:
        self.log: list[list[Message]] = [[] for _ in range(PARTITIONS)]
        self.refusals = 0
        self.losses = 0
        self.attempts = 0
        self.most_bytes = 1 << 30
        self.before_append: list[Callable[[], None]] = []
        self.instances = [Instance(self, number) for number in range(instances)]

    @property
    def first(self) -> Instance:
        return self.instances[0]

    def appending(self, by: Instance, partition: int, value: bytes) -> None:
        self.attempts += 1
        if self.refusals:
            self.refusals -= 1
            raise ProduceError("away")
        if len(value) > self.most_bytes:
            raise RecordTooLargeError(f"{len(value)} bytes")
        while self.before_append:
            self.before_append.pop()()
        lost = self.losses > 0
        self.losses -= lost
        message = self._append(partition, value)
        for instance in self.instances:
            if not (lost and instance is by):
                asyncio.get_running_loop().call_soon(instance.tell, message)

    def _append(self, partition: int, value: bytes) -> Message:
        message = cast(Message, MemoryMessage(partition, len(self.log[partition]), value))
        self.log[partition].append(message)
        return message

    def seed(self, key: str, *events: Event) -> None:
        """Make the events true for everybody, at once."""
        journal = self.first.journal
        partition = journal.partition_of(key)
        offset = len(self.log[partition])
        record = Record(id=f"seed-{partition}-{offset}", at=0, by="test", expect={}, events=events)
        message = self._append(partition, encode_record(record))
        for instance in self.instances:
            instance.tell(message)

    def view(self, key: str) -> PartitionView:
        return self.first.journal.reader(key)

    def records(self, key: str) -> Sequence[Record]:
        """What was appended to the key's partition, void records included."""
        return [decode_record(m.value() or b"") for m in self.log[self.first.journal.partition_of(key)]]

    async def do(self, key: str, decision: Callable[[PartitionView], Decision]) -> None:
        """Have the first instance decide something and wait until that counts."""
        await self.first.journal.execute(key, None, lambda reader, _context: decision(cast(PartitionView, reader)))


def done(value: Any) -> asyncio.Future[Any]:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future


async def settle(turns: int = 20) -> None:
    """Let everything run that is ready to."""
    for _ in range(turns):
        await asyncio.sleep(0)
