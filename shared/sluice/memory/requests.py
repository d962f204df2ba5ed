"""Consumer groups in memory: which process reads which partition of a topic, and what it has committed.

A member that dies or freezes loses its partitions after the session's time to the other members; one that wakes goes on
for a while with what it believes to own. Offsets are committed now and then, so that what a member has handled may be
delivered a second time to the next.
"""

import contextvars
from collections.abc import Callable, Collection, Sequence

from sluice.engine.ports import EndsUnknownError, PartitionProgress, SourceListener
from sluice.engine.record import RequestPosition
from sluice.memory.broker import Fetching, MemoryBroker, MemoryMessage

SESSION_S = 1.5
_NOTHING: RequestPosition = (-1, 0)

OnOwned = Callable[[int, object | None], None]


class MemoryRequestSource:
    """See RequestSource. `process` is the one that the member belongs to."""

    def __init__(self, group: "MemoryGroup", process: object) -> None:
        self.topic = group.topic
        self.failure: BaseException | None = None
        self.process = process
        self.paused = frozenset[int]()
        self.context = contextvars.copy_context()
        self.fetching: Fetching | None = None
        self._group = group
        self._listener: SourceListener | None = None

    def start(self, listener: SourceListener) -> None:
        """See RequestSource."""
        self._listener = listener
        self.context = contextvars.copy_context()
        self.fetching = Fetching(self._group.broker, self.topic, self._received)
        self._group.join(self)

    async def stop(self) -> None:
        """See RequestSource. The listener is notified that its partitions go, as Kafka's consumer does when closed."""
        owned = sorted(self.fetching.at) if self.fetching is not None else []
        self._group.leave(self, commit=True)
        if owned:
            self.revoke(owned)

    def commit(self) -> bool:
        """See RequestSource."""
        return self._group.commit(self)

    def pause(self, partitions: Collection[int]) -> None:
        """See RequestSource."""
        self.paused = frozenset(partitions)
        self._hold()

    async def identity(self) -> str:
        """See RequestSource."""
        if self._group.broker.back_s is not None:
            raise EndsUnknownError("Local: Timed out")
        return f"{self.topic}@{self._group.broker.topic_id(self.topic)}"

    def assign(self, partitions: list[int], positions: dict[int, int]) -> None:
        """The group gives these to the member."""
        assert self._listener is not None and self.fetching is not None
        # What the listener pauses as soon as it has it is not handed over.
        self.fetching.start(positions)
        self._listener.assigned(partitions)
        self._hold()

    def revoke(self, partitions: list[int]) -> None:
        """The group takes these from the member."""
        assert self._listener is not None
        self._listener.revoked(partitions)

    def position(self, partition: int) -> RequestPosition | None:
        """Where the next owner may begin, behind the leader epoch of what is below; None: where this one began."""
        return self._listener.positions().get(partition) if self._listener is not None else None

    def _hold(self) -> None:
        if self.fetching is not None:
            self.fetching.held = set(self.paused)
            self.fetching.notice()

    def _received(self, batch: Sequence[MemoryMessage]) -> None:
        if self._listener is not None:
            self._listener.received(batch)


