"""A journal and a ZooKeeper in memory, shared by several instances of the cluster manager, each of which can freeze.

Both keep the promises the real ones are trusted for: the journal its fold rule and its barrier, ZooKeeper its node
versions and one-shot watches.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from cluster_manager.containers import ContainerManager
from cluster_manager.nodes import HostMap, MapChangedError, MapNode, NodesError
from sluice.domain.aggregates import evolve
from sluice.domain.cluster import CLUSTER, Cluster, cluster_of
from sluice.domain.commands import Heartbeat, Host
from sluice.domain.decision import Context
from sluice.domain.events import ContainersAssigned
from sluice.journal.journal import Decide, Executed, JournalUnavailableError
from sluice.journal.partition_view import GuardedReader, Outcome, PartitionView
from sluice.journal.record import Record, decode_record, encode_record

A, B, C = Host("10.0.0.1", 12345), Host("10.0.0.2", 12345), Host("10.0.0.3", 12345)
START_MS = 1_700_000_000_000


def now_ms() -> int:
    return START_MS + round(asyncio.get_running_loop().time() * 1000)


class FakeLog:
    """The records all instances agree on, as bytes, like the topic holds them."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.followers: list[FakeJournal] = []
        self.away = False

    def append(self, record: Record) -> int:
        if self.away:
            raise JournalUnavailableError("away")
        self.records.append(encode_record(record))
        for follower in self.followers:
            follower.fold()
        return len(self.records) - 1

    def state(self) -> Cluster:
        view = PartitionView(evolve)
        for offset, record in enumerate(self.records):
            view.fold(decode_record(record), offset, 0)
        return cluster_of(view)

    def assignments(self) -> list[ContainersAssigned]:
        """All that counted."""
        view = PartitionView(evolve)
        decoded = map(decode_record, self.records)
        counted = [r for offset, r in enumerate(decoded) if view.fold(r, offset, 0) is Outcome.COUNTED]
        return [event for record in counted for event in record.events if isinstance(event, ContainersAssigned)]


class Freezer:
    """Stops an instance at a named point, as SIGSTOP would, until it is thawed."""

    def __init__(self) -> None:
        self.frozen_at = ""
        self._point = ""
        self._thawed = asyncio.Event()
        self.reached = asyncio.Event()

    def freeze_at(self, point: str) -> None:
        self._point = point
        self._thawed.clear()
        self.reached.clear()

    def thaw(self) -> None:
        self._point = self.frozen_at = ""
        self._thawed.set()

    async def pass_by(self, point: str) -> None:
        await asyncio.sleep(0)
        if point == self._point:
            self.frozen_at = point
            self.reached.set()
            await self._thawed.wait()


class FakeJournal:
    """One instance's view of the log.

    It stays behind while the instance is frozen, and after that until the instance asks, or something is appended.
    """

    def __init__(self, log: FakeLog, instance: str, freezer: Freezer) -> None:
        self._log = log
        self._instance = instance
        self._freezer = freezer
        self._view = PartitionView(evolve)
        self._made = 0
        self._outcomes: dict[str, Outcome] = {}
        self.on_record: list[Callable[[Record], None]] = []
        log.followers.append(self)
        self.fold()

    def fold(self) -> None:
        while self._view.next_offset < len(self._log.records) and not self._freezer.frozen_at:
            offset = self._view.next_offset
            record = decode_record(self._log.records[offset])
            self._outcomes[record.id] = self._view.fold(record, offset, 0)
            if self._outcomes[record.id] is Outcome.COUNTED:
                for listener in self.on_record:
                    listener(record)

    def reader(self, key: str) -> PartitionView:
        assert key == CLUSTER
        return self._view

    def partition_of(self, key: str) -> int:
        assert key == CLUSTER
        return 0

    async def barrier(self, partitions: Iterable[int]) -> None:
        assert list(partitions) == [0]
        await self._freezer.pass_by("barrier")
        if self._log.away:
            raise JournalUnavailableError("away")
        self.fold()

    async def execute(self, key: str, request: str | None, decide: Decide) -> Executed:
        assert key == CLUSTER
        while True:
            reader = GuardedReader(self._view)
            context = Context(now_ms(), request)
            decision = decide(reader, context)
            if not decision.events:
                return Executed(None, decision)
            for event in decision.events:
                reader.get(event.aggregate)
            self._made += 1
            id = f"{self._instance}-{self._made}"
            record = Record(id, context.now, self._instance, reader.seen, request, decision.events)
            await self._freezer.pass_by("append")
            self._log.append(record)
            await self._freezer.pass_by("folded")
            self.fold()
            if self._outcomes[id] is Outcome.COUNTED:
                return Executed(None, decision)


