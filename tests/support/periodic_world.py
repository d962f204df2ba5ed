"""A journal, topics and segment stores in memory, and instances that do the periodic work on them.

The journal and the jobs are the production code; only Kafka is a list. Streams come about as far as periodic work
needs them: in the journal, and with their segments in the store.
"""

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any, cast

from confluent_kafka import Message

from sluice.domain.aggregates import DECIDE
from sluice.domain.commands import Command, CreateReserved, CreateStream
from sluice.domain.config import StreamConfig
from sluice.domain.decision import Context, Decision, Reader, Reply
from sluice.domain.names import mark_stream, stream_key
from sluice.domain.segment_id import segment_name
from sluice.domain.stream import decide, scale
from sluice.domain.stream.state import Stream, find_stream
from sluice.journal.barrier import Ends
from sluice.journal.journal import Journal
from sluice.journal.record import Record, decode_record
from sluice.messaging.producer import ProduceError
from sluice.messaging.requests import Headers, Request
from sluice.messaging.topics import JOURNAL, Topic
from sluice.runtime import Runtime
from sluice.segmentstore.memory import InMemorySegmentStore
from support.memory_journal import MemoryMessage

PARTITIONS = 4


class Instance:
    """One process: as much of a runtime and its producer as the jobs use. A frozen one learns nothing more."""

    def __init__(self, world: "World", number: int) -> None:
        self.world = world
        self.source = f"stream-workflows/{number}"
        self.producer = self
        self.refusing = False
        self.frozen = False
        self.journal = Journal({}, cast(Any, self), self.source, PARTITIONS)
        self.journal._ends = cast(Any, self)
        for log in world.log:
            self.journal._on_batch(log)

    @property
    def runtime(self) -> Runtime:
        return cast(Runtime, self)

    def ask(self) -> asyncio.Future[Ends]:
        """Part of EndOffsets."""
        return _done({p: view.next_offset for p, view in enumerate(self.journal.views())})

    def request(self, id: str, command: Command) -> Request:
        return Request(id=id, at=0, by=self.source, command=command)

    def send(self, topic: Topic | str, *what: Any) -> asyncio.Future[None]:
        """Part of Runtime and of KafkaProducer."""
        if self.refusing:
            raise ProduceError("refused")
        if isinstance(topic, Topic):
            self.world.requests.append(what[0])
        else:
            key, value, headers = what
            self.world.sent.append((topic, key, value, dict(headers)))
        return _done(None)

    def send_quietly(self, topic: str, key: str, value: bytes, _headers: Headers, _failed: Callable[..., None]) -> None:
        """Part of KafkaProducer."""
        assert topic == JOURNAL.name, topic
        self.world.append(self.journal.partition_of(key), value)


class World:
    """Everything that instances share, and the first of them."""

    def __init__(self) -> None:
        self.log: list[list[Message]] = [[] for _ in range(PARTITIONS)]
        self.sent: list[tuple[str, str, bytes, dict[str, Any]]] = []
        self.requests: list[Request] = []
        self.store = InMemorySegmentStore()
        self.now = 1_000_000
        self.instances: list[Instance] = []
        self.first = self.instance()

    def clock(self) -> int:
        return self.now

    def instance(self) -> Instance:
        self.instances.append(Instance(self, len(self.instances)))
        return self.instances[-1]

    def append(self, partition: int, value: bytes) -> None:
        message = cast(Message, MemoryMessage(partition, len(self.log[partition]), value))
        self.log[partition].append(message)
        for instance in self.instances:
            if not instance.frozen:
                asyncio.get_running_loop().call_soon(instance.journal._on_batch, [message])

    def told(self, topic: Topic) -> list[dict[str, Any]]:
        """The JSON values in a topic."""
        return [json.loads(value) for name, _, value, _ in self.sent if name == topic.name]

    def records(self) -> Iterable[Record]:
        """The journal, partition by partition; void records included."""
        return (decode_record(m.value() or b"") for log in self.log for m in log)

    def events(self, kind: type) -> list[Any]:
        return [event for record in self.records() for event in record.events if isinstance(event, kind)]

    # What users do.

    async def do(self, key: str, rule: Callable[[Reader, Context], Decision]) -> Decision:
        executed = await self.first.journal.execute(key, None, rule)
        assert executed.decision is not None
        return executed.decision

    async def ask(self, command: Command) -> Reply | None:
        decision = await self.do(command.key, lambda reader, context: DECIDE[type(command)](reader, command, context))
        return decision.reply

    def stream(self, scope: str, name: str) -> Stream:
        stream = find_stream(self.first.journal.reader(stream_key(scope, name)), scope, name)
        assert stream is not None
        return stream

    async def create(self, scope: str, name: str, config: StreamConfig, incarnation: str = "r") -> None:
        """The stream and its mark stream, with their segments."""
        await self.ask(CreateReserved(CreateStream(scope, name, config), f"{incarnation}-{scope}-{name}", 1000))
        await self.do(stream_key(scope, name), lambda reader, _: decide.finish_create(reader, scope, name))
        for stream in (name, mark_stream(name)):
            await self.create_segments(scope, stream)

    async def create_segments(self, scope: str, name: str) -> None:
        for segment in self.stream(scope, name).segments:
            await self.store.create_segment(segment_name(scope, name, segment), 0, 0)

    async def finish_scale(self, scope: str, name: str, sizes: dict[int, int]) -> None:
        """See a scale through that was asked for."""
        key = stream_key(scope, name)
        await self.do(key, lambda reader, _: scale.add_epoch(reader, scope, name))
        await self.create_segments(scope, name)
        await self.do(key, lambda reader, _: scale.finish_scale(reader, scope, name, sizes))

    def write(self, scope: str, name: str, segment: int, data: bytes) -> None:
        """Put bytes at the end of a segment, as they are."""
        self.store.segments[segment_name(scope, name, segment)].data += data


def _done(value: Any) -> asyncio.Future[Any]:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future
