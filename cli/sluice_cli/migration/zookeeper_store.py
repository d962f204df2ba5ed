"""An original that keeps its metadata in ZooKeeper: its nodes, read as the tables that another one would have.

The bytes are the same, and so the rest of the package knows only tables. There are no ids of scopes, streams and
tables, so they are zero, and no reader groups. Rules: controller-metadata-store 4. Blocking.
"""

from collections.abc import Collection, Iterator
from uuid import UUID

from sluice.pravega.envelope import PayloadReader
from sluice_cli.errors import RefusedError
from sluice_cli.migration import raw, tables
from sluice_cli.migration.raw import NO_ID, Entry, Name, Nodes, Raw, RawTable

STORE = "store"
SYSTEM, REQUESTS = "_system", "_requeststream"
"""The scope and the first stream that a controller makes; where both kinds of store have it, the newer one counts."""
NO_SCOPES = frozenset({"_streamsinscope", "_kvtablesinscope", "deletingTable"})
TABLES = "kvt"
BATCHES = "transactions/completedTx/batches"
"""Of completed transactions."""

_FOLDERS = {
    "epochRecords": "epochRecord-",
    "historyTimeSeriesChunks": "historyTimeSeriesChunk-",
    "segmentsSealedSizeMapShardPath": "segmentsSealedSizeMapShard-",
    "segmentSealedEpochPath": "segmentSealedEpochPath-",
    "retentionCuts": "retentionCuts-",
    "markers": "markers-",
}
"""Nodes with a child for each of what are keys with this prefix in a table."""
_OTHERS = frozenset({"id", "subscribers", "writerPositions"})


class ZooKeeperStore:
    """The nodes as tables."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def created_ms(self) -> int:
        """When the controller began to keep its metadata here, epoch ms; below 0: it never did."""
        found = self._nodes.get(f"{STORE}/{SYSTEM}/{REQUESTS}/creationTime")
        return -1 if found is None else PayloadReader(found[0]).int64()

    def cluster(self) -> Raw:
        """What belongs to no single thing."""
        scopes = [name for name in self._nodes.children(STORE) if name not in NO_SCOPES]
        found = {
            tables.SCOPES: _ids(scopes),
            tables.DELETING_SCOPES: _ids(self._nodes.children("_system/deletingScopes")),
            tables.DELETED_STREAMS: [*self._numbers("lastActiveStreamSegment")],
            tables.DELETED_TABLES: [*self._numbers("lastActiveKVTableSegment")],
        }
        numbers = self._nodes.children(BATCHES)
        found[tables.COMPLETED_BATCHES] = [Entry(number, 0, b"") for number in numbers]
        for number in numbers:
            found[tables.completed_batch(int(number))] = [*self._completed(f"{BATCHES}/{number}")]
        return Raw(Name(raw.CLUSTER), _tables(found))

    def completed(self, of: Name, ids: Collection[UUID]) -> set[UUID]:
        """Which of these transactions of a stream have completed."""
        folders = [f"{BATCHES}/{number}/{of.scope}/{of.name}" for number in self._nodes.children(BATCHES)]
        return {id for id in ids if any(self._nodes.get(f"{folder}/{id}") is not None for folder in folders)}

    def scope(self, name: str, id: UUID) -> Raw:
        """What lies in a scope."""
        streams = [stream for stream in self._nodes.children(f"{STORE}/{name}") if stream != TABLES]
        found = {"streams": _ids(streams), "kvTables": _ids(self._nodes.children(f"{STORE}/{name}/{TABLES}"))}
        return Raw(Name(raw.SCOPE, "", name, id), _tables(found))

    def thing(self, of: Name) -> Raw:
        """A stream or table. Raises RefusedError if its transactions cannot be distinguished from another stream's."""
        folder = f"{of.scope}/{TABLES}/{of.name}" if of.kind == raw.TABLE else f"{of.scope}/{of.name}"
        path = f"{STORE}/{folder}"
        found = {"metadata": [*self._metadata(path)]}
        if of.kind == raw.STREAM:
            found["writersPositions"] = [*self._below(f"{path}/writerPositions")]
            found |= self._transactions(of)
        return Raw(of, _tables(found))

    def _metadata(self, path: str) -> Iterator[Entry]:
        for name in self._nodes.children(path):
            if name in _FOLDERS:
                yield from self._below(f"{path}/{name}", _FOLDERS[name])
            elif name not in _OTHERS:
                yield from self._node(f"{path}/{name}", name)

    def _transactions(self, of: Name) -> dict[str, list[Entry]]:
        above = f"transactions/activeTx/{of.scope}/{of.name.upper()}"
        epochs = self._nodes.children(above)
        found = {f"transactionsInEpoch-{epoch}": [*self._below(f"{above}/{epoch}")] for epoch in epochs}
        if any(found.values()):
            alike = [one for one in self._nodes.children(f"{STORE}/{of.scope}") if one.upper() == of.name.upper()]
            if len(alike) > 1:
                raise RefusedError(
                    f"streams {', '.join(alike)} of scope {of.scope} differ only in case, so their transactions are "
                    "kept under one name",
                    "let these transactions end first",
                )
        return {"epochsWithTransactions": [Entry(epoch, 0, b"") for epoch in epochs], **found}

    def _numbers(self, above: str) -> Iterator[Entry]:
        for scope in self._nodes.children(above):
            yield from self._below(f"{above}/{scope}", f"{scope}/")

    def _completed(self, above: str) -> Iterator[Entry]:
        for scope in self._nodes.children(above):
            for stream in self._nodes.children(f"{above}/{scope}"):
                yield from self._below(f"{above}/{scope}/{stream}", f"Key.#.{scope}.#.{stream}.#./")

    def _below(self, path: str, prefix: str = "") -> Iterator[Entry]:
        for name in self._nodes.children(path):
            yield from self._node(f"{path}/{name}", f"{prefix}{name}")

    def _node(self, path: str, key: str) -> Iterator[Entry]:
        """One that has just gone is none."""
        found = self._nodes.get(path)
        if found is not None:
            yield Entry(key, found[1], found[0])


def _ids(names: list[str]) -> list[Entry]:
    return [Entry(name, 0, NO_ID.bytes) for name in names]


def _tables(found: dict[str, list[Entry]]) -> dict[str, RawTable]:
    return {name: RawTable(name, tuple(sorted(e, key=lambda one: one.key))) for name, e in found.items() if e}
