"""An original of so many streams, written as its controller would have left it: tables in the segment stores, nodes.

Streams are copies of a few lives, of 1, 3, 10 and 100 epochs, truncated to where they are now; each has a mark stream.
Beside them there are transactions, open and ended, reader groups that subscribe, key-value tables, and nodes in
ZooKeeper. `python -m bench.made_original ZOOKEEPER STREAMS` finds the stores as `sluice migrate` does.

Concurrency: on one event loop, so many things at a time as there are workers.
"""

import argparse
import asyncio
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from uuid import UUID

import msgspec
from kazoo.client import KazooClient
from support.originals import COUNTER, GrowingStream, T, active, configuration, group, table, transaction

from sluice.domain.segment import kvt_segment_name, segment_name, transaction_segment_name
from sluice.domain.transaction_ids import halves
from sluice.pravega.store import SegmentStore
from sluice.pravega.wire.fields import TableEntry, TableKey
from sluice_cli.commands.migrate import reading
from sluice_cli.migration import records as r
from sluice_cli.migration import tables as t
from sluice_cli.migration.dump import COUNTER as COUNTER_NODE
from sluice_cli.migration.from_states import tables_of
from sluice_cli.migration.source import Source
from sluice_cli.migration.to_stream import stream_of
from sluice_cli.migration.wire import encode

CLUSTER = "pravega-cluster"
SCOPE_STREAMS = 10_000
LIVES = {1: 70, 3: 20, 10: 9, 100: 1}
"""Epochs, and how many of a hundred streams have as many."""
GROUP_EVERY, OPEN_EVERY, TABLE_EVERY, RETAINED_EVERY, MARKED_EVERY = 100, 100, 1000, 10, 10
"""Of so many streams one has a reader group, open transactions, a table beside it, a policy, a writer's time."""
OPEN = 2
_WORKERS = 64
_NODES_AT_A_TIME = 500


class Life:
    """What a stream has behind it, encoded: all tables but what bears its name, and its segments."""

    def __init__(self, epochs: int) -> None:
        grown = GrowingStream()
        for number in range(1, epochs):
            grown.scale(0, *((1, 2) if number % 2 else (2, 1)))
        older = sorted({one.id for epoch in grown.epochs for one in epoch.segments} - {one.id for one in grown.active})
        if older:
            cut = {one.id: 0 for one in grown.active}
            grown.fields["truncation"] = grown.truncation(
                cut, deleted=tuple(older), size_till=sum(grown.sizes.values())
            )
        stream, _ = stream_of(grown.stream(), "", {}, T)
        self.epoch = epochs - 1
        self.segments = [one.id for one in grown.active]
        self.tables = {kind: t.encode_table(found) for kind, found in tables_of(stream).items()}


