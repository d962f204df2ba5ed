"""Requests handed to a consumer by hand: which partitions it has, what it receives, and what it had paused."""

import asyncio
from collections.abc import Collection
from typing import Any

from sluice.engine.consumer import CONTROL_HEADER, Continuation, Delivery, Handler, RequestConsumer
from sluice.engine.ports import EndsUnknownError, SourceListener
from sluice.memory.broker import MemoryMessage
from support.engine_world import REQUESTS, EngineWorld, settle


class HandSource:
    """See RequestSource. While `away` the topic's identity is not known, while `uncommitted` no commit succeeds."""

    topic = REQUESTS

    def __init__(self) -> None:
        self.failure: BaseException | None = None
        self.paused: Collection[int] = frozenset()
        self.away = False
        self.creation = 1
        self.commits = 0
        self.uncommitted = False
        self.listener: SourceListener | None = None
        self.is_stopped = False
        self.at_stop: list[MemoryMessage] = []

    def start(self, listener: SourceListener) -> None:
        self.listener = listener

    async def stop(self) -> None:
        """What is in `at_stop` comes on the way."""
        if self.listener is not None and self.at_stop:
            self.listener.received(self.at_stop)
        await asyncio.sleep(0.1)
        self.is_stopped = True

    def commit(self) -> bool:
        self.commits += 1
        return self.uncommitted

    def pause(self, partitions: Collection[int]) -> None:
        self.paused = set(partitions)

    async def identity(self) -> str:
        if self.away:
            raise EndsUnknownError("away")
        return f"{REQUESTS}@{self.creation}"


class HandConsumer:
    """A consumer over a HandSource.

    Requests of a key that begins with "stuck" are handled when `go` is set, those of one that begins with "bad" fail.
    `handled` has the offsets of the others, `kept` what was kept as a dead letter, while `keeps`. Own partitions are
    taken over once `own` is set. Those of the kind "Report" stand beside the others.
    """

    def __init__(self, world: EngineWorld, max_open: int = 10_000, *, is_keyed: bool = True) -> None:
        self.world = world
        self.source = HandSource()
        self.go, self.own = asyncio.Event(), asyncio.Event()
        self.own.set()
        self.owned: list[tuple[str, int]] = []
        self.begun: list[int] = []
        self.handled: list[int] = []
        self.deliveries: list[Delivery] = []
        self.kept: list[Exception] = []
        self.keeps = True
        self.continuation: Continuation | None = None
        self.handler: Handler = self._handle
        self.consumer = RequestConsumer(
            self.source,
            world.journal,
            lambda delivery: self.handler(delivery),
            self._own,
            self._failed,
            max_open=max_open,
            is_keyed=is_keyed,
            on_revoked=lambda partition: self.owned.append(("revoked", partition)),
            beside=["Report"],
        )
        self.consumer.start()

    async def _handle(self, delivery: Delivery) -> Continuation | None:
        self.deliveries.append(delivery)
        self.begun.append(delivery.offset)
        if delivery.key.startswith("bad"):
            raise ValueError("cannot be handled")
        if delivery.key.startswith("stuck"):
            await self.go.wait()
        self.handled.append(delivery.offset)
        return self.continuation

    async def _own(self, partition: int) -> None:
        await self.own.wait()
        self.owned.append(("owned", partition))

    async def _failed(self, _delivery: Delivery, error: Exception) -> None:
        if not self.keeps:
            raise ValueError("cannot be kept")
        self.kept.append(error)

    def key(self, name: str, partition: int) -> str:
        """A key of the partition that begins with the name."""
        keys = (f"{name}{number}" for number in range(1000))
        return next(key for key in keys if self.world.journal.partition_of(key) == partition)

    def message(
        self,
        partition: int,
        name: str,
        offset: int,
        *,
        kind: str = "Command",
        epoch: int = 0,
        is_control: bool = False,
        age_ms: int = 0,
    ) -> MemoryMessage:
        headers = [("ce_type", kind), *([(CONTROL_HEADER, b"1")] if is_control else [])]
        at_ms = self.world.broker.now_ms() - age_ms
        key = self.key(name, partition)
        return MemoryMessage(REQUESTS, partition, offset, key, b"", at_ms, headers, epoch)

    async def assign(self, *partitions: int) -> None:
        self.consumer.assigned(list(partitions))
        await settle()

    async def revoke(self, *partitions: int) -> None:
        self.consumer.revoked(list(partitions))
        await settle()

    async def take(self, partition: int, name: str, *offsets: int, **facts: Any) -> None:
        """Requests of one key come in one batch; `facts` are those of `message`."""
        batch = [self.message(partition, name, n, **facts) for n in offsets]
        self.consumer.received(batch)
        await settle()
