"""A small original in memory: its tables and segments in the twin of the segment store, its nodes in a dictionary."""

from collections.abc import Iterator, Mapping
from uuid import UUID, uuid5

import msgspec

from sluice.domain.segment import kvt_segment_name, segment_name
from sluice.pravega.memory import InMemorySegmentStore
from sluice.pravega.wire.fields import TableEntry, TableKey
from sluice_cli.migration import records as r
from sluice_cli.migration import tables as t
from sluice_cli.migration.source import Source

T = 1_700_000_000_000
COUNTER = 20_000
SCOPE = "shop"
CONTROLLER = "cluster/controllers/one"
"""The node of the controller that runs."""
REQUESTS_CREATED = "store/_system/_requeststream/creationTime"
"""The node by which an original is known that keeps its metadata in ZooKeeper."""
_SPACE = UUID(int=7)


def id_of(name: str) -> UUID:
    return uuid5(_SPACE, name)


class MemoryNodes:
    """See `raw.Nodes`."""

    def __init__(self, nodes: dict[str, bytes]) -> None:
        self.all = nodes

    def get(self, path: str) -> tuple[bytes, int] | None:
        is_above = any(one.startswith(f"{path}/") for one in self.all)
        return (self.all.get(path, b""), 0) if path in self.all or is_above else None

    def children(self, path: str) -> list[str]:
        below = f"{path}/" if path else ""
        return sorted({one.removeprefix(below).split("/")[0] for one in self.all if one.startswith(below)})

    def below(self, path: str) -> Iterator[tuple[str, bytes, int]]:
        found = self.get(path)
        if found is not None:
            yield path, *found
            for child in self.children(path):
                yield from self.below(f"{path}/{child}")

    def put(self, path: str) -> None:
        self.all.setdefault(path, b"")

    def delete(self, path: str) -> None:
        self.all = {one: data for one, data in self.all.items() if not f"{one}/".startswith(f"{path}/")}


class Original:
    """A cluster with scope `shop`: stream `orders` of three epochs, group `till`, table `stock`."""

    def __init__(self) -> None:
        self.store = InMemorySegmentStore()
        self.nodes = MemoryNodes({"counter": (0).to_bytes(4) + COUNTER.to_bytes(8), "cluster": b"", CONTROLLER: b""})
        self.streams: dict[str, t.StreamMetadata] = {}

    def source(self) -> Source:
        return Source(self.store, self.nodes, 4)

    async def fill(self) -> None:
        names = ["_MARK_RGtill", "_MARKorders", "_RGtill", "orders"]
        await self.put(t.SCOPES, t.Ids(ids={SCOPE: id_of(SCOPE)}))
        await self.put(t.DELETED_STREAMS, t.Numbers(numbers={"shop/gone": 4}))
        for kind, found in {"streams": names, "readerGroups": ["till"], "kvTables": ["stock"]}.items():
            await self.put(t.in_scope(kind, SCOPE, id_of(SCOPE)), t.Ids(ids={name: id_of(name) for name in found}))
        for name in names[:-1]:
            await self.put_stream(name, simple(name))
        await self.put_stream("orders", orders())
        await self.put_transactions("orders", 2, {})
        await self.put(t.of_group(SCOPE, "till", id_of("till")), group())
        await self.put(t.of_stream("metadata", SCOPE, "stock", id_of("stock")), table())
        for name, metadata in self.streams.items():
            await self._segments(name, metadata)
        await self.store.create_table_segment(kvt_segment_name(SCOPE, "stock", 0), 12)

    async def put_stream(self, name: str, metadata: t.StreamMetadata) -> None:
        """Replace the keys of its metadata; the table is made if need be."""
        self.streams[name] = metadata
        await self.put(t.of_stream("metadata", SCOPE, name, id_of(name)), metadata)

    async def put_transactions(self, stream: str, epoch: int, found: Mapping[UUID, r.ActiveTransaction]) -> None:
        await self.put(
            t.of_stream("epochsWithTransactions", SCOPE, stream, id_of(stream)), t.Names(numbers={epoch: None})
        )
        of_epoch = t.of_stream(f"transactionsInEpoch-{epoch}", SCOPE, stream, id_of(stream))
        await self.put(of_epoch, t.Transactions(transactions=dict(found)))

    async def put(self, name: str, table: t.Table) -> None:
        await self.store.create_table_segment(name, 0)
        await self.put_values(name, t.encode_table(table))

    async def put_values(self, name: str, values: Mapping[str, bytes]) -> None:
        if values:
            entries = [TableEntry(TableKey(key.encode()), value) for key, value in values.items()]
            await self.store.update_table_entries(name, entries)

    async def remove(self, name: str, key: str) -> None:
        await self.store.remove_table_keys(name, [TableKey(key.encode())])

    async def _segments(self, stream: str, metadata: t.StreamMetadata) -> None:
        deleted = metadata.truncation.deleted if metadata.truncation is not None else ()
        for id in {one.id for epoch in metadata.epochs.values() for one in epoch.segments} - set(deleted):
            name = segment_name(SCOPE, stream, id)
            await self.store.create_segment(name, 0, 0)
            if id in metadata.sealed_at:
                await self.store.append(name, UUID(int=1), b"e" * (metadata.sealed_sizes[id] - 8))
                await self.store.seal_segment(name)