class Made:
    """The things of an original, and where their tables are."""

    def __init__(self, streams: int) -> None:
        lives = {epochs: Life(epochs) for epochs in LIVES}
        self._lives = [lives[epochs] for epochs, share in LIVES.items() for _ in range(share)]
        self._streams = streams

    @property
    def numbers(self) -> range:
        return range(self._streams)

    def life(self, number: int) -> Life:
        # 37 has no factor in common with 100: every hundred streams have all lives, mixed.
        return self._lives[number * 37 % 100]

    @property
    def plain(self) -> Life:
        """That of mark streams and streams of groups."""
        return self._lives[0]

    def scopes(self) -> Iterator[tuple[str, range]]:
        """Each with the numbers of its streams."""
        for at in range(0, self._streams, SCOPE_STREAMS):
            yield _scope(at), range(at, min(at + SCOPE_STREAMS, self._streams))

    def members(self, numbers: range) -> dict[str, dict[str, UUID]]:
        """The indexes of a scope, by kind."""
        streams = [name for number in numbers for name in (f"s{number}", f"_MARKs{number}")]
        groups = [f"g{number}" for number in numbers if not number % GROUP_EVERY]
        streams += [name for one in groups for name in (f"_RG{one}", f"_MARK_RG{one}")]
        tables = [f"t{number}" for number in numbers if not number % TABLE_EVERY]
        found = {"streams": streams, "readerGroups": groups, "kvTables": tables}
        return {kind: {name: id_of(name) for name in names} for kind, names in found.items()}

    def of_stream(self, number: int) -> dict[str, dict[str, bytes]]:
        """Its tables, by what follows its name in theirs."""
        scope, name, life = _scope(number), f"s{number}", self.life(number)
        retained = r.RetentionPolicy(r.RetentionKind.TIME, 86_400_000) if not number % RETAINED_EVERY else None
        found = named(life, scope, name, retention=retained, tags=("eu",) if number % 2 else ())
        if not number % MARKED_EVERY:
            mark = r.WriterMark(T, {life.segments[0]: 0}, True)
            found["writersPositions"] = t.encode_table(t.Writers(writers={"writer": mark}))
        opened = {id: active(r.TransactionStatus.OPEN) for id in self.open_in(number)}
        if opened:
            found[f"transactionsInEpoch-{life.epoch}"] = t.encode_table(t.Transactions(transactions=opened))
        if not number % GROUP_EVERY:
            name = f"{scope}/g{number}"
            subscriber = r.Subscriber(name, 2, T, {})
            subscribed = t.StreamMetadata(subscribers=r.Subscribers((name,)), subscriber_records={name: subscriber})
            found["metadata"] |= t.encode_table(subscribed)
        return found

    def open_in(self, number: int) -> list[UUID]:
        """Its transactions."""
        count = 0 if number % OPEN_EVERY else OPEN
        return [transaction(self.life(number).epoch, 1 + number * OPEN + one) for one in range(count)]

    def completed(self) -> dict[str, bytes]:
        ended = encode(r.CompletedTransaction(T, r.TransactionStatus.COMMITTED))
        ids = ((number, transaction(self.life(number).epoch, self._counter - number)) for number in self.numbers)
        return {f"Key.#.{t.completed_key(_scope(number), f's{number}', str(id))}": ended for number, id in ids}

    @property
    def _counter(self) -> int:
        return COUNTER + (OPEN + 1) * self._streams

    def nodes(self) -> dict[str, bytes]:
        """Those that controllers write, by path."""
        found = {COUNTER_NODE: (0).to_bytes(4) + self._counter.to_bytes(8)}
        for number in self.numbers:
            stream = f"{_scope(number)}/s{number}"
            named = b64encode(stream.encode()).decode()
            if not number % RETAINED_EVERY:
                found[f"buckets/0/{named}"] = b""
            if not number % MARKED_EVERY:
                found[f"watermarks/{number % 100}/{named}"] = b""
            if not number % OPEN_EVERY:
                found[f"txnCommitOrderer/{stream}/collections/0/entities"] = b""
        return found


