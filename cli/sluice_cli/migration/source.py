"""A live original, read: its tables by the segment stores, its nodes in ZooKeeper. Nothing is written.

Concurrency: on one event loop; so many tables are read at a time as the caller says, and each page is waited for before
the next one is asked for, which bounds what the stores have to do. ZooKeeper is read in a thread.
"""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from uuid import UUID

from sluice.domain.host import Host
from sluice.pravega.container_map import CONTAINER_MAP_NODE
from sluice.pravega.envelope import MalformedPayload
from sluice.pravega.errors import SegmentMissing, TryLater
from sluice.pravega.store import SegmentStore, TablePage
from sluice.pravega.wire.fields import NOT_EXISTS, TableEntry
from sluice_cli.errors import RefusedError, UnreachableError
from sluice_cli.migration import raw, tables
from sluice_cli.migration.raw import Entry, Name, Nodes, Raw, RawTable
from sluice_cli.migration.zookeeper_store import REQUESTS, SYSTEM, ZooKeeperStore
from sluice_client import patiently

PAGE_ENTRIES, PAGE_BYTES = 1000, 1 << 20
"""So many are asked for, as the original's controller does. A page with fewer entries, and fewer bytes, is the last:
stores end one before only when it has 2 MiB (segment-store-wire-protocol 5.6).
"""

PATIENCE_S = 30.0
"""How long a container may take to answer, its move to another store included."""

OF_THE_DATA_PLANE = frozenset({"bookkeeper", "segmentstore"})
"""Nodes of a cluster that no controller writes."""


class Source:
    """What a live original has, in segment stores and below `keeper`.

    All reads raise SegmentStoreError and CommandError.
    """

    def __init__(self, store: SegmentStore, nodes: Nodes, concurrency: int) -> None:
        self.store = store
        self.keeper = nodes
        self._turns = asyncio.Semaphore(concurrency)
        self._zookeeper = ZooKeeperStore(nodes)
        self._looking = asyncio.Lock()
        self._is_in_zookeeper: bool | None = None

    async def nodes(self) -> list[Raw]:
        """The nodes that the controllers write, by the first part of their paths."""
        return await asyncio.to_thread(self._all_nodes)

    async def cluster(self, before: Raw | None = None) -> Raw:
        """The tables that belong to no single thing; as in `thing`, only those are read that became longer.

        Raises RefusedError if there are none.
        """
        if await self.is_in_zookeeper():
            return await asyncio.to_thread(self._zookeeper.cluster)
        found = await self._read_all({name: name for name in _GLOBAL}, before)
        if tables.SCOPES not in found:
            raise RefusedError(
                "the original has no list of scopes, neither in the segment stores nor in ZooKeeper",
                "is this the right cluster, and has its controller run?",
            )
        batches = tables.decode_table(tables.Names, raw.Raw(Name(raw.CLUSTER), found).values(tables.COMPLETED_BATCHES))
        names = [tables.completed_batch(number) for number in batches.numbers]
        return Raw(Name(raw.CLUSTER), found | await self._read_all({name: name for name in names}, before))

    async def scope(self, name: str, id: UUID, before: Raw | None = None) -> Raw:
        """What lies in a scope, and its index of tags; as in `thing`, only those are read that became longer."""
        if await self.is_in_zookeeper():
            return await asyncio.to_thread(self._zookeeper.scope, name, id)
        return await self._scope_in_tables(name, id, before)

    async def _scope_in_tables(self, name: str, id: UUID, before: Raw | None = None) -> Raw:
        indexes = {kind: tables.in_scope(kind, name, id) for kind in raw.INDEXES.values()}
        tags = {f"tags-{chunk}": tables.tags_in_scope(name, id, chunk) for chunk in range(tables.TAG_CHUNKS)}
        return Raw(Name(raw.SCOPE, "", name, id), await self._read_all(indexes | tags, before))

    async def thing(self, of: Name, before: Raw | None = None) -> Raw:
        """A stream, reader group or table; only those tables are read that became longer since it was read `before`."""
        if await self.is_in_zookeeper():
            return await asyncio.to_thread(self._zookeeper.thing, of)
        return await self._thing_in_tables(of, before)

    async def _thing_in_tables(self, of: Name, before: Raw | None = None) -> Raw:
        if of.kind == raw.GROUP:
            return Raw(of, await self._read_all({"metadata": tables.of_group(of.scope, of.name, of.id)}, before))
        kinds = ("metadata",) if of.kind == raw.TABLE else _OF_STREAM
        names = {kind: tables.of_stream(kind, of.scope, of.name, of.id) for kind in kinds}
        found = await self._read_all(names, before)
        epochs = found[_EPOCHS].values if _EPOCHS in found else {}
        open_in = [f"transactionsInEpoch-{epoch}" for epoch in epochs]
        names = {kind: tables.of_stream(kind, of.scope, of.name, of.id) for kind in open_in}
        return Raw(of, found | await self._read_all(names, before))

    async def completed(self, of: Name, ids: Collection[UUID]) -> set[UUID]:
        """Which of these transactions of a stream have completed by now."""
        if not ids:
            return set()
        if await self.is_in_zookeeper():
            return await asyncio.to_thread(self._zookeeper.completed, of, ids)
        keys = {f"Key.#.{tables.completed_key(of.scope, of.name, f'{id}')}".encode(): id for id in ids}
        batches = await self.table(tables.COMPLETED_BATCHES)
        numbers = tables.decode_table(tables.Names, batches.values if batches is not None else {}).numbers
        found = await asyncio.gather(*(self._present(tables.completed_batch(number), [*keys]) for number in numbers))
        return {keys[entry.key.key] for entries in found for entry in entries}

    async def _present(self, name: str, keys: list[bytes]) -> list[TableEntry]:
        """The entries of a table that it has; none if there is no table of the name."""
        async with self._turns:
            try:
                found = await patiently(lambda: self.store.read_table(name, keys), PATIENCE_S, (TryLater,))
            except SegmentMissing:
                return []
        return [entry for entry in found if entry.key.version != NOT_EXISTS]

    async def is_in_zookeeper(self) -> bool:
        """Whether the controller keeps its metadata there, and not, or not any more, in tables; looked up once."""
        async with self._looking:
            if self._is_in_zookeeper is None:
                in_zookeeper = await asyncio.to_thread(self._zookeeper.created_ms)
                scopes = await self._read_all({tables.SCOPES: tables.SCOPES})
                self._is_in_zookeeper = in_zookeeper > await self._created_ms(Raw(Name(raw.CLUSTER), scopes))
            return self._is_in_zookeeper

    async def _created_ms(self, cluster: Raw) -> int:
        """When the controller began to keep its metadata in tables, epoch ms; below 0: it does not, 0: not known."""
        id = raw.scopes(cluster).get(SYSTEM)
        if id is None:
            return 0 if tables.SCOPES in cluster.tables else -1
        named = {name.name: name for name in raw.members(await self._scope_in_tables(SYSTEM, id))}
        if REQUESTS not in named:
            return 0
        found = raw.thing(await self._thing_in_tables(named[REQUESTS])).metadata
        return found.creation_ms or 0 if found is not None else 0

    async def _read_all(self, names: Mapping[str, str], before: Raw | None = None) -> dict[str, RawTable]:
        """The tables that exist, by their keys here."""
        known = before.tables if before is not None else {}
        found = await asyncio.gather(*(self.table(name, known.get(key)) for key, name in names.items()))
        return {key: table for key, table in zip(names, found, strict=True) if table is not None}

    async def table(self, name: str, before: RawTable | None = None) -> RawTable | None:
        """All of a table, as it was before if it is no longer than then; None if there is none of the name."""
        async with self._turns:
            try:
                length = (await patiently(lambda: self.store.table_info(name), PATIENCE_S, (TryLater,))).length
                if before is not None and before.length == length:
                    return before
                # Where nothing was ever written there is nothing to be read.
                return RawTable(name, await self._entries(name) if length else (), length)
            except SegmentMissing:
                return None

    async def _entries(self, name: str) -> tuple[Entry, ...]:
        found: dict[bytes, Entry] = {}
        page = await self._page(name, b"")
        while page.entries:
            for entry in page.entries:
                found[entry.key.key] = Entry(entry.key.key.decode(), entry.key.version, entry.value)
            if _is_last(page):
                break
            page = await self._page(name, page.continuation)
        return tuple(found[key] for key in sorted(found))

    async def _page(self, name: str, continuation: bytes) -> TablePage:
        return await patiently(
            lambda: self.store.read_table_page(name, PAGE_ENTRIES, continuation), PATIENCE_S, (TryLater,)
        )

    def _all_nodes(self) -> list[Raw]:
        tops = sorted(set(self.keeper.children("")) - OF_THE_DATA_PLANE)
        return [self._below(top) for top in tops]

    def _below(self, top: str) -> Raw:
        found = (Entry(path, version, data) for path, data, version in self.keeper.below(top))
        entries = tuple(sorted(found, key=lambda entry: entry.key))
        return Raw(Name(raw.NODES, "", top), {"": RawTable(top, entries)})


