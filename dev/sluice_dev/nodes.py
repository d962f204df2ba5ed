"""ZooKeeper in memory, for one cluster manager and one segment store. Belongs to the event loop."""

from collections.abc import Callable, Collection, Mapping

from cluster_manager.nodes import MapChangedError, MapNode
from sluice.domain.host import Host
from sluice.pravega.container_map import Controller


class MemoryNodes:
    """See ZooKeeperNodes."""

    connected = True

    def __init__(self, hosts: tuple[Host, ...], on_change: Callable[[], None]) -> None:
        self._hosts = hosts
        self._on_change = on_change
        self._map: MapNode | None = None

    def start(self) -> None:
        """See ZooKeeperNodes."""
        self._on_change()

    async def stop(self) -> None:
        """See ZooKeeperNodes."""

    def problem(self) -> None:
        """See ZooKeeperNodes."""
        return

    async def hosts(self) -> tuple[Host, ...]:
        """See Nodes."""
        return self._hosts

    async def read_map(self) -> MapNode | None:
        """See Nodes."""
        return self._map

    async def write_map(self, containers: Mapping[Host, frozenset[int]], version: int | None) -> None:
        """See Nodes."""
        present = self._map.version if self._map is not None else None
        if present != version:
            raise MapChangedError(f"version {present}, not {version}")
        self._map = MapNode(dict(containers), 0 if present is None else present + 1)
        self._on_change()

    async def register(self, _controllers: Collection[Controller]) -> set[str]:
        """See Registry. No one looks for controllers here."""
        return set()
