"""An original that keeps its metadata in ZooKeeper says the same as one with tables."""

import struct
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from unit.migration.original import REQUESTS_CREATED, SCOPE, Original, T, id_of, orders, simple, table

from sluice.lookback.progress import unseen
from sluice_cli.errors import RefusedError
from sluice_cli.migration import records as r
from sluice_cli.migration import tables as t
from sluice_cli.migration.dump import Dump, dump
from sluice_cli.migration.inspection import Inspector
from sluice_cli.migration.model import KeyValueTable, Stream
from sluice_cli.migration.raw import STREAM, Name
from sluice_cli.migration.wire import encode

TRANSACTION = UUID(int=2 << 96 | 77)
OPEN = r.ActiveTransaction(T, T, T, r.TransactionStatus.OPEN)
MARK = r.WriterMark(5, {4: 7}, True)
FOLDERS = {
    "epochRecord": "epochRecords",
    "historyTimeSeriesChunk": "historyTimeSeriesChunks",
    "segmentsSealedSizeMapShard": "segmentsSealedSizeMapShardPath",
    "segmentSealedEpochPath": "segmentSealedEpochPath",
    "retentionCuts": "retentionCuts",
}


def nodes_of(path: str, found: t.Table) -> dict[str, bytes]:
    """What a controller writes where another one writes these entries."""
    nodes = {f"{path}/id": b"\0\0\0\1"}
    for key, value in t.encode_table(found).items():
        prefix, dash, rest = key.partition("-")
        nodes[f"{path}/{FOLDERS[prefix]}/{rest}" if dash else f"{path}/{key}"] = value
    return nodes


def without_subscribers(found: t.StreamMetadata) -> t.StreamMetadata:
    return msgspec.structs.replace(found, subscribers=None, subscriber_records={})


@pytest.fixture
def original() -> Original:
    found = Original()
    found.nodes.all |= {
        **nodes_of("store/shop/orders", without_subscribers(orders())),
        **nodes_of("store/shop/_MARKorders", without_subscribers(simple("_MARKorders"))),
        **nodes_of("store/shop/kvt/stock", table()),
        "store/shop/orders/writerPositions/till": encode(MARK),
        REQUESTS_CREATED: struct.pack(">q", T + 1),
        "store/_streamsinscope/shop/streams/00/0000/orders0001": b"",
        f"transactions/activeTx/shop/ORDERS/2/{TRANSACTION}": encode(OPEN),
        f"transactions/completedTx/batches/3/shop/orders/{UUID(int=5)}": encode(
            r.CompletedTransaction(T, r.TransactionStatus.ABORTED)
        ),
        "lastActiveStreamSegment/shop/gone": struct.pack(">i", 4),
    }
    return found


async def dumped(original: Original, folder: Path) -> Dump:
    await dump(original.source(), folder, 2, lambda: T, unseen)
    return Dump(folder)


async def test_nodes_are_read_as_tables_would_be(original: Original, tmp_path: Path) -> None:
    found = await dumped(original, tmp_path)
    things = {one.name: one for one in found.things() if one.scope == SCOPE}
    assert sorted(things) == ["_MARKorders", "orders", "stock"]
    stream, stock = things["orders"], things["stock"]
    assert isinstance(stream, Stream) and isinstance(stock, KeyValueTable)
    assert stream.metadata == without_subscribers(orders())
    assert stream.transactions == {2: {TRANSACTION: OPEN}}
    assert stream.writers == {"till": MARK}
    assert stock.metadata == table()
    cluster = found.cluster
    assert cluster.deleted_streams == {"shop/gone": 4}
    assert [(one.stream, one.id) for one in cluster.completed] == [("orders", UUID(int=5))]


async def test_a_problem_stays_one_when_its_thing_is_read_by_a_source_of_its_own(
    original: Original, tmp_path: Path
) -> None:
    original.nodes.all["store/shop/orders/currentEpochRecord"] = t.encode_table(
        msgspec.structs.replace(orders(), current_epoch=7)
    )["currentEpochRecord"]
    found = await Inspector(await dumped(original, tmp_path), live=original.source()).run(unseen)
    assert ("stream shop/orders", "epochRecord-3 is missing") in {(one.of, one.what) for one in found.problems}


async def test_what_has_completed_is_looked_up(original: Original) -> None:
    stream, ended = Name(STREAM, SCOPE, "orders", id_of("orders")), UUID(int=5)
    assert await original.source().completed(stream, (ended, TRANSACTION)) == {ended}


@pytest.mark.parametrize(("in_tables_ms", "groups"), [(T, 0), (T + 2, 1)])
async def test_where_both_kinds_of_store_were_used_the_newer_one_counts(
    original: Original, tmp_path: Path, in_tables_ms: int, groups: int
) -> None:
    system, requests = "_system", "_requeststream"
    await original.fill()
    await original.put(t.SCOPES, t.Ids(ids={SCOPE: id_of(SCOPE), system: id_of(system)}))
    await original.put(t.in_scope("streams", system, id_of(system)), t.Ids(ids={requests: id_of(requests)}))
    metadata = msgspec.structs.replace(simple(requests), creation_ms=in_tables_ms)
    await original.put(t.of_stream("metadata", system, requests, id_of(requests)), metadata)
    found = await dumped(original, tmp_path)
    assert len(found.cluster.scopes[SCOPE].groups) == groups


async def test_transactions_of_streams_that_differ_only_in_case_are_refused(original: Original, tmp_path: Path) -> None:
    original.nodes.all |= nodes_of("store/shop/Orders", without_subscribers(simple("Orders")))
    with pytest.raises(RefusedError, match="differ only in case"):
        await dumped(original, tmp_path)
