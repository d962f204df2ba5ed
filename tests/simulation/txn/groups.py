"""Consumer groups: which process reads which partition of a topic, and what it has committed.

A member that dies or freezes loses its partitions after the session's time to whoever is there; one that wakes goes on
for a while with what it believes to own. Offsets are committed now and then, so that what a member has handled may be
delivered once more to the next.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from simulation.txn.broker import PARTITIONS, Broker, Fetching, Message
from simulation.txn.lives import LIFE, Life, Living

from sluice.messaging.keyed_consumer import KeyedConsumer
from sluice.settings import ServiceSettings
from txn_manager.abort_lanes import Aborting, Handle, Lanes, OnFailure

SESSION_S = 1.5
COMMIT_S = 0.5


class Source(Protocol):
    """What a member of a group has for its records."""

    def assigned(self, partitions: list[int]) -> None: ...

    def revoked(self, partitions: list[int]) -> None: ...

    def deliver(self, batch: list[Message]) -> None: ...

    def position(self, partition: int) -> int | None:
        """Where the next owner may begin; None: where this one began."""


class KeyedSource:
    """The production consumer, without its thread."""

    def __init__(self, consumer: KeyedConsumer) -> None:
        self._consumer = consumer
        self.assigned = consumer._assigned
        self.revoked = consumer._revoked

    def deliver(self, batch: list[Message]) -> None:
        self._consumer._on_batch(batch)  # type: ignore[arg-type]

    def position(self, partition: int) -> int | None:
        offsets = self._consumer._offsets.get(partition)
        return offsets.position if offsets is not None else None


class AbortSource:
    """Stands for the Faust agent: its lanes are the production code, and so are the promises they are given.

    Eager, as Faust is: when partitions change, everything that waits is forgotten and comes again from the last commit.
    """

    joined = True
    failure: BaseException | None = None

    def __init__(self, _settings: ServiceSettings, _group: str, handle: Handle, on_failure: OnFailure) -> None:
        self._handle = handle
        self._on_failure = on_failure
        self._lanes: Lanes | None = None
        self._positions: dict[int, int] = {}
        self._waiting: asyncio.Queue[Message] = asyncio.Queue()
        self._feeding: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """See AbortAgent."""

    async def stop(self) -> None:
        """See AbortAgent."""

    def assigned(self, _partitions: list[int]) -> None:
        self._lanes = Lanes(self._handle, self._on_failure, 1000)
        self._waiting = asyncio.Queue()
        self._feeding = asyncio.get_running_loop().create_task(self._feed(self._lanes, self._waiting))

    def revoked(self, _partitions: list[int]) -> None:
        if self._feeding is not None:
            self._feeding.cancel()
        if self._lanes is not None:
            asyncio.get_running_loop().create_task(self._lanes.clear(0.5))
            self._lanes = None
        self._positions = {}

    def deliver(self, batch: list[Message]) -> None:
        for message in batch:
            self._waiting.put_nowait(message)

    def position(self, partition: int) -> int | None:
        return self._positions.get(partition)

    async def _feed(self, lanes: Lanes, waiting: asyncio.Queue[Message]) -> None:
        while True:
            message = await waiting.get()
            partition, offset = message.partition(), message.offset()
            record = Aborting(message.key().decode(), message.value(), partition, offset, message.timestamp()[1])
            await lanes.put(record, self._acknowledge(lanes, partition, offset))

    def _acknowledge(self, lanes: Lanes, partition: int, offset: int) -> Callable[[], None]:
        def acknowledge() -> None:
            if lanes is self._lanes:
                self._positions[partition] = offset + 1

        return acknowledge


class _Member:
    def __init__(self, group: "Group", life: Life, source: Source) -> None:
        self.life = life
        self.source = source
        self.fetching = Fetching(group.broker, group.topic, life.context, self.deliver)
        self._group = group
        self._committed_s = 0.0

    def deliver(self, batch: list[Message]) -> None:
        self.source.deliver(batch)
        now = self._group.broker.loop.now
        if now - self._committed_s >= COMMIT_S:
            self._committed_s = now
            self._group.commit(self)


class Group:
    """The readers of one topic. `on_owned` is told when a partition has lost its owner (None) and when it has one."""

    def __init__(
        self,
        broker: Broker,
        topic: str,
        eager: bool = False,
        on_owned: Callable[[int, Life | None], None] = lambda _partition, _life: None,
    ) -> None:
        self.broker = broker
        self.topic = topic
        self.committed = [0] * PARTITIONS
        self.owners: list[_Member | None] = [None] * PARTITIONS
        self._eager = eager
        self._on_owned = on_owned
        self._members: list[_Member] = []
        self._lost: list[_Member] = []

    def join(self, life: Life, source: Source) -> None:
        self._members.append(_Member(self, life, source))
        self.balance()

    def lose(self, life: Life) -> None:
        """It has died or is frozen: its partitions are free after the session's time."""
        for partition, owner in enumerate(self.owners):
            if owner is not None and owner.life is life:
                self._on_owned(partition, None)
        loop = self.broker.loop
        loop.call_later(SESSION_S, self._expire, life, context=loop.outside)

    def wake(self, life: Life) -> None:
        """It was frozen: it learns what it has lost, and joins again."""
        for member in self._members:
            if member.life is life:
                return
        loop = self.broker.loop
        for member in self._lost:
            if member.life is life:
                delay_s = self.broker.random.choice((0.001, 0.05, 0.3))
                loop.call_later(delay_s, self._rejoin, member, context=life.context)

    def commit(self, member: _Member) -> None:
        if self.broker.back_s is not None:
            return
        for partition, owner in enumerate(self.owners):
            if owner is member:
                position = member.source.position(partition)
                if position is not None:
                    self.committed[partition] = max(self.committed[partition], position)

    def balance(self, bounce: bool = False) -> None:
        """Give each partition to somebody who is there; with `bounce` take all away first, uncommitted."""
        if not self._members:
            return
        random = self.broker.random
        wanted: list[_Member] = []
        for owner in self.owners:
            stays = owner in self._members and not bounce and random.random() < 0.7
            wanted.append(owner if stays and owner is not None else random.choice(self._members))
        moved = [p for p, owner in enumerate(self.owners) if bounce or owner is not wanted[p]]
        if self._eager and moved:
            moved = list(range(PARTITIONS))
        leaving: dict[_Member, list[int]] = {}
        for partition in moved:
            owner = self.owners[partition]
            if owner is not None and owner in self._members:
                leaving.setdefault(owner, []).append(partition)
        for member, partitions in leaving.items():
            if not bounce or random.random() < 0.5:
                self.commit(member)
            self._take(member, partitions)
        coming: dict[_Member, list[int]] = {}
        for partition in moved:
            self.owners[partition] = wanted[partition]
            coming.setdefault(wanted[partition], []).append(partition)
        for member, partitions in coming.items():
            self._give(member, partitions)

    def _take(self, member: _Member, partitions: list[int]) -> None:
        for partition in partitions:
            member.fetching.at.pop(partition, None)
            self._on_owned(partition, None)
        loop = self.broker.loop
        loop.call_soon(member.source.revoked, partitions, context=member.life.context)

    def _give(self, member: _Member, partitions: list[int]) -> None:
        def begin() -> None:
            mine = [p for p in partitions if self.owners[p] is member and p not in member.fetching.at]
            if mine:
                member.source.assigned(mine)
                member.fetching.start({p: self.committed[p] for p in mine})
                for partition in mine:
                    self._on_owned(partition, LIFE.get())

        loop = self.broker.loop
        loop.call_later(random_s(self.broker), begin, context=member.life.context)

    def _expire(self, life: Life) -> None:
        if life.living is Living.RUNNING:
            return
        for member in [m for m in self._members if m.life is life]:
            self._members.remove(member)
            if life.living is Living.DEAD:
                member.fetching.end()
            else:
                self._lost.append(member)
            for partition, owner in enumerate(self.owners):
                if owner is member:
                    self.owners[partition] = None
        self.balance()

    def _rejoin(self, member: _Member) -> None:
        self._lost.remove(member)
        believed = sorted(member.fetching.at)
        member.fetching.at.clear()
        member.source.revoked(believed)
        self._members.append(member)
        loop = self.broker.loop
        loop.call_soon(self.balance, context=loop.outside)


def random_s(broker: Broker) -> float:
    return broker.random.choice((0.0, 0.002, 0.02))