def simple(name: str) -> t.StreamMetadata:
    """A stream of one segment that nothing happened to."""
    return _stream(name, [[segment(0, 0, 0.0, 1.0)]])


def segment(number: int, epoch: int, low: float, high: float) -> r.SegmentRecord:
    return r.SegmentRecord(number, T + epoch, epoch, low, high)


WHOLE, LEFT, RIGHT = segment(0, 0, 0.0, 1.0), segment(1, 1, 0.0, 0.5), segment(2, 1, 0.5, 1.0)
HEAD = r.Truncation(
    {LEFT.id: 0, RIGHT.id: 0}, (r.SpanEntry(LEFT, 1), r.SpanEntry(RIGHT, 1)), (WHOLE.id,), (), 100, False
)


def orders() -> t.StreamMetadata:
    """Scaled twice; its first segment is deleted. One group subscribes."""
    whole, left, right = WHOLE, LEFT, RIGHT
    epochs = [[whole], [left, right], [left, segment(3, 2, 0.5, 0.75), segment(4, 2, 0.75, 1.0)]]
    plain = _stream("orders", epochs)
    return msgspec.structs.replace(
        plain,
        truncation=HEAD,
        size_shards={0: r.SealedSizes({whole.id: 100, right.id: 50})},
        sealed_at={whole.id: 1, right.id: 2},
        retention=r.RetentionSet((r.RetentionReference(10, T + 10), r.RetentionReference(20, T + 20))),
        retention_cuts={
            T + 10: r.RetentionCut(T + 10, 10, {left.id: 0, right.id: 1}),
            T + 20: r.RetentionCut(T + 20, 20, {left.id: 0, right.id: 2}),
        },
        subscribers=r.Subscribers(("shop/till",)),
        subscriber_records={"shop/till": r.Subscriber("shop/till", 3, T, {})},
    )


def group() -> t.GroupMetadata:
    cuts = {"shop/orders": r.GroupCut({})}
    configuration = r.GroupConfiguration(3000, 30_000, 3, r.GroupRetention.MANUAL, 3, cuts, cuts, False)
    state = r.ThingStateRecord(r.ThingState.ACTIVE)
    return t.GroupMetadata(creation_ms=T, configuration=configuration, state=state)


def table() -> t.TableMetadata:
    epoch = r.TableEpoch(0, (segment(0, 0, 0.0, 1.0),), T)
    return t.TableMetadata(
        creation_ms=T,
        configuration=r.TableConfiguration(SCOPE, "stock", 1, 8, 4),
        state=r.ThingStateRecord(r.ThingState.ACTIVE),
        current_epoch=0,
        epochs={0: epoch},
    )


def _stream(name: str, epochs: list[list[r.SegmentRecord]]) -> t.StreamMetadata:
    records = {n: r.EpochRecord(n, n, tuple(found), T + n, 0, 0) for n, found in enumerate(epochs)}
    history = []
    for number, found in enumerate(epochs):
        before = epochs[number - 1] if number else []
        sealed, created = ([one for one in a if one not in b] for a, b in ((before, found), (found, before)))
        history.append(r.HistoryRecord(number, number, tuple(sealed), tuple(created), T + number))
    return t.StreamMetadata(
        creation_ms=T,
        configuration=r.StreamConfiguration(
            SCOPE, name, r.ScalingPolicy(r.ScaleKind.FIXED, 0, 0, len(epochs[0])), None, False, 0, ("eu",)
        ),
        transition=r.NO_TRANSITION,
        truncation=r.NOT_TRUNCATED,
        committing=r.NO_COMMITS,
        state=r.StateRecord(r.StreamState.ACTIVE),
        current_epoch=len(epochs) - 1,
        retention=r.RetentionSet(()),
        subscribers=r.Subscribers(()),
        epochs=records,
        history={0: r.HistoryChunk(tuple(history))},
        size_shards={0: r.SealedSizes({})},
    )
