"""A ZooKeeper in memory beside the journal's twin, shared by instances of the cluster manager, which can freeze.

It keeps the promises that the real one is trusted for: node versions and one-shot watches.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping

from support.memory_world import MemoryWorld

from cluster_manager.containers import PLACING, ContainerManager
from cluster_manager.nodes import HostMap, MapChangedError, MapNode, NodesError
from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.cluster.events import ContainersAssigned
from sluice.domain.cluster.state import CLUSTER, Cluster, cluster_of
from sluice.domain.host import Host
from sluice.domain.model import DomainModel, JournalEntry
from sluice.engine.journal import Journal
from sluice.engine.ports import Ends, RecordFacts, SendError
from sluice.kafka.topics import JOURNAL
from sluice.memory.broker import MemoryBroker, MemoryProducer
from sluice.memory.connections import MemoryConnections
from sluice.memory.log import MemoryLog

A, B, C = Host("10.0.0.1", 12345), Host("10.0.0.2", 12345), Host("10.0.0.3", 12345)
CONTAINERS = 4
MOMENT_S = 0.001
LAG_S = 0.0002
"""How long an instance that was frozen acts on what it knew."""


class Freezer:
    """Stops an instance at a named point, as SIGSTOP would, until it is thawed.

    Meanwhile it follows the journal no more; after that it does so a moment later than it goes on.
    """

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._point = ""
        self._thawed = asyncio.Event()
        self._held: list[Callable[[], None]] = []
        self.reached = asyncio.Event()

    def freeze_at(self, point: str) -> None:
        self._point = point
        self._thawed.clear()
        self.reached.clear()

    def thaw(self) -> None:
        self._point = ""
        self._thawed.set()
        self._log.lag(asyncio.get_running_loop().time() + LAG_S)
        self._log.thaw()
        held, self._held = self._held, []
        for call in held:
            call()

    def stops_at(self, point: str) -> bool:
        """Whether the instance freezes here."""
        if point != self._point:
            return False
        self._log.freeze()
        self.reached.set()
        return True

    def when_thawed(self, point: str, call: Callable[[], None]) -> None:
        """Call it now, or if the instance freezes here, then."""
        if self.stops_at(point):
            self._held.append(call)
        else:
            call()

    async def pass_by(self, point: str) -> None:
        await asyncio.sleep(0)
        if self.stops_at(point):
            await self._thawed.wait()


class FreezableLog(MemoryLog):
    """The journal's log as an instance reaches it that may freeze before and behind an append."""

    def __init__(self, broker: MemoryBroker, producer: MemoryProducer) -> None:
        super().__init__(broker, producer)
        self.freezer = Freezer(self)

    def append(
        self,
        key: str,
        value: bytes,
        facts: RecordFacts,
        carrier: Mapping[str, str],
        failed: Callable[[SendError], None],
    ) -> None:
        """See Log."""
        append = super().append
        self.freezer.when_thawed("append", lambda: append(key, value, facts, carrier, failed))
        self.freezer.stops_at("folded")

    def ends(self, partitions: Collection[int] | None = None) -> asyncio.Future[Ends]:
        """See Log."""
        reply: asyncio.Future[Ends] = asyncio.get_running_loop().create_future()
        ends = super().ends

        def pass_on(found: asyncio.Future[Ends]) -> None:
            if not reply.done():
                reply.set_result(found.result())

        self.freezer.when_thawed("barrier", lambda: ends(partitions).add_done_callback(pass_on))
        return reply


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
        """Another program writes the node without looking."""
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
        self.refusal = ""
        """What ZooKeeper says to every call, as it does to a user without rights."""
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
        if self.refusal:
            raise NodesError(self.refusal)

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

    def __init__(self, name: str, world: "ClusterWorld", interval_s: float, settle_s: float) -> None:
        connections = MemoryConnections(world.groups)
        log = FreezableLog(world.broker, connections.producer)
        self.freezer = log.freezer
        self.journal = Journal(log, DomainModel(), f"cluster-manager/{name}", clock=connections.clock)
        self.journal.start()
        self.nodes = FakeNodes(world.zookeeper, self.freezer)
        self.active = False
        me = Heartbeat(service="cluster-manager", instance=name, endpoints={})
        self.manager = ContainerManager(
            self.journal, self.nodes, me, CONTAINERS, interval_s, lambda: self.active, world.broker.now_ms, settle_s
        )
        self.nodes.on_change = self.manager.wake
        self.journal.on_entry.append(self._on_entry)
        self.task: asyncio.Task[None] | None = None

    def _on_entry(self, _partition: int, entry: JournalEntry) -> None:
        if any(isinstance(event, PLACING) for event in entry.events):
            self.manager.wake()

    def start(self, *, active: bool) -> None:
        self.task = asyncio.create_task(self.manager.run())
        if active:
            self.activate()

    def kill(self) -> None:
        assert self.task is not None
        self.task.cancel()
        self.active = False

    def activate(self) -> None:
        self.active = True
        self.manager.activated()


class ClusterWorld(MemoryWorld):
    """The journal and the ZooKeeper that all instances share, and what an observer sees of them."""

    def __init__(self) -> None:
        super().__init__("cluster-manager")
        self.zookeeper = FakeZooKeeper()
        self.assignments: list[ContainersAssigned] = []
        """All that counted."""
        self.first.journal.on_entry.append(self._observe)

    def _observe(self, _partition: int, entry: JournalEntry) -> None:
        self.assignments += [event for event in entry.events if isinstance(event, ContainersAssigned)]

    @property
    def cluster(self) -> Cluster:
        return cluster_of(self.view(CLUSTER))

    @property
    def records(self) -> int:
        return len(self.log_of(CLUSTER))

    @property
    def published(self) -> HostMap | None:
        return self.zookeeper.node.containers if self.zookeeper.node is not None else None

    def agrees(self) -> bool:
        """Whether ZooKeeper says what the journal says, and that covers everything."""
        containers = self.cluster.containers
        published = {c: host for host, ids in (self.published or {}).items() for c in ids}
        return sorted(containers) == list(range(CONTAINERS)) and published == containers

    def journal_away(self, away: bool) -> None:
        """Nothing is appended meanwhile."""
        self.refuse(JOURNAL, 1_000_000_000 if away else 0)

    def manager(self, name: str = "cm-1", interval_s: float = 10, settle_s: float = 0) -> Instance:
        return Instance(name, self, interval_s, settle_s)

    async def started(self, *hosts: Host, interval_s: float = 10, settle_s: float = 0) -> Instance:
        """An active instance, a moment after it found these hosts."""
        self.zookeeper.set_hosts(*hosts)
        instance = self.manager(interval_s=interval_s, settle_s=settle_s)
        instance.start(active=True)
        await settle()
        return instance


async def settle() -> None:
    await asyncio.sleep(MOMENT_S)


def host_sets(**hosts: Iterable[int]) -> HostMap:
    """A map by the names of this module: `host_sets(A=[0, 1])`."""
    return {{"A": A, "B": B, "C": C}[name]: frozenset(containers) for name, containers in hosts.items()}
