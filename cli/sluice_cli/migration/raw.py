"""What was read of an original, as it was read: tables and nodes with their bytes; and what that says, decoded.

A `Raw` is all tables of one thing, which are read and kept together. Pure.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar
from uuid import UUID

import msgspec

from sluice.domain.host import Host
from sluice.pravega.container_map import decode_container_map
from sluice.pravega.envelope import PayloadReader
from sluice_cli.migration import tables
from sluice_cli.migration.model import Cluster, CompletedTransaction, KeyValueTable, ReaderGroup, Scope, Stream, Thing

CLUSTER, SCOPE, NODES = "cluster", "scope", "nodes"
STREAM, GROUP, TABLE = "stream", "readerGroup", "table"
KINDS: dict[str, type[Thing]] = {STREAM: Stream, GROUP: ReaderGroup, TABLE: KeyValueTable}
INDEXES = {STREAM: "streams", GROUP: "readerGroups", TABLE: "kvTables"}
"""Of a scope, by kind of thing."""

NO_ID = UUID(int=0)

_T = TypeVar("_T", bound=tables.Table)


class Nodes(Protocol):
    """ZooKeeper below one cluster's path. Blocking; all methods raise CommandError."""

    def get(self, path: str) -> tuple[bytes, int] | None:
        """Data and version of a node, None if there is none."""
        ...

    def children(self, path: str) -> list[str]:
        """Their names; none if there is no such node."""
        ...

    def below(self, path: str) -> Iterator[tuple[str, bytes, int]]:
        """Path, data and version of this node and of all below it, in any order; what goes meanwhile is left out."""
        ...

    def put(self, path: str) -> None:
        """Make an empty node, and those above it; done already if there is one."""
        ...

    def delete(self, path: str) -> None:
        """Delete a node with all below it; done already if there is none."""
        ...


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """An entry of a table; for a node its path, the version of its data, and these."""

    key: str
    version: int
    value: bytes


class RawTable(msgspec.Struct, frozen=True):
    """A table that exists; the entries in the order of their keys.

    `length` is that of its segment before it was read, -1 where it has none: each change makes a segment longer.
    """

    name: str
    entries: tuple[Entry, ...]
    length: int = -1

    @property
    def values(self) -> dict[str, bytes]:
        return {entry.key: entry.value for entry in self.entries}


class Name(msgspec.Struct, frozen=True, order=True):
    """Of what a Raw is. A cluster has no scope; nodes have their common path for a name."""

    kind: str
    scope: str = ""
    name: str = ""
    id: UUID = NO_ID


class Raw(msgspec.Struct, frozen=True):
    """All tables of one thing, by what follows the thing's own name in theirs."""

    of: Name
    tables: dict[str, RawTable]

    def values(self, table: str) -> dict[str, bytes]:
        """The entries of a table; none if there is no such table."""
        found = self.tables.get(table)
        return {} if found is None else found.values

    @property
    def entries(self) -> dict[str, tuple[Entry, ...]]:
        """Of all its tables."""
        return {key: table.entries for key, table in self.tables.items()}


def members(scope: Raw) -> Iterator[Name]:
    """What lies in a scope. Raises UnreadableEntry."""
    for kind, index in INDEXES.items():
        found = _in(scope, index, tables.Ids)
        yield from (Name(kind, scope.of.name, name, id) for name, id in sorted(found.ids.items()))


def scopes(cluster: Raw) -> dict[str, UUID]:
    """Raises UnreadableEntry."""
    return _in(cluster, tables.SCOPES, tables.Ids).ids


def thing(raw: Raw) -> Thing:
    """A stream, reader group or table, decoded. Raises UnreadableEntry."""
    scope, name, id = raw.of.scope, raw.of.name, raw.of.id
    if raw.of.kind == GROUP:
        group = _in(raw, "metadata", tables.GroupMetadata) if raw.tables else None
        return ReaderGroup(scope=scope, name=name, id=id, metadata=group)
    if raw.of.kind == TABLE:
        table = _in(raw, "metadata", tables.TableMetadata) if raw.tables else None
        return KeyValueTable(scope=scope, name=name, id=id, metadata=table)
    epochs = _in(raw, "epochsWithTransactions", tables.Names).numbers
    open_in = {epoch: f"transactionsInEpoch-{epoch}" for epoch in epochs}
    return Stream(
        scope=scope,
        name=name,
        id=id,
        metadata=_in(raw, "metadata", tables.StreamMetadata) if "metadata" in raw.tables else None,
        transactions={
            epoch: found
            for epoch, table in open_in.items()
            if (found := _in(raw, table, tables.Transactions).transactions)
        },
        writers=_in(raw, "writersPositions", tables.Writers).writers,
    )


def cluster(global_tables: Raw, scopes_of_it: Iterable[Raw], counter: int, containers: dict[int, Host]) -> Cluster:
    """What belongs to no single thing. Raises UnreadableEntry."""
    deleting = _in(global_tables, tables.DELETING_SCOPES, tables.Ids).ids
    return Cluster(
        scopes={one.of.name: _scope(one, one.of.name in deleting) for one in scopes_of_it},
        deleted_streams=_in(global_tables, tables.DELETED_STREAMS, tables.Numbers).numbers,
        deleted_tables=_in(global_tables, tables.DELETED_TABLES, tables.Numbers).numbers,
        completed=tuple(_completed(global_tables)),
        counter=counter,
        containers=containers,
    )


def counter_of(node: bytes) -> int:
    """The highest id of a transaction that may have been given, from its node. Raises MalformedPayload."""
    data = PayloadReader(node)
    return (data.int32() & 0xFFFFFFFF) << 64 | data.int64() & (1 << 64) - 1


def containers_of(node: bytes) -> dict[int, Host]:
    """The store of each container, from the node of the map. Raises MalformedPayload."""
    return {container: host for host, ids in decode_container_map(node).items() for container in ids}


def _scope(raw: Raw, deleting: bool) -> Scope:
    ids = {kind: _in(raw, index, tables.Ids).ids for kind, index in INDEXES.items()}
    return Scope(
        name=raw.of.name,
        id=raw.of.id,
        streams=ids[STREAM],
        groups=ids[GROUP],
        tables=ids[TABLE],
        deleting=deleting,
    )


def _completed(raw: Raw) -> Iterator[CompletedTransaction]:
    for batch in _in(raw, tables.COMPLETED_BATCHES, tables.Names).numbers:
        for found in _in(raw, tables.completed_batch(batch), tables.Completed).by_stream():
            yield CompletedTransaction(*found)


def _in(raw: Raw, table: str, type: type[_T]) -> _T:
    try:
        return tables.decode_table(type, raw.values(table))
    except tables.UnreadableEntry as error:
        raise tables.UnreadableEntry(error.key, f"{error.reason} (in {raw.tables[table].name})") from error
