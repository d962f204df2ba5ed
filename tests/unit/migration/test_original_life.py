"""What the real controller left after a scripted life that was ended in the middle (`bench/original_life.py`)."""

import asyncio
import lzma
from pathlib import Path

import pytest

from sluice.lookback.progress import unseen
from sluice_cli.migration import raw
from sluice_cli.migration import tables as t
from sluice_cli.migration.dump import THINGS, Dump
from sluice_cli.migration.inspection import Inspection, Inspector
from sluice_cli.migration.model import KeyValueTable, ReaderGroup, Stream
from sluice_cli.migration.records import NO_COMMITS, GroupRetention, TagRecord, TransactionStatus
from sluice_cli.migration.wire import decode, encode

CAPTURED = Path(__file__).with_name("original_life.jsonl.xz")
GLOBAL: dict[str, type[t.Table]] = {
    t.SCOPES: t.Ids,
    t.DELETING_SCOPES: t.Ids,
    t.DELETED_STREAMS: t.Numbers,
    t.DELETED_TABLES: t.Numbers,
    t.COMPLETED_BATCHES: t.Names,
}
OF_STREAM: dict[str, type[t.Table]] = {"epochsWithTransactions": t.Names, "writersPositions": t.Writers}
METADATA: dict[str, type[t.Table]] = {
    raw.STREAM: t.StreamMetadata,
    raw.GROUP: t.GroupMetadata,
    raw.TABLE: t.TableMetadata,
}


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Dump:
    folder = tmp_path_factory.mktemp("life")
    (folder / THINGS).write_bytes(lzma.decompress(CAPTURED.read_bytes()))
    return Dump(folder)


@pytest.fixture(scope="module")
def inspection(life: Dump) -> Inspection:
    return asyncio.run(Inspector(life).run(unseen))


def type_of(kind: str, table: str) -> type[t.Table]:
    if kind == raw.CLUSTER:
        return GLOBAL.get(table, t.Completed)
    if kind == raw.SCOPE:
        return t.Ids
    if table == "metadata":
        return METADATA[kind]
    return OF_STREAM.get(table, t.Transactions)


def test_every_table_is_read_and_written_back_to_the_same_bytes(life: Dump) -> None:
    names = [raw.Name(raw.CLUSTER), *(scope.of for scope in life.scopes()), *life.names()]
    entries = 0
    for name in names:
        for key, found in life[name].tables.items():
            if key.startswith("tags-"):
                continue
            table = t.decode_table(type_of(name.kind, key), found.values)
            assert t.encode_table(table) == found.values, found.name
            entries += len(found.entries)
    assert entries > 900


def test_the_index_of_tags_is_read_and_written_back(life: Dump) -> None:
    streams: dict[str, tuple[str, ...]] = {}
    for scope in life.scopes():
        for chunk in (found for key, found in scope.tables.items() if key.startswith("tags-")):
            for value in filter(None, chunk.values.values()):
                tag = decode(TagRecord, value)
                assert encode(tag) == value
                streams[tag.tag] = streams.get(tag.tag, ()) + tag.streams
    assert streams == {"eu": ("orders",), "money": ("orders",)}


def test_the_life_left_every_kind_of_thing_and_of_unfinished_work(life: Dump) -> None:
    things = list(life.things())
    streams = [one for one in things if isinstance(one, Stream)]
    found = [one.metadata for one in streams if one.metadata is not None]
    assert any(one.transition is not None and one.transition.sealed for one in found)
    assert any(one.truncation is not None and one.truncation.updating for one in found)
    assert any(one.committing not in (None, NO_COMMITS) for one in found)
    assert any(epoch.reference != epoch.epoch for one in found for epoch in one.epochs.values()), "a roll"
    assert any(one.retention_cuts and one.retention is not None for one in found)
    assert any(one.writers for one in streams)
    statuses = {one.status for stream in streams for found in stream.transactions.values() for one in found.values()}
    assert statuses == {TransactionStatus.OPEN, TransactionStatus.COMMITTING, TransactionStatus.ABORTING}
    groups = [one.metadata.configuration for one in things if isinstance(one, ReaderGroup) if one.metadata]
    assert {one.retention for one in groups if one is not None} == set(GroupRetention)
    assert [one.name for one in things if isinstance(one, KeyValueTable)] == ["stock"]
    cluster = life.cluster
    assert cluster.deleted_streams["shop/gone"] > 0 and cluster.completed
    assert sorted(cluster.scopes) == sorted({*cluster.scopes, "_system", "empty", "shop"})


def test_what_the_real_controller_leaves_is_sound(inspection: Inspection) -> None:
    assert inspection.unreadable == ()
    assert inspection.problems == ()
    assert inspection.unfinished