def _is_last(page: TablePage) -> bool:
    size = sum(len(entry.key.key) + len(entry.value) for entry in page.entries)
    return len(page.entries) < PAGE_ENTRIES and size < PAGE_BYTES


class Containers:
    """Which segment store has which container, by the node of the map. Raises RefusedError if there is none."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._hosts = self._read()
        if not self._hosts:
            raise RefusedError(
                "ZooKeeper has no map of containers for this cluster", "are --zookeeper and --cluster right?"
            )

    @property
    def count(self) -> int:
        return max(self._hosts) + 1

    def host(self, container: int) -> Host | None:
        return self._hosts.get(container)

    async def follow(self, every_s: float = 1.0) -> None:
        """Read the map again and again, until called off: where a store is away, its containers go to another one."""
        while True:
            await asyncio.sleep(every_s)
            with suppress(UnreachableError):
                self._hosts = await asyncio.to_thread(self._read)

    def _read(self) -> dict[int, Host]:
        found = self._nodes.get(CONTAINER_MAP_NODE)
        if found is None:
            return {}
        try:
            return raw.containers_of(found[0])
        except MalformedPayload as error:
            raise RefusedError(f"the map of containers in ZooKeeper is malformed: {error}") from error


_GLOBAL = (
    tables.SCOPES,
    tables.DELETING_SCOPES,
    tables.DELETED_STREAMS,
    tables.DELETED_TABLES,
    tables.COMPLETED_BATCHES,
)
_EPOCHS = "epochsWithTransactions"
_OF_STREAM = ("metadata", _EPOCHS, "writersPositions")
