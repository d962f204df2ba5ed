"""ZooKeeper below one cluster's path, by kazoo."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from sluice.zookeeper_access import ZooKeeperAccess
from sluice_cli.errors import UnreachableError

CONNECT_S = 15.0


class ZooKeeperNodes:
    """See `raw.Nodes`."""

    def __init__(self, client: KazooClient, cluster: str) -> None:
        self._client = client
        self._root = f"/pravega/{cluster}"

    def get(self, path: str) -> tuple[bytes, int] | None:
        """See Nodes."""
        found = self._ask(self._client.get, path)
        return None if found is None else (found[0], found[1].version)

    def children(self, path: str) -> list[str]:
        """See Nodes."""
        return sorted(self._ask(self._client.get_children, path) or ())

    def put(self, path: str) -> None:
        """See Nodes."""
        self._ask(self._client.ensure_path, path)

    def delete(self, path: str) -> None:
        """See Nodes."""
        self._ask(partial(self._client.delete, recursive=True), path)

    def _ask(self, question: Callable[[str], Any], path: str) -> Any:
        """The answer about a node, None if there is none."""
        try:
            return question(f"{self._root}/{path}".rstrip("/"))
        except NoNodeError:
            return None
        except (KazooException, KazooTimeoutError) as error:
            raise UnreachableError(f"ZooKeeper did not answer: {error!r}") from error


@contextmanager
def connected(address: str, cluster: str, access: ZooKeeperAccess) -> Iterator[ZooKeeperNodes]:
    """A session; a server that only reads will do for reading. Raises UnreachableError."""
    client = KazooClient(hosts=address, handler=access, sasl_options=access.sasl, read_only=True)
    try:
        client.start(CONNECT_S)
    except (KazooException, KazooTimeoutError) as error:
        client.stop()
        raise UnreachableError(f"no session with ZooKeeper at {address}: {error}", "give --zookeeper") from error
    try:
        yield ZooKeeperNodes(client, cluster)
    finally:
        client.stop()
        client.close()