class FakeZooKeeper:
    """The hosts and the node of the map, with the versions a ZooKeeper gives."""

    def __init__(self) -> None:
        self.hosts: set[Host] = set()
        self.node: MapNode | None = None
        self.history: list[HostMap | None] = []
        self.sessions: list[FakeNodes] = []

    def set_hosts(self, *hosts: Host) -> None:
        self.hosts = set(hosts)
        self._fire()

    def put(self, containers: HostMap | None) -> None:
        """Somebody writes the node without looking."""
        self.node = MapNode(containers, self.node.version + 1 if self.node is not None else 0)
        self.history.append(containers)
        self._fire()

    def remove(self) -> None:
        self.node = None
        self._fire()

    def _fire(self) -> None:
        for session in self.sessions:
            session.fire()


class FakeNodes:
    """One instance's session."""

    def __init__(self, zookeeper: FakeZooKeeper, freezer: Freezer) -> None:
        self.connected = True
        self.on_change: Callable[[], None] = lambda: None
        self._zookeeper = zookeeper
        self._freezer = freezer
        self._watching = False
        zookeeper.sessions.append(self)

    def fire(self) -> None:
        if self._watching and self.connected:
            self._watching = False
            self.on_change()

    def set_connected(self, connected: bool) -> None:
        self.connected = connected
        self.on_change()

    async def _answer(self, point: str) -> None:
        await self._freezer.pass_by(point)
        if not self.connected:
            raise NodesError("away")

    async def hosts(self) -> tuple[Host, ...]:
        await self._answer("ask hosts")
        self._watching = True
        hosts = tuple(self._zookeeper.hosts)
        await self._answer("hosts read")
        return hosts

    async def read_map(self) -> MapNode | None:
        await self._answer("ask map")
        self._watching = True
        node = self._zookeeper.node
        await self._answer("map read")
        return node

    async def write_map(self, containers: Mapping[Host, frozenset[int]], version: int | None) -> None:
        await self._answer("write map")
        present = self._zookeeper.node.version if self._zookeeper.node is not None else None
        if present != version:
            raise MapChangedError(f"version {present}, not {version}")
        self._zookeeper.put(dict(containers))


class Instance:
    """A cluster manager with its own view of journal and ZooKeeper."""

    def __init__(
        self,
        name: str,
        log: FakeLog,
        zookeeper: FakeZooKeeper,
        count: int = 4,
        interval_s: float = 10,
        settle_s: float = 0,
    ) -> None:
        self.freezer = Freezer()
        self.journal = FakeJournal(log, name, self.freezer)
        self.nodes = FakeNodes(zookeeper, self.freezer)
        self.active = False
        me = Heartbeat(service="cluster-manager", instance=name, endpoints={})
        self.manager = ContainerManager(
            self.journal, self.nodes, me, count, interval_s, lambda: self.active, now_ms, settle_s
        )
        self.nodes.on_change = self.manager.wake
        self.journal.on_record.append(self._on_record)
        self.task: asyncio.Task[None] | None = None

    def _on_record(self, record: Record) -> None:
        if any(isinstance(event, ContainersAssigned) for event in record.events):
            self.manager.wake()

    def start(self, *, active: bool) -> None:
        self.task = asyncio.create_task(self.manager.run())
        if active:
            self.activate()

    def activate(self) -> None:
        self.active = True
        self.manager.activated()


def host_sets(**hosts: Iterable[int]) -> HostMap:
    """A map by the names of this module: `host_sets(A=[0, 1])`."""
    return {{"A": A, "B": B, "C": C}[name]: frozenset(containers) for name, containers in hosts.items()}