class Writer:
    """Writes an original into its stores."""

    def __init__(self, store: SegmentStore, made: Made) -> None:
        self._store = store
        self._made = made

    async def write(self) -> None:
        """All of it but the nodes."""
        made = self._made
        for scope, numbers in made.scopes():
            for kind, ids in made.members(numbers).items():
                await self._table(t.in_scope(kind, scope, id_of(scope)), t.encode_table(t.Ids(ids=ids)))
            for chunk in range(t.TAG_CHUNKS):
                await self._table(t.tags_in_scope(scope, id_of(scope), chunk), {})
        left = iter(made.numbers)

        async def work_off() -> None:
            for number in left:
                await self._stream(number)

        async with asyncio.TaskGroup() as workers:
            for _ in range(_WORKERS):
                workers.create_task(work_off())
        await self._table(t.COMPLETED_BATCHES, t.encode_table(t.Names(numbers={0: None})))
        await self._table(t.completed_batch(0), made.completed())
        scopes = {scope: id_of(scope) for scope, _ in made.scopes()}
        await self._table(t.SCOPES, t.encode_table(t.Ids(ids=scopes)))

    async def _stream(self, number: int) -> None:
        made, scope, name = self._made, _scope(number), f"s{number}"
        await self._tables(scope, name, made.of_stream(number), made.life(number))
        await self._tables(scope, f"_MARK{name}", named(made.plain, scope, f"_MARK{name}"), made.plain)
        for id in made.open_in(number):
            for segment in made.life(number).segments:
                await self._store.create_segment(transaction_segment_name(scope, name, segment, *halves(str(id))), 0, 0)
        if not number % GROUP_EVERY:
            await self._group(scope, number)
        if not number % TABLE_EVERY:
            found = table(f"t{number}", 1)
            assert found.metadata is not None and found.metadata.configuration is not None
            config = msgspec.structs.replace(found.metadata.configuration, scope=scope)
            metadata = t.encode_table(msgspec.structs.replace(found.metadata, configuration=config))
            await self._table(t.of_stream("metadata", scope, f"t{number}", id_of(f"t{number}")), metadata)
            await self._store.create_table_segment(kvt_segment_name(scope, f"t{number}", 0), 8)

    async def _group(self, scope: str, number: int) -> None:
        name, made = f"g{number}", self._made
        found = group(name, retention=r.GroupRetention.MANUAL)
        assert found.metadata is not None and found.metadata.configuration is not None
        starting = {f"{scope}/s{number}": r.GroupCut({})}
        config = msgspec.structs.replace(found.metadata.configuration, starting=starting)
        metadata = t.encode_table(msgspec.structs.replace(found.metadata, configuration=config))
        await self._table(t.of_group(scope, name, id_of(name)), metadata)
        for stream in (f"_RG{name}", f"_MARK_RG{name}"):
            await self._tables(scope, stream, named(made.plain, scope, stream), made.plain)

    async def _tables(self, scope: str, name: str, found: Mapping[str, dict[str, bytes]], life: Life) -> None:
        for kind, entries in found.items():
            await self._table(t.of_stream(kind, scope, name, id_of(name)), entries)
        for segment in life.segments:
            await self._store.create_segment(segment_name(scope, name, segment), 0, 0)

    async def _table(self, name: str, entries: Mapping[str, bytes]) -> None:
        await self._store.create_table_segment(name, 0)
        of_table = [TableEntry(TableKey(key.encode()), value) for key, value in entries.items()]
        for at in range(0, len(of_table), 1000):
            await self._store.update_table_entries(name, of_table[at : at + 1000])


def named(life: Life, scope: str, name: str, **fields: object) -> dict[str, dict[str, bytes]]:
    """The tables of a stream that lived so."""
    config = encode(msgspec.structs.replace(configuration(name, len(life.segments), **fields), scope=scope))
    return {**life.tables, "metadata": life.tables["metadata"] | {"configuration": config}}


def id_of(name: str) -> UUID:
    """Of a thing; no two have one name, whatever their scopes."""
    return UUID(bytes=name.encode().rjust(16, b"\0"))


def _scope(number: int) -> str:
    return f"scope{number // SCOPE_STREAMS}"


def write_nodes(zookeeper: str, nodes: Mapping[str, bytes]) -> None:
    """Make them, below the cluster's path."""
    client = KazooClient(hosts=zookeeper)
    client.start()
    try:
        for some in _batched(nodes.items(), _NODES_AT_A_TIME):
            waiting = [client.create_async(f"/pravega/{CLUSTER}/{path}", data, makepath=True) for path, data in some]
            for one in waiting:
                one.get()
    finally:
        client.stop()
        client.close()


def _batched(items: Iterable[tuple[str, bytes]], count: int) -> Iterator[list[tuple[str, bytes]]]:
    """So many at a time."""
    left = iter(items)
    while some := list(islice(left, count)):
        yield some


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("zookeeper", metavar="HOST:PORT")
    parser.add_argument("streams", type=int)
    given = parser.parse_args()
    made = Made(given.streams)
    write_nodes(given.zookeeper, made.nodes())

    async def write(source: Source) -> None:
        await Writer(source.store, made).write()

    reading(given.zookeeper, CLUSTER, _WORKERS, write)


if __name__ == "__main__":
    main()
