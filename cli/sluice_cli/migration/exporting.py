"""What Sluice knows, into the tables and nodes of the original, so that its controller can go on.

All of it is read, and only what differs is written, each entry in the place of the version that was read: so to do it
twice is the same as once, and another writer is noticed. What is new comes into its index last, what is gone leaves it
first. What was left out when Sluice took over, or was just being created, stays as it is. Segments are not touched, so
Sluice can go on instead until the original has changed something. Rules: controller-metadata-store 8.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID, uuid5

from sluice.backup.states import BackedUp
from sluice.domain.ids import StreamId
from sluice.domain.names import SYSTEM_SCOPE, group_stream
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.scope.state import Scope
from sluice.domain.stream.state import DeletedStream, Stream
from sluice.domain.table.state import DeletedTable, Table
from sluice.domain.transaction.state import TransactionState
from sluice.lookback.progress import Advance, Progress
from sluice.pravega.container_map import CONTROLLERS_NODE
from sluice_cli.errors import CommandError, RefusedError
from sluice_cli.migration import raw, tables
from sluice_cli.migration.dump import side_by_side
from sluice_cli.migration.export_nodes import COMPLETED_GUARD, write_nodes
from sluice_cli.migration.export_tables import TableWriter
from sluice_cli.migration.from_states import in_the_way, tables_of
from sluice_cli.migration.raw import GROUP, STREAM, TABLE, Name, Raw, RawTable
from sluice_cli.migration.records import CompletedTransaction, TagRecord, TransactionStatus
from sluice_cli.migration.source import Source
from sluice_cli.migration.to_states import ABOVE_ALL
from sluice_cli.migration.wire import LONG, decode, encode

ROUNDS = 2
"""The last one finds that nothing is left to do: it reads back what was written."""
_SHOWN = 20
_WORDS = {STREAM: "stream", GROUP: "reader group", TABLE: "table"}
_SPACE = UUID("6d1c7a0e-5b1f-4c55-9c7e-9a7f4a0f8d11")
"""Of the ids of what the original does not know yet."""


async def check(source: Source, found: BackedUp) -> None:
    """Raise RefusedError if the original's tables cannot say what Sluice knows, with all that is in the way.

    Raises SegmentStoreError.
    """
    if await source.is_in_zookeeper():
        raise RefusedError("the original keeps its metadata in ZooKeeper", "only one with tables can be gone back to")
    reasons = list(in_the_way(found))
    if reasons:
        more = [f"and {len(reasons) - _SHOWN} more"] if len(reasons) > _SHOWN else []
        hint = "start the services, let what is under way end, commit or abort what is open, and stop them again"
        raise RefusedError("; ".join([*reasons[:_SHOWN], *more]), hint)


def remarks(found: BackedUp) -> list[str]:
    """What of it is not carried over."""
    prepared = sum(sum(index.ranges.values()) for index in found.transactions.values())
    spare = sum(len(state.spare) for state in found.states.values() if isinstance(state, Stream))
    if not prepared + spare:
        return []
    return [f"empty segments stay behind: those of {prepared} prepared transactions, and {spare} of cancelled scales"]


async def export(source: Source, found: BackedUp, progress: Progress) -> dict[str, Any]:
    """Write all of it, and see that it can be read; what was changed. Raises CommandError, SegmentStoreError.

    Nothing is written if something is in the way.
    """
    await check(source, found)
    registered = await asyncio.to_thread(source.keeper.children, CONTROLLERS_NODE)
    if registered:
        raise RefusedError(
            f"controllers are registered in ZooKeeper: {', '.join(registered)}",
            "stop all of Sluice's services and of the original's controllers; a registration outlives them by seconds",
        )
    changes: list[int] = []
    left: list[str] = []
    for number in range(1, ROUNDS + 1):
        one = _Round(source, found)
        with progress(f"exporting, round {number} of {ROUNDS}", None) as advance:
            changes.append(await one.run(advance))
        left = one.left
    if changes[-1]:
        raise CommandError(f"{changes[-1]} entries were not read as they had been written", "repeat it")
    return {"changes": sum(changes), "left": left, "remarks": remarks(found)}


class _Round:
    """Makes everything as it should be, and counts what was not. `left` are things that stay as they are."""

    def __init__(self, source: Source, found: BackedUp) -> None:
        self._source = source
        self._found = found
        self._writer = TableWriter(source.store)
        self._mine: dict[str, dict[str, dict[str, str]]] = {}
        """By scope and kind the aggregates by name."""
        self._gone: dict[str, dict[str, int]] = {STREAM: {}, TABLE: {}}
        """By kind the highest numbers of what was deleted, by `scope/name`."""
        self._tags: defaultdict[tuple[str, int], defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._retained: set[str] = set()
        self._watermarked: set[str] = set()
        self._kept: set[str] = set()
        """Streams that stay as they are."""
        self.left: list[str] = []
        for name in sorted(found.states):
            self._list(name.partition(":")[2], name, found.states[name])

    def _list(self, of: str, aggregate: str, state: object) -> None:
        scope, _, name = of.partition("/")
        match state:
            case Scope():
                self._mine.setdefault(scope, {})
            case DeletedStream(next_number=following) | DeletedTable(next_number=following):
                if 0 < following < ABOVE_ALL:
                    self._gone[STREAM if isinstance(state, DeletedStream) else TABLE][of] = following - 1
            case Stream() | ReaderGroup() | Table():
                kind = STREAM if isinstance(state, Stream) else GROUP if isinstance(state, ReaderGroup) else TABLE
                self._mine.setdefault(scope, {}).setdefault(kind, {})[name] = aggregate

    async def run(self, advance: Advance) -> int:
        """Do it; how many entries, tables and nodes were not as they should be."""
        there = await self._source.table(tables.SCOPES)
        known = _ids(there)
        ids = dict(known)
        for scope in sorted(self._mine.keys() | known.keys()):
            id = known.get(scope) or uuid5(_SPACE, scope)
            if await self._scope(scope, id, advance):
                ids[scope] = id
            else:
                del ids[scope]
        await self._deleted(tables.DELETED_STREAMS, self._gone[STREAM])
        await self._deleted(tables.DELETED_TABLES, self._gone[TABLE])
        await self._completed()
        await self._make(tables.DELETING_SCOPES, tables.Ids(), await self._source.table(tables.DELETING_SCOPES))
        await self._make(tables.SCOPES, tables.Ids(ids=ids), there)
        for scope in known.keys() - ids.keys():
            await self._delete(await self._source.scope(scope, known[scope]))
        return self._writer.changes + await asyncio.to_thread(
            write_nodes, self._source.keeper, self._retained, self._watermarked, self._kept
        )

    async def _make(self, name: str, wanted: tables.Table, there: RawTable | None) -> None:
        # What begins alike comes first, as epochs do: what stands for itself says that they are there.
        await self._writer.make(name, dict(reversed(tables.encode_table(wanted).items())), there)

    async def _delete(self, found: Raw) -> None:
        for table in found.tables.values():
            await self._writer.delete(table.name)

    async def _scope(self, scope: str, id: UUID, advance: Advance) -> bool:
        """Whether there is such a scope, or something is left in it."""
        mine, is_used = self._mine.get(scope), False
        for kind in raw.INDEXES:
            is_used |= await self._index(Name(kind, scope, "", id), (mine or {}).get(kind, {}), advance)
        if mine is None and not is_used:
            return False
        for chunk in range(tables.TAG_CHUNKS):
            await self._tag_index(scope, id, chunk)
        return True

    async def _index(self, of: Name, mine: Mapping[str, str], advance: Advance) -> bool:
        """All things of a kind in a scope, and their index; whether there are any."""
        table = tables.in_scope(raw.INDEXES[of.kind], of.scope, of.id)
        there = await self._source.table(table)
        known = _ids(there)
        ids = {name: id for name, id in known.items() if name not in mine and not self._is_gone(of, name)}
        self._keep(of, ids)

        async def write(thing: Name) -> None:
            ids[thing.name] = await self._thing(thing, mine[thing.name], known.get(thing.name))

        await side_by_side([Name(of.kind, of.scope, name) for name in sorted(mine)], write, advance)
        await self._make(table, tables.Ids(ids=ids), there)
        for name, id in known.items():
            if ids.get(name) != id:
                await self._delete(await self._source.thing(Name(of.kind, of.scope, name, id)))
        return bool(ids)

    def _is_gone(self, of: Name, name: str) -> bool:
        if of.kind == GROUP:
            return f"{of.scope}/{group_stream(name)}" in self._gone[STREAM]
        return f"{of.scope}/{name}" in self._gone[of.kind]

    def _keep(self, of: Name, names: Iterable[str]) -> None:
        """What Sluice knows nothing of stays as it is."""
        for name in sorted(names):
            self.left.append(f"{_WORDS[of.kind]} {of.scope}/{name}")
            if of.kind == STREAM:
                self._kept.add(f"{of.scope}/{name}")

    async def _thing(self, of: Name, aggregate: str, old: UUID | None) -> UUID:
        """Make all tables of a thing; its id."""
        state = self._found.states[aggregate]
        wanted, found = tables_of(state), await self._present(of, state, old)
        for kind, table in wanted.items():
            name = (
                tables.of_group(of.scope, of.name, found.of.id)
                if of.kind == GROUP
                else tables.of_stream(kind, of.scope, of.name, found.of.id)
            )
            await self._make(name, table, found.tables.get(kind))
        await self._delete(Raw(found.of, {kind: there for kind, there in found.tables.items() if kind not in wanted}))
        if isinstance(state, Stream):
            self._note(state)
        return found.of.id

    def _note(self, stream: Stream) -> None:
        for tag in stream.config.tags:
            self._tags[stream.id.scope, tables.chunk_of_tags(stream.id.name)][tag].add(stream.id.name)
        if stream.config.retention is not None:
            self._retained.add(f"{stream.id}")
        if stream.writers and stream.id.scope != SYSTEM_SCOPE:
            self._watermarked.add(f"{stream.id}")

    async def _present(self, of: Name, state: Stream | ReaderGroup | Table, old: UUID | None) -> Raw:
        """What there is of a thing under its id: the old one if it is the same thing, else a new one."""
        if isinstance(state, ReaderGroup):
            id = UUID(state.config.id)
        else:
            if old is not None:
                found = await self._source.thing(Name(of.kind, of.scope, of.name, old))
                if found.values("metadata").get("creationTime") == LONG.encode(state.created_at):
                    return found
            id = uuid5(_SPACE, f"{of.kind} {of.scope}/{of.name} {state.created_at}")
        return await self._source.thing(Name(of.kind, of.scope, of.name, id))

    async def _tag_index(self, scope: str, id: UUID, chunk: int) -> None:
        table = tables.tags_in_scope(scope, id, chunk)
        there = await self._source.table(table)
        streams = self._tags[scope, chunk]
        for tag, value in _values(there).items():
            found = decode(TagRecord, value).streams if value else ()
            streams[tag] |= {name for name in found if f"{scope}/{name}" in self._kept}
        wanted = {tag: encode(TagRecord.of(tag, sorted(names))) for tag, names in streams.items() if names}
        await self._writer.make(table, wanted, there)

    async def _deleted(self, table: str, gone: Mapping[str, int]) -> None:
        there = await self._source.table(table)
        known = tables.decode_table(tables.Numbers, _values(there)).numbers
        highest = {name: max(known.get(name, 0), gone.get(name, 0)) for name in known.keys() | gone.keys()}
        await self._make(table, tables.Numbers(numbers=highest), there)

    async def _completed(self) -> None:
        """Those that have ended, and that the original does not know of, into its present batch."""
        there = await self._source.table(tables.COMPLETED_BATCHES)
        numbers = tables.decode_table(tables.Names, _values(there)).numbers
        batches = {number: await self._source.table(tables.completed_batch(number)) for number in numbers}
        known = {key for batch in batches.values() for key in _values(batch)}
        wanted = {key: value for key, value in self._ended().items() if key not in known}
        if wanted:
            guard = await asyncio.to_thread(self._source.keeper.get, COMPLETED_GUARD)
            present = guard[1] if guard is not None else 0
            batch = batches.get(present) or await self._source.table(tables.completed_batch(present))
            await self._writer.make(tables.completed_batch(present), _values(batch) | wanted, batch)
            await self._make(tables.COMPLETED_BATCHES, tables.Names(numbers={**numbers, present: None}), there)

    def _ended(self) -> dict[str, bytes]:
        found: dict[str, CompletedTransaction] = {}
        for stream, index in self._found.transactions.items():
            if isinstance(self._found.states.get(StreamId.of(stream).aggregate), Stream):
                for one in index.ended():
                    is_committed = one.state is TransactionState.COMMITTED
                    status = TransactionStatus.COMMITTED if is_committed else TransactionStatus.ABORTED
                    key = tables.completed_key(*StreamId.of(stream), one.uuid)
                    found[key] = CompletedTransaction(one.at, status)
        return tables.encode_table(tables.Completed(transactions=found))


def _values(there: RawTable | None) -> dict[str, bytes]:
    return there.values if there is not None else {}


def _ids(there: RawTable | None) -> dict[str, UUID]:
    return tables.decode_table(tables.Ids, _values(there)).ids
