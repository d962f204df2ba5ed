"""ZooKeeper below one cluster's path, by kazoo."""

from collections.abc import Iterator
from contextlib import contextmanager

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
        try:
            data, stat = self._client.get(f"{self._root}/{path}")
        except NoNodeError:
            return None
        except (KazooException, KazooTimeoutError) as error:
            raise UnreachableError(f"ZooKeeper did not answer: {error!r}") from error
        return data, stat.version

    def children(self, path: str) -> list[str]:
        """See Nodes."""
        try:
            return sorted(self._client.get_children(f"{self._root}/{path}".rstrip("/")))
        except NoNodeError:
            return []
        except (KazooException, KazooTimeoutError) as error:
            raise UnreachableError(f"ZooKeeper did not answer: {error!r}") from error


@contextmanager
def connected(address: str, cluster: str, access: ZooKeeperAccess) -> Iterator[ZooKeeperNodes]:
    """A session that only reads. Raises UnreachableError."""
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
