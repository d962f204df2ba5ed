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
AT_A_TIME = 200
"""Nodes that are asked for before the first answer."""


class ZooKeeperNodes:
    """See `raw.Nodes`."""

    def __init__(self, client: KazooClient, cluster: str) -> None:
        self._client = client
        self._root = f"/pravega/{cluster}"

    def get(self, path: str) -> tuple[bytes, int] | None:
        """See Nodes."""
        found = self._ask(partial(self._client.get, self._at(path)))
        return None if found is None else (found[0], found[1].version)

    def children(self, path: str) -> list[str]:
        """See Nodes."""
        return sorted(self._ask(partial(self._client.get_children, self._at(path))) or ())

    def below(self, path: str) -> Iterator[tuple[str, bytes, int]]:
        """See Nodes. Many nodes are asked for at a time."""
        left = [path]
        while left:
            some, left = left[:AT_A_TIME], left[AT_A_TIME:]
            answers = [(one, self._client.get_async(self._at(one))) for one in some]
            found = [(one, got) for one, answer in answers if (got := self._ask(answer.get)) is not None]
            above = [
                (one, self._client.get_children_async(self._at(one))) for one, (_, stat) in found if stat.numChildren
            ]
            for one, answer in above:
                left += [f"{one}/{child}" for child in self._ask(answer.get) or ()]
            yield from ((one, data, stat.version) for one, (data, stat) in found)

    def put(self, path: str) -> None:
        """See Nodes."""
        self._ask(partial(self._client.ensure_path, self._at(path)))

    def delete(self, path: str) -> None:
        """See Nodes."""
        self._ask(partial(self._client.delete, self._at(path), recursive=True))

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}".rstrip("/")

    def _ask(self, question: Callable[[], Any]) -> Any:
        """The answer about a node, None if there is none."""
        try:
            return question()
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
