"""Who takes part: one document lists the nodes, each keeps itself in it and has a lock that shows that it lives.

Nodes without workers only submit tasks, and are not in it: whether they come or go changes no share and no cut. The
list is advice, for an even spread of tasks and for sources that are partitioned by it. Nothing is wrong if it names
who is gone or lacks who is there; so removing is done late and without a lock.

Concurrency: belongs to one event loop.
"""

import logging
from collections.abc import Callable

import msgspec

from sluice_coordination.errors import ConflictError, StoreFailedError
from sluice_coordination.task_board import NodeEntry, NodeList, TaskBoard, View

log = logging.getLogger(__name__)

_CHANGE_TIMES = 20
_GONE_LEASES = 2.0
"""For how many leases a node's lock has to stand unchanged before the node counts as gone."""


class Nodes:
    """The node list of a board."""

    def __init__(self, board: TaskBoard) -> None:
        self._board = board
        self._id = board.id("nodes")

    async def join(self, me: NodeEntry, view: View) -> None:
        """Be in the list. Raises StoreUnavailableError, StoreFailedError."""
        if me not in view.nodes:
            await self._change(lambda nodes: (*(node for node in nodes if node.token != me.token), me))

    async def leave(self, token: str) -> None:
        """Be in the list no more. Raises StoreUnavailableError, StoreFailedError."""
        await self._change(lambda nodes: tuple(node for node in nodes if node.token != token))

    async def prune(self, view: View) -> None:
        """Remove nodes that have had no lock for long. For the leader.

        Raises StoreUnavailableError, StoreFailedError.
        """
        gone = {node.token for node in view.nodes if self._is_gone(view, node.token)}
        if gone:
            log.info("nodes are gone", extra={"nodes": sorted(gone)})
            await self._change(lambda nodes: tuple(node for node in nodes if node.token not in gone))
        start = self._board.id("node") + "/"
        listed = {node.token for node in view.nodes}
        for id, document in view.documents.items():
            token = id.removeprefix(start)
            if id.startswith(start) and token not in listed and self._is_gone(view, token):
                await self._board.remove(id, document)

    def _is_gone(self, view: View, token: str) -> bool:
        id = self._board.id("node", token)
        document, leases = view.documents.get(id), self._board.leases
        if document is not None and not leases.sightings.is_free(id, document):
            return False
        return leases.sightings.unchanged_s(id) > _GONE_LEASES * leases.settings.lease_s

    async def _change(self, change: Callable[[tuple[NodeEntry, ...]], tuple[NodeEntry, ...]]) -> None:
        store = self._board.leases.store
        for _ in range(_CHANGE_TIMES):
            found = await store.get(self._id)
            try:
                nodes = () if found is None else msgspec.convert(found.body, NodeList).nodes
            except msgspec.ValidationError as error:
                raise StoreFailedError(f"{self._id}: {error}") from error
            changed = change(nodes)
            if changed == nodes:
                return
            try:
                body = msgspec.to_builtins(NodeList(changed))
                await store.put(self._id, body, None if found is None else found.version)
            except ConflictError:
                continue
            return
        log.warning("the node list changes too fast to be changed", extra={"document": self._id})
