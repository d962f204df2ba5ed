"""The container map: decided on the hosts that live, recorded in the journal, published in ZooKeeper.

One task, one round after the other. Any instance may run a round at any time without harm, because each of its two
effects names what it was decided on. So being active only spares work, and an instance that was frozen cannot bring
back what was true before:

- *Assigning*: the journal's version of the cluster is taken first, then the hosts are read from ZooKeeper, then it is
  decided on that version and no newer one. An instance that becomes active raises the version, which makes void what
  the one before it decided.
- *Publishing*: the node is read first, then the end of the journal is awaited, then the node is written if it still
  has the version that was read. What stood in the node came from a shorter journal, or else the version differs.

While ZooKeeper is away the hosts are unknown, which is not the same as none: no round runs, the last map stays.
The active instance may be the only one that ZooKeeper is away for. So a standby looks on, and has a round when what it
sees has not been dealt with for long.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from cluster_manager.metrics import ASSIGNMENTS, HOSTS
from cluster_manager.nodes import HostMap, MapChangedError, MapNode, Nodes, NodesError
from cluster_manager.stabilization_window import StabilizationWindow
from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.cluster.decide import assignment_wait_ms, decide_assignment, decide_takeover, moves, wanted
from sluice.domain.cluster.events import ContainerLoadMeasured, ContainersAssigned, StoreDrained, StoreUndrained
from sluice.domain.cluster.state import CLUSTER, Cluster, cluster_of, uncovered
from sluice.domain.decision import Context, Decision
from sluice.domain.host import Host
from sluice.engine.fold import GuardedReader
from sluice.engine.journal import Journal, JournalError, JournalUnavailableError
from sluice.engine.proposer import Decide
from sluice.telemetry.metrics import CONTAINER_MOVES

log = logging.getLogger(__name__)

PLACING = ContainersAssigned | StoreDrained | StoreUndrained | ContainerLoadMeasured
"""Events behind which there may be something to assign, or to publish."""

LOOK_AGAIN_S = 10.0
RETRY_S = 1.0
NEGLECTED_S = 5.0
"""For so long beyond the interval the active instance may leave a change undone, before a standby sees to it."""

PUBLISH_ATTEMPTS = 5
PROPOSE_TIMEOUT_S = 5.0


async def propose(journal: Journal, decide: Decide) -> Decision | None:
    """Have it decided soon or not at all: what it rests on outside of the journal grows old. Raises JournalError."""
    try:
        async with asyncio.timeout(PROPOSE_TIMEOUT_S):
            return await journal.propose(CLUSTER, decide)
    except TimeoutError as error:
        raise JournalUnavailableError(f"not decided within {PROPOSE_TIMEOUT_S:g} s") from error


class ContainerManager:
    """Gives every container 0..count-1 a live host and writes the map for the segment stores.

    `me` is this instance as a member, `active` whether it is the one to decide, `now_ms` the time in epoch ms. Hosts
    that come or go must have done so for `settle_s`; two assignments are `interval_s` apart, and for as long those that
    come back after all had left are waited for (`StabilizationWindow`).
    """

    def __init__(
        self,
        journal: Journal,
        nodes: Nodes,
        me: Heartbeat,
        count: int,
        interval_s: float,
        active: Callable[[], bool],
        now_ms: Callable[[], int],
        settle_s: float = 0.0,
    ) -> None:
        self._journal = journal
        self._nodes = nodes
        self._me = me
        self._count = count
        self._interval_ms = round(interval_s * 1000)
        self._active = active
        self._now_ms = now_ms
        self._settling = StabilizationWindow(settle_s, interval_s)
        self._refusal = ""
        self._differs_since: float | None = None
        self._took_over = False
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Something may have changed: have a round soon."""
        self._woken.set()

    def activated(self) -> None:
        """This instance is the active one from now on."""
        self._took_over = False
        self.wake()

    def problem(self) -> str | None:
        """Why segments cannot be found, or will not be after a change, for operators; None while all is well."""
        if self._refusal:
            return f"the container map is not brought up to date: {self._refusal}"
        cluster = self._cluster()
        if not cluster.containers:
            return "no segment store has registered yet"
        missing = uncovered(cluster, self._count)
        return f"the container map lacks the containers {', '.join(map(str, missing))}" if missing else None

    async def run(self) -> None:
        """Have a round whenever something changed, and once in a while in case that was missed."""
        while True:
            self._woken.clear()
            try:
                pause_s = await self.round()
                self._refusal = ""
            except (JournalError, NodesError) as error:
                log.warning("container map not brought up to date", extra={"error": str(error)})
                pause_s = RETRY_S
                if isinstance(error, NodesError):
                    self._refusal = str(error)
                    self._settling.forget()
            try:
                async with asyncio.timeout(pause_s):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def round(self) -> float:
        """Bring journal and node up to date and return how long to pause, in seconds, unless woken.

        Raises JournalError and NodesError; the next round goes on from whatever was achieved.
        """
        if not self._active() and (standing_by_s := await self._standing_by_s()) > 0:
            HOSTS.set(0)
            self._settling.forget()
            return standing_by_s
        await self._take_over()
        if not self._nodes.connected:
            self._settling.forget()
            return LOOK_AGAIN_S
        settling_s = await self._assign()
        await self._publish()
        interval_s = assignment_wait_ms(self._cluster(), self._interval_ms, self._now_ms()) / 1000
        return min(wait_s for wait_s in (LOOK_AGAIN_S, settling_s, interval_s) if wait_s > 0)

    async def _standing_by_s(self) -> float:
        """How long a standby leaves it to the active one to deal with what this instance sees; 0: no longer."""
        hosts = await self._nodes.hosts() if self._nodes.connected else ()
        cluster = self._cluster()
        alike = set(hosts) == set(cluster.hosts) and wanted(cluster, self._count, hosts, {}) == cluster.containers
        if not hosts or (alike and self._is_published(await self._nodes.read_map())):
            self._differs_since = None
            return LOOK_AGAIN_S
        now = asyncio.get_running_loop().time()
        if self._differs_since is None:
            self._differs_since = now
        left_s = self._differs_since + self._interval_ms / 1000 + NEGLECTED_S - now
        return max(0.0, min(left_s, LOOK_AGAIN_S))

    async def _take_over(self) -> None:
        if self._took_over:
            return
        me = self._me

        def decide(_reader: GuardedReader, context: Context) -> Decision:
            return decide_takeover(me, context)

        await propose(self._journal, decide)
        self._took_over = True
        log.info("took over the cluster", extra={"hosts": _names(self._cluster().hosts)})

    async def _assign(self) -> float:
        """Assign the containers if the hosts require it; the seconds to wait before, 0 if that was decided now."""
        version = self._journal.reader(CLUSTER).version(CLUSTER)
        hosts = await self._nodes.hosts()
        HOSTS.set(len(hosts))
        before = await self._present()
        assigned = self._cluster().hosts or before.values()
        wait_s = self._settling.wait_s(hosts, assigned, asyncio.get_running_loop().time())
        if wait_s > 0:
            return wait_s

        def decide(reader: GuardedReader, context: Context) -> Decision:
            reader.get(CLUSTER)
            if reader.seen[CLUSTER] != version:
                # Another instance recorded something since: these hosts may be older than that.
                self.wake()
                return Decision()
            return decide_assignment(reader, self._count, hosts, before, self._interval_ms, context)

        decision = await propose(self._journal, decide)
        for event in decision.events if decision is not None else ():
            if isinstance(event, ContainersAssigned):
                moved = moves(before, event.containers)
                CONTAINER_MOVES.inc(moved)
                ASSIGNMENTS.inc(moved > 0)
                log.info("containers assigned", extra={"hosts": _names(event.hosts), "moved": moved})
        return 0.0

    async def _present(self) -> dict[int, Host]:
        """The host of each container, from the journal, or before the first assignment from the node.

        Raises NodesError for another number of containers. It stays the same for ever, for it says where a segment is:
        stores would give up what they have.
        """
        present = self._cluster().containers or _owners(await self._nodes.read_map())
        if present and len(present) != self._count:
            raise NodesError(f"the map has {len(present)} containers, SLUICE_CONTAINER_COUNT says {self._count}")
        return present

    async def _publish(self) -> None:
        for _ in range(PUBLISH_ATTEMPTS):
            node = await self._nodes.read_map()
            if self._is_published(node):
                return
            await self._journal.barrier([self._journal.partition_of(CLUSTER)])
            if self._is_published(node):
                return
            try:
                await self._nodes.write_map(host_map(self._cluster()), node.version if node is not None else None)
            except MapChangedError as error:
                log.info("container map changed meanwhile", extra={"error": str(error)})
                continue
            log.info("container map published")
            return
        raise NodesError(f"the container map changed {PUBLISH_ATTEMPTS} times while it was written")

    def _is_published(self, node: MapNode | None) -> bool:
        """Whether the node says what the journal says; before the first assignment any node is as good."""
        if node is None:
            return False
        cluster = self._cluster()
        return not cluster.containers or node.containers == host_map(cluster)

    def _cluster(self) -> Cluster:
        return cluster_of(self._journal.reader(CLUSTER))


def host_map(cluster: Cluster) -> HostMap:
    """The map as segment stores read it: every host of the assignment, also one without a container."""
    containers: HostMap = {}
    for host in cluster.hosts:
        containers[host] = frozenset(c for c, owner in cluster.containers.items() if owner == host)
    return containers


def _owners(node: MapNode | None) -> dict[int, Host]:
    """The host of each container as the node has it; none if there is no map in it."""
    containers = node.containers if node is not None else None
    return {container: host for host, ids in (containers or {}).items() for container in ids}


def _names(hosts: Iterable[Host]) -> list[str]:
    return list(map(str, hosts))
