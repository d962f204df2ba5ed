"""The gateways in ZooKeeper, where Pravega's tools look for controllers: ephemeral nodes of the active instance.

What stands there follows the members that the journal has. Nothing of ours reads it, so a delay or a failure harms no
one: it is tried again. A node of another session is one of an instance that was active before, and goes with that; or
it is of a controller that is none of ours, which commands the same segment stores. Belongs to the event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Protocol

from cluster_manager.nodes import NodesError
from sluice.addresses import host_and_port
from sluice.domain.cluster.state import CLUSTER, Cluster, cluster_of
from sluice.engine.journal import Journal
from sluice.pravega.container_map import Controller

log = logging.getLogger(__name__)

SERVICE, PROTOCOL = "api-gateway", "grpc"
AGAIN_S = 5.0
OTHERS_S = 60.0
"""No session of an instance that has ended lasts that long."""


class Registry(Protocol):
    """What this needs of ZooKeeper."""

    @property
    def connected(self) -> bool:
        """Whether a session is established."""
        ...

    async def register(self, controllers: Collection[Controller]) -> set[str]:
        """Have these stand as controllers, of this session no others; the names of those of other sessions.

        Changes are watched. Raises NodesError.
        """
        ...


class GatewayNodes:
    """Keeps the nodes as the members are, while `active` says so; else this instance has none."""

    def __init__(self, journal: Journal, nodes: Registry, active: Callable[[], bool]) -> None:
        self._journal = journal
        self._nodes = nodes
        self._active = active
        self._changed = asyncio.Event()
        self._others: dict[str, float] = {}
        """Since when they stand there, by name."""

    def problem(self) -> str | None:
        """Which controllers are none of ours, in words; None while there are none."""
        now = asyncio.get_running_loop().time()
        found = sorted(name for name, since in self._others.items() if now - since >= OTHERS_S)
        if not found:
            return None
        return f"{', '.join(found)}: none of Sluice's, and two controllers destroy what the other one does: end them"

    def wake(self) -> None:
        """The members, what stands in ZooKeeper, or who is active may have changed."""
        self._changed.set()

    async def run(self) -> None:
        """Never returns. It looks each AGAIN_S: an instance is not notified when it ceases to be the active one."""
        while True:
            self._changed.clear()
            cluster = cluster_of(self._journal.reader(CLUSTER)) if self._active() else Cluster()
            try:
                if self._nodes.connected:
                    others = await self._nodes.register(gateways_of(cluster))
                    now = asyncio.get_running_loop().time()
                    # To one that is not active those of the active one are others, too.
                    self._others = {name: self._others.get(name, now) for name in others if self._active()}
            except NodesError as error:
                log.warning("gateways not registered in ZooKeeper", extra={"error": str(error)})
            try:
                async with asyncio.timeout(AGAIN_S):
                    await self._changed.wait()
            except TimeoutError:
                pass


def gateways_of(cluster: Cluster) -> frozenset[Controller]:
    """The members that take clients' calls, as Pravega's controllers register."""
    found = ((m.instance, m.endpoints.get(PROTOCOL, "")) for m in cluster.members.values() if m.service == SERVICE)
    return frozenset(Controller(*host_and_port(endpoint), instance) for instance, endpoint in found if endpoint)
