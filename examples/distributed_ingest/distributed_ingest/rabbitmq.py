"""Messages of a queue of RabbitMQ, into the stream: all workers of all nodes take from it.

RabbitMQ itself shares the messages out and keeps the position: a message is acknowledged when it is stored, and what
was not acknowledged is delivered again, to any node. So at most the last batch of each worker is there twice.

Concurrency: belongs to one event loop; each task has a connection of its own.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import NamedTuple, Protocol

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
from aio_pika.exceptions import AMQPError

from distributed_ingest.feed import Reach, Scene, lag
from distributed_ingest.outlet import BATCH_BYTES
from distributed_ingest.records import MAX_EVENT_BYTES
from sluice.exceptions import in_words
from sluice.security.hiding import shown
from sluice_cli.errors import UnreachableError
from sluice_coordination import Functions, NodeEntry, PartitionedSource, SourceState, Task, TaskContext

NAME = "rabbitmq"
_FUNCTION = "take-messages"
CONNECT_S = 10.0
MAX_BATCH = 1_000
LAG_EVERY_S = 5.0


class QueueError(Exception):
    """RabbitMQ gave no answer that can be used."""


class Received(NamedTuple):
    """A message. `tag`: its number on this connection."""

    tag: int
    data: bytes
    key: str


class Queue(Protocol):
    """A queue, by a connection of one task. Every method raises QueueError."""

    async def receive(self) -> Sequence[Received]:
        """Wait for messages; return those that are there, in their order, one batch at most."""

    async def acknowledge(self, tag: int) -> None:
        """Have all messages up to this one forgotten."""

    async def waiting(self) -> int:
        """Return how many messages are in the queue and delivered to nobody."""


Connect = Callable[[], AbstractAsyncContextManager[Queue]]


class RabbitMq:
    """See Feed. `connect`: to a twin; else to the queue `name` at `url`."""

    def __init__(self, scene: Scene, url: str, name: str, connect: Connect | None = None) -> None:
        self._scene = scene
        self._origin = f"{shown(url)} {name}"
        self._connect: Connect = connect or (lambda: opened(url, name))

    async def open(self) -> None:
        """See Feed."""
        try:
            async with self._connect() as queue:
                await queue.waiting()
        except QueueError as error:
            raise UnreachableError(
                f"cannot read {self._origin}: {error}", "is it there, and may you read it?"
            ) from error

    def register(self, functions: Functions) -> None:
        """See Feed."""
        functions.register(_FUNCTION)(self._take)

    def source(self) -> PartitionedSource:
        """See Feed."""
        return PartitionedSource(NAME, self._partition, self._scene.settle_s)

    async def reach(self, state: SourceState) -> Reach:  # noqa: ARG002 - a queue has no end
        """See Feed."""
        return Reach(0, None, "messages", finished=False)

    async def close(self) -> None:
        """See Feed."""

    def _partition(self, nodes: Sequence[NodeEntry]) -> list[Task]:
        return [Task(_FUNCTION, {"number": number}) for number in range(max(1, sum(node.workers for node in nodes)))]

    async def _take(self, context: TaskContext, number: int) -> None:  # noqa: ARG002 - it tells tasks apart
        """Take messages until stopped."""
        outlet, requested_at = self._scene.outlet, float("-inf")
        try:
            async with self._connect() as queue:
                while True:
                    context.check()
                    if time.monotonic() - requested_at >= LAG_EVERY_S:
                        context.held_lock.report(lag(await queue.waiting(), "messages"))
                        requested_at = time.monotonic()
                    messages = await queue.receive()
                    fitting = [each for each in messages if 0 < len(each.data) <= MAX_EVENT_BYTES]
                    events = [outlet.event(each.data, self._origin, each.key.encode()) for each in fitting]

                    async def acknowledge(tag: int = messages[-1].tag) -> None:
                        await queue.acknowledge(tag)

                    await outlet.deliver(context, self._origin, events, acknowledge)
                    if left_out := len(messages) - len(fitting):
                        why = f"{self._origin}: messages are empty or have more than {MAX_EVENT_BYTES} bytes"
                        outlet.skipped(self._origin, left_out, why)
        except QueueError as error:
            outlet.tally.problem(f"{self._origin}: {error}")
            raise


class _Queue:
    """See Queue."""

    def __init__(self, channel: AbstractChannel, name: str) -> None:
        self._channel = channel
        self._name = name
        self._come = asyncio.Queue[AbstractIncomingMessage | None]()
        self._last: AbstractIncomingMessage | None = None
        channel.close_callbacks.add(lambda *_: self._come.put_nowait(None))

    async def begin(self) -> None:
        await self._channel.set_qos(prefetch_count=MAX_BATCH)
        queue = await self._channel.get_queue(self._name)
        await queue.consume(self._come.put)

    async def receive(self) -> Sequence[Received]:
        """See Queue."""
        messages = [await self._come.get()]
        size = 0
        while len(messages) < MAX_BATCH and size < BATCH_BYTES and not self._come.empty():
            messages.append(self._come.get_nowait())
            size += len(messages[-1].body) if messages[-1] is not None else 0
        if (last := messages[-1]) is None or None in messages:
            raise QueueError("the connection has ended")
        self._last = last
        return [Received(m.delivery_tag or 0, m.body, m.routing_key or "") for m in messages if m is not None]

    async def acknowledge(self, tag: int) -> None:
        """See Queue."""
        with _errors():
            assert self._last is not None and self._last.delivery_tag == tag
            await self._last.ack(multiple=True)

    async def waiting(self) -> int:
        """See Queue."""
        with _errors():
            queue = await self._channel.get_queue(self._name)
            return queue.declaration_result.message_count or 0


@asynccontextmanager
async def opened(url: str, name: str) -> AsyncIterator[Queue]:
    """Connect to a queue for the block. Raises QueueError."""
    with _errors():
        connection = await aio_pika.connect(url, timeout=CONNECT_S)
    try:
        with _errors():
            queue = _Queue(await connection.channel(), name)
            await queue.begin()
        yield queue
    finally:
        await connection.close()


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except (AMQPError, OSError, TimeoutError, ValueError) as error:
        raise QueueError(in_words(error)) from error