class MemoryGroup:
    """The readers of one topic. `on_owned` is called when a partition has lost its owner (None) or has one."""

    def __init__(self, broker: MemoryBroker, topic: str, on_owned: OnOwned = lambda _partition, _process: None) -> None:
        self.broker = broker
        self.topic = topic
        self._topic_id = broker.topic_id(topic)
        self.committed: list[RequestPosition] = [_NOTHING] * broker.count(topic)
        self.owners: list[MemoryRequestSource | None] = [None] * broker.count(topic)
        self._on_owned = on_owned
        self._members: list[MemoryRequestSource] = []
        self._given = [0] * broker.count(topic)
        self._lost: list[MemoryRequestSource] = []

    def source(self, process: object) -> MemoryRequestSource:
        """One more member, for a process; it joins when it is started."""
        return MemoryRequestSource(self, process)

    def join(self, member: MemoryRequestSource) -> None:
        self._members.append(member)
        self.balance()

    def leave(self, member: MemoryRequestSource, commit: bool = False) -> None:
        """The member goes at once."""
        if member not in self._members:
            return
        if commit:
            self.commit(member)
        self._members.remove(member)
        if member.fetching is not None:
            member.fetching.end()
        self._free(member)
        self.balance()

    def lose(self, process: object) -> None:
        """It has died or is frozen: its partitions are free after the session's time."""
        for partition, owner in enumerate(self.owners):
            if owner is not None and owner.process is process:
                self._on_owned(partition, None)
        self.broker.loop.call_later(SESSION_S, self._expire, process, context=self.broker.outside)

    def wake(self, process: object) -> None:
        """It was frozen: it learns what it has lost, and joins again."""
        if any(member.process is process for member in self._members):
            return
        for member in self._lost:
            if member.process is process:
                delay_s = self.broker.random.choice((0.001, 0.05, 0.3))
                self.broker.loop.call_later(delay_s, self._rejoin, member, context=member.context)

    def commit(self, member: MemoryRequestSource) -> bool:
        """Whether something was to be committed; that is done only while the broker and the process run."""
        self._forget_deleted_topic()
        due: dict[int, RequestPosition] = {}
        for partition, owner in enumerate(self.owners):
            position = member.position(partition) if owner is member else None
            if position is not None and position != self.committed[partition]:
                due[partition] = position
        if self.broker.back_s is None and self.broker.is_running(member.process):
            for partition, position in due.items():
                self.committed[partition] = position
        return bool(due)

    def progress(self, now_ms: int) -> list[PartitionProgress]:
        """How far its members have come, by what is committed; an owner's name is its process."""
        found = []
        for partition, (owner, log) in enumerate(zip(self.owners, self.broker.logs(self.topic), strict=True)):
            begin, name = self._begin(partition), str(owner.process) if owner is not None else ""
            oldest_ms = now_ms - log[begin].timestamp()[1] if begin < len(log) else None
            found.append(PartitionProgress(self.topic, partition, name, len(log) - begin, len(log), oldest_ms))
        return found

    def lose_offsets(self) -> None:
        """Nothing is committed any more: a new owner reads all there is."""
        self.committed = [_NOTHING] * len(self.committed)

    def _forget_deleted_topic(self) -> None:
        """What was committed of a topic goes with it."""
        if self._topic_id != self.broker.topic_id(self.topic):
            self._topic_id = self.broker.topic_id(self.topic)
            self.lose_offsets()

    def balance(self, bounce: bool = False) -> None:
        """Give each partition to a member; with `bounce` take all away first, uncommitted."""
        if not self._members:
            return
        random = self.broker.random
        wanted: list[MemoryRequestSource] = []
        for owner in self.owners:
            stays = owner in self._members and not bounce and random.random() < 0.7
            wanted.append(owner if stays and owner is not None else random.choice(self._members))
        moved = [p for p, owner in enumerate(self.owners) if bounce or owner is not wanted[p]]
        leaving: dict[MemoryRequestSource, list[int]] = {}
        for partition in moved:
            owner = self.owners[partition]
            if owner is not None and owner in self._members:
                leaving.setdefault(owner, []).append(partition)
        for member, partitions in leaving.items():
            if not bounce or random.random() < 0.5:
                self.commit(member)
            self._take(member, partitions)
        coming: dict[MemoryRequestSource, list[int]] = {}
        for partition in moved:
            self.owners[partition] = wanted[partition]
            coming.setdefault(wanted[partition], []).append(partition)
        for member, partitions in coming.items():
            self._give(member, partitions)

    def _take(self, member: MemoryRequestSource, partitions: list[int]) -> None:
        for partition in partitions:
            if member.fetching is not None:
                member.fetching.at.pop(partition, None)
            self._on_owned(partition, None)
        self.broker.loop.call_soon(member.revoke, partitions, context=member.context)

    def _give(self, member: MemoryRequestSource, partitions: list[int]) -> None:
        """A member that is frozen may learn of several assignments at once: only the last of each partition holds."""
        for partition in partitions:
            self._given[partition] += 1
        given = {partition: self._given[partition] for partition in partitions}

        def begin() -> None:
            assert member.fetching is not None
            mine = [p for p in partitions if self.owners[p] is member and self._given[p] == given[p]]
            if mine and member in self._members:
                member.assign(mine, {p: self._begin(p) for p in mine})
                for partition in mine:
                    self._on_owned(partition, member.process)

        delay_s = self.broker.delay_s()
        self.broker.loop.call_later(delay_s, begin, context=member.context)

    def _begin(self, partition: int) -> int:
        """Where the partition's next owner begins: see RequestSource."""
        self._forget_deleted_topic()
        epoch, offset = self.committed[partition]
        return min(offset, self.broker.end_of_epoch(self.topic, partition, epoch))

    def _free(self, member: MemoryRequestSource) -> None:
        for partition, owner in enumerate(self.owners):
            if owner is member:
                self.owners[partition] = None

    def _expire(self, process: object) -> None:
        if self.broker.is_running(process):
            return
        for member in [m for m in self._members if m.process is process]:
            self._members.remove(member)
            self._lost.append(member)
            self._free(member)
        self.balance()

    def _rejoin(self, member: MemoryRequestSource) -> None:
        if member not in self._lost:
            # It has woken twice since it was lost.
            return
        self._lost.remove(member)
        assert member.fetching is not None
        believed = sorted(member.fetching.at)
        member.fetching.at.clear()
        member.revoke(believed)
        self._members.append(member)
        self.broker.loop.call_soon(self.balance, context=self.broker.outside)
