"""The gateways in ZooKeeper, where Pravega's tools look for controllers: ephemeral nodes of the active instance.

What stands there follows the members that the journal has. Nothing of ours reads it, so a delay or a failure harms no
one: it is tried again. Belongs to the event loop.
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


class Registry(Protocol):
    """What this needs of ZooKeeper."""

    @property
    def connected(self) -> bool:
        """Whether a session is established."""
        ...

    async def register(self, controllers: Collection[Controller]) -> None:
        """Have these stand as controllers, of this session no others; changes are watched. Raises NodesError."""
        ...


class GatewayNodes:
    """Keeps the nodes as the members are, while `active` says so; else this instance has none."""

    def __init__(self, journal: Journal, nodes: Registry, active: Callable[[], bool]) -> None:
        self._journal = journal
        self._nodes = nodes
        self._active = active
        self._changed = asyncio.Event()

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
                    await self._nodes.register(gateways_of(cluster))
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
