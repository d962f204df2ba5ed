"""ZooKeeper as the cluster manager needs it: the live segment stores, the container map's node, and what changes.

kazoo has threads of its own. Its asynchronous calls are awaited here with a deadline, and its callbacks are handed to
the event loop, where everything else of this module belongs. No call is retried here: the caller starts over
from what is true by then. A write that kazoo carries out late is harmless, since it names the version.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, Protocol

import msgspec
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError

from cluster_manager.metrics import ZOOKEEPER_LOSSES
from sluice.domain.host import Host
from sluice.exceptions import in_words
from sluice.pravega.container_map import (
    CONTAINER_MAP_NODE,
    CONTROLLERS_NODE,
    HOSTS_NODE,
    Controller,
    decode_container_map,
    decode_host,
    encode_container_map,
    encode_host,
    node_of,
)
from sluice.pravega.envelope import MalformedPayload
from sluice.zookeeper_access import ZooKeeperAccess

log = logging.getLogger(__name__)

HostMap = dict[Host, frozenset[int]]


class NodesError(Exception):
    """ZooKeeper did not answer, or refused: what it holds is unknown now."""


class MapChangedError(Exception):
    """Another process wrote or removed the node of the map since it was read."""


class MapNode(msgspec.Struct, frozen=True):
    """The node of the container map; `containers` is None if its bytes are no map."""

    containers: HostMap | None
    version: int


class Nodes(Protocol):
    """What the cluster manager needs of ZooKeeper. All calls raise NodesError."""

    @property
    def connected(self) -> bool:
        """Whether a session is established."""
        ...

    async def hosts(self) -> tuple[Host, ...]:
        """The segment stores that live now; their coming and going is watched from here on."""
        ...

    async def read_map(self) -> MapNode | None:
        """The node of the map, None if there is none; its changes are watched from here on."""
        ...

    async def write_map(self, containers: Mapping[Host, frozenset[int]], version: int | None) -> None:
        """Replace the map that was read with this version, None to create it. Raises MapChangedError."""
        ...


class ZooKeeperNodes:
    """The nodes of one Pravega cluster, by a client of its own, which connects by `access`, unless one is given.

    `on_change()` is called on the loop for every change that may need another look.
    """

    def __init__(
        self,
        address: str,
        cluster: str,
        session_timeout_s: float,
        call_timeout_s: float,
        on_change: Callable[[], None],
        client: KazooClient | None = None,
        access: ZooKeeperAccess | None = None,
    ) -> None:
        self.connected = False
        self._address = address
        self._call_timeout_s = call_timeout_s
        self._on_change = on_change
        self._away_since = time.time()
        self._hosts = f"/pravega/{cluster}/{HOSTS_NODE}"
        self._map = f"/pravega/{cluster}/{CONTAINER_MAP_NODE}"
        self._controllers = f"/pravega/{cluster}/{CONTROLLERS_NODE}"
        self._loop = asyncio.get_running_loop()
        self._client = client or KazooClient(
            hosts=address,
            timeout=session_timeout_s,
            handler=access,
            sasl_options=access.sasl if access is not None else None,
            connection_retry={"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 2.0},
        )
        self._client.add_listener(self._on_state)
        self._restart_s = 2 * session_timeout_s
        self._restarting: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to connect, and go on until it works."""
        self._client.start_async()
        self._restarting = self._loop.create_task(self._restart())

    async def stop(self) -> None:
        """End the session."""
        if self._restarting is not None:
            self._restarting.cancel()
        await asyncio.to_thread(self._client.stop)
        await asyncio.to_thread(self._client.close)

    async def _restart(self) -> None:
        """Start a client that has ended by itself.

        One that logs in does so when ZooKeeper hangs up meanwhile: it refuses the password that way, but stops so, too.
        """
        while True:
            await asyncio.sleep(self._restart_s)
            if self._has_ended():
                log.warning("ZooKeeper refuses the user or went away, begin anew", extra={"address": self._address})
                await asyncio.to_thread(self._client.start_async)

    def _has_ended(self) -> bool:
        """Whether kazoo's loop has. The state does not say: while a name does not resolve it is closed, too."""
        ended: bool = self._client._connection.connection_stopped.is_set()  # noqa: SLF001 - kazoo says it nowhere else
        return ended

    def problem(self) -> str | None:
        """Since when ZooKeeper is away, for operators; None while it is there."""
        if self.connected:
            return None
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._away_since))
        return f"no session with ZooKeeper at {self._address} since {since}; the last container map keeps serving"

    async def hosts(self) -> tuple[Host, ...]:
        """See Nodes."""
        names = await self._children(self._hosts)
        found = await asyncio.gather(*(self._host(name) for name in names))
        return tuple(sorted({host for host in found if host is not None}))

    async def read_map(self) -> MapNode | None:
        """See Nodes."""
        try:
            data, stat = await self._result_of(self._client.get_async(self._map, watch=self._on_watch))
        except NoNodeError:
            await self._result_of(self._client.exists_async(self._map, watch=self._on_watch))
            return None
        try:
            containers = decode_container_map(data)
        except MalformedPayload as error:
            log.warning("container map in ZooKeeper is malformed", extra={"error": str(error)})
            return MapNode(None, stat.version)
        return MapNode(containers, stat.version)

    async def write_map(self, containers: Mapping[Host, frozenset[int]], version: int | None) -> None:
        """See Nodes."""
        data = encode_container_map(containers)
        try:
            if version is None:
                await self._result_of(self._client.create_async(self._map, data, makepath=True))
            else:
                await self._result_of(self._client.set_async(self._map, data, version=version))
        except (BadVersionError, NodeExistsError, NoNodeError) as error:
            raise MapChangedError(in_words(error)) from error

    async def register(self, controllers: Collection[Controller]) -> set[str]:
        """See Registry. A node of another session is left alone: it goes with that one."""
        session = self._client.client_id
        if session is None:
            raise NodesError(f"no session with {self._address}")
        wanted = {node_of(host): encode_host(host) for host in controllers}
        present = set(await self._children(self._controllers))
        for name in wanted.keys() - present:
            path = f"{self._controllers}/{name}"
            with suppress(NodeExistsError, NoNodeError):
                await self._result_of(self._client.create_async(path, wanted[name], ephemeral=True))
        others = set()
        for name in present - wanted.keys():
            path = f"{self._controllers}/{name}"
            with suppress(NoNodeError):
                _, stat = await self._result_of(self._client.get_async(path))
                if stat.owner_session_id == session[0]:
                    await self._result_of(self._client.delete_async(path))
                else:
                    others.add(name)
        return others

    async def _children(self, path: str) -> list[str]:
        """Of a node that is made if it is not there; watched from here on. Raises NodesError."""
        with suppress(NoNodeError):
            return await self._children_now(path)
        try:
            await self._result_of(self._client.ensure_path_async(path))
            return await self._children_now(path)
        except NoNodeError as error:
            raise NodesError(f"{path} cannot be made, or vanished again") from error

    async def _children_now(self, path: str) -> list[str]:
        children: list[str] = await self._result_of(self._client.get_children_async(path, watch=self._on_watch))
        return children

    async def _host(self, name: str) -> Host | None:
        """The store whose node has this name, by what the node says; None if it went meanwhile or is none."""
        try:
            data, _ = await self._result_of(self._client.get_async(f"{self._hosts}/{name}"))
            host = decode_host(data)
        except NoNodeError:
            return None
        except MalformedPayload as error:
            log.warning("host with a malformed payload left out", extra={"node": name, "error": str(error)})
            return None
        if isinstance(host, Controller):
            log.warning("host with an endpoint id is no segment store", extra={"node": name, "host": str(host)})
            return None
        return host

    async def _result_of(self, result: Any) -> Any:
        """The answer of kazoo; NodesError for all but what is an answer about the node."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        result.rawlink(lambda settled: self._loop.call_soon_threadsafe(_settle, answer, settled))
        try:
            async with asyncio.timeout(self._call_timeout_s):
                return await answer
        except (BadVersionError, NodeExistsError, NoNodeError):
            raise
        except KazooException as error:
            raise NodesError(in_words(error)) from error
        except TimeoutError as error:
            raise NodesError(f"no answer from {self._address} within {self._call_timeout_s} s") from error

    # Called on kazoo's threads.

    def _on_watch(self, _event: Any) -> None:
        self._loop.call_soon_threadsafe(self._on_change)

    def _on_state(self, state: str) -> None:
        self._loop.call_soon_threadsafe(self._state_changed, state)

    # The loop's side.

    def _state_changed(self, state: str) -> None:
        connected = state == KazooState.CONNECTED
        if connected and not self.connected:
            log.info("ZooKeeper connected", extra={"address": self._address})
        elif self.connected and not connected:
            ZOOKEEPER_LOSSES.inc()
            self._away_since = time.time()
            log.warning("ZooKeeper lost", extra={"address": self._address, "state": state})
        self.connected = connected
        self._on_change()


def _settle(answer: asyncio.Future[Any], result: Any) -> None:
    if answer.done():
        return
    if result.exception is not None:
        answer.set_exception(result.exception)
    else:
        answer.set_result(result.value)
