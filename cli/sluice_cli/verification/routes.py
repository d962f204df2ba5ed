"""Which segment store has which container, as an api-gateway says."""

import asyncio
from collections.abc import Callable
from typing import Any

from sluice.addresses import host_and_port
from sluice.domain.host import Host
from sluice_cli.errors import CommandError, RefusedError, UnreachableError


class Routes:
    """`read` gives the API's container map, and may block. Raises CommandError at first; later the last map holds."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read
        self._renewal: asyncio.Task[None] | None = None
        self._hosts: list[Host | None] = _hosts(read())
        if not self._hosts:
            raise CommandError("the cluster has no containers", "is the segment stores' number of containers set?")

    @property
    def container_count(self) -> int:
        return len(self._hosts)

    def host(self, container: int) -> Host | None:
        return self._hosts[container]

    async def renew(self) -> None:
        """Read the map, once for all who want it now; while the API does not answer, the last one holds."""
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew())
        await asyncio.shield(self._renewal)

    async def _renew(self) -> None:
        try:
            self._hosts = _hosts(await asyncio.to_thread(self._read))
        except (RefusedError, UnreachableError):
            return


def _hosts(found: Any) -> list[Host | None]:
    items = sorted(found["items"], key=lambda item: int(item["container"]))
    return [_host(item.get("store")) for item in items]


def _host(address: str | None) -> Host | None:
    return None if address is None else Host(*host_and_port(address))
