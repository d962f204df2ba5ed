"""Dumps: of a live original, resumed, read again, and compared."""

import asyncio
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from support.wait import SOON_S, eventually_async
from unit.migration.original import COUNTER, SCOPE, MemoryNodes, Original, T, id_of, orders

from sluice.domain.host import Host
from sluice.lookback.progress import unseen
from sluice.pravega.container_map import CONTAINER_MAP_NODE, encode_container_map
from sluice.pravega.memory import Moment
from sluice_cli.errors import RefusedError
from sluice_cli.migration import records as r
from sluice_cli.migration import tables as t
from sluice_cli.migration.difference import differences
from sluice_cli.migration.dump import DECODED, MANIFEST, THINGS, Dump, Manifest, dump, write_decoded
from sluice_cli.migration.model import KeyValueTable, ReaderGroup, Stream
from sluice_cli.migration.raw import Name, Raw
from sluice_cli.migration.source import PAGE_ENTRIES, Containers, Source

TRANSACTION = UUID(int=2 << 96 | 77)
OPEN = r.ActiveTransaction(T, T, T, r.TransactionStatus.OPEN)
ORDERS = Name("stream", SCOPE, "orders", id_of("orders"))


@pytest.fixture
async def original() -> Original:
    found = Original()
    await found.fill()
    return found


async def dumped(original: Original | Source, folder: Path, rounds: int = 2) -> Manifest:
    source = original.source() if isinstance(original, Original) else original
    return await dump(source, folder, rounds, lambda: T, unseen)


async def test_a_dump_says_all_that_the_original_knows(original: Original, tmp_path: Path) -> None:
    await original.put_transactions("orders", 2, {TRANSACTION: OPEN})
    assert (await dumped(original, tmp_path)).changed == ()
    found = Dump(tmp_path)
    assert found.manifest is not None and found.manifest.things == 6
    cluster = found.cluster
    assert (cluster.counter, cluster.deleted_streams) == (COUNTER, {"shop/gone": 4})
    assert sorted(cluster.scopes[SCOPE].streams) == ["_MARK_RGtill", "_MARKorders", "_RGtill", "orders"]
    things = {(type(one), one.name): one for one in found.things()}
    stream, till = things[Stream, "orders"], things[ReaderGroup, "till"]
    assert isinstance(stream, Stream) and stream.metadata == orders()
    assert stream.transactions == {2: {TRANSACTION: OPEN}}
    assert isinstance(till, ReaderGroup) and till.id == id_of("till")
    assert (KeyValueTable, "stock") in things
    write_decoded(tmp_path, unseen)
    assert (tmp_path / DECODED).read_bytes().count(b"\n") == 7


async def test_a_cluster_that_never_opened_a_transaction_has_counted_none(original: Original, tmp_path: Path) -> None:
    del original.nodes.all["counter"]
    await dumped(original, tmp_path)
    assert Dump(tmp_path).cluster.counter == 0


async def test_a_table_of_more_than_a_page_is_read_to_its_end(original: Original, tmp_path: Path) -> None:
    count = 2 * PAGE_ENTRIES + 1
    await original.put(t.DELETED_TABLES, t.Numbers(numbers={f"shop/{number}": number for number in range(count)}))
    await dumped(original, tmp_path)
    assert len(Dump(tmp_path).cluster.deleted_tables) == count


async def test_a_table_of_few_large_values_is_read_to_its_end(original: Original) -> None:
    await original.put_values(t.SCOPES, {str(number): b"v" * 500_000 for number in range(9)})
    found = await original.source().table(t.SCOPES)
    assert found is not None and len(found.entries) == 10


class Changing(Source):
    """Something happens to the stream between two readings."""

    def __init__(self, original: Original) -> None:
        super().__init__(original.store, original.nodes, 4)
        self._original = original
        self.read: list[Name] = []

    async def thing(self, of: Name, before: Raw | None = None) -> Raw:
        found = await super().thing(of, before)
        if of == ORDERS and of not in self.read:
            await self._original.put_stream("orders", msgspec.structs.replace(orders(), creation_ms=T + 5))
        self.read.append(of)
        return found


async def test_what_changes_between_two_readings_is_named_and_the_later_one_counts(
    original: Original, tmp_path: Path
) -> None:
    assert (await dumped(Changing(original), tmp_path)).changed == (ORDERS,)
    found = next(one for one in Dump(tmp_path).things() if one.name == "orders")
    assert isinstance(found, Stream) and found.metadata is not None
    assert found.metadata.creation_ms == T + 5
    assert (await dumped(original, tmp_path)).changed == ()


async def test_of_nodes_only_what_is_brought_along_counts_as_changed(original: Original, tmp_path: Path) -> None:
    await dumped(original, tmp_path)
    owner = "buckets/ownership/0"
    original.nodes.all[owner] = b"one"
    assert (await dumped(original, tmp_path, rounds=1)).changed == ()
    assert owner in Dump(tmp_path).nodes()
    original.nodes.all["counter"] = (COUNTER + 1).to_bytes(12)
    assert [name.name for name in (await dumped(original, tmp_path, rounds=1)).changed] == ["counter"]


async def test_what_did_not_become_longer_is_not_read_again(original: Original, tmp_path: Path) -> None:
    read: list[str] = []

    def note(moment: Moment, request: str, name: str) -> None:
        if moment == "before" and request == "ReadTableEntries":
            read.append(name.rpartition("/")[2].partition(".")[0])

    await original.put_transactions("orders", 2, {TRANSACTION: OPEN})
    await dumped(original, tmp_path, rounds=1)
    await original.put_transactions("orders", 2, {TRANSACTION: msgspec.structs.replace(OPEN, lease_expiry_ms=T + 1)})
    original.store.fault = note
    assert (await dumped(original, tmp_path)).changed == (ORDERS,)
    # Scopes show where the original keeps its metadata.
    assert set(read) == {"scopes", "epochsWithTransactions", "transactionsInEpoch-2"}


async def test_a_dump_that_was_ended_goes_on_where_it_was(original: Original, tmp_path: Path) -> None:
    await dumped(original, tmp_path)
    lines = (tmp_path / THINGS).read_bytes().splitlines(keepends=True)
    (tmp_path / THINGS).write_bytes(b"".join(lines[:-3]) + lines[-3][:20])
    (tmp_path / MANIFEST).unlink()
    assert Dump(tmp_path / "nothing").manifest is None
    source = Changing(original)
    assert (await dumped(source, tmp_path, rounds=2)).things == 6
    assert len(source.read) == 3 + 6
    assert (tmp_path / THINGS).read_bytes().count(b"\n") >= len(lines)


async def test_a_dump_whose_things_were_changed_is_refused(original: Original, tmp_path: Path) -> None:
    await dumped(original, tmp_path)
    with (tmp_path / THINGS).open("ab") as file:
        file.write((tmp_path / THINGS).read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(RefusedError):
        _ = Dump(tmp_path).manifest


async def test_what_is_not_there_any_more_is_no_part_of_the_dump(original: Original, tmp_path: Path) -> None:
    await dumped(original, tmp_path)
    await original.remove(t.in_scope("kvTables", SCOPE, id_of(SCOPE)), "stock")
    await dumped(original, tmp_path)
    assert "stock" not in {one.name for one in Dump(tmp_path).things()}


async def test_a_container_is_found_where_it_has_gone() -> None:
    first, second = Host("a", 1), Host("b", 2)
    nodes = MemoryNodes({CONTAINER_MAP_NODE: encode_container_map({first: {0, 1}})})
    containers = Containers(nodes)
    following = asyncio.create_task(containers.follow(every_s=0.001))
    nodes.all[CONTAINER_MAP_NODE] = encode_container_map({first: {0}, second: {1}})
    await eventually_async(lambda: containers.host(1) == second, SOON_S, "the map is read again")
    following.cancel()
    assert (containers.host(0), containers.count) == (first, 2)


async def test_a_cluster_without_scopes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="no list of scopes"):
        await dumped(Original(), tmp_path)


async def test_two_dumps_differ_in_the_keys_that_changed(original: Original, tmp_path: Path) -> None:
    await dumped(original, tmp_path / "a")
    changed = msgspec.structs.replace(orders(), creation_ms=T + 5, cold_until={4: T})
    await original.put_stream("orders", changed)
    await original.remove(t.in_scope("readerGroups", SCOPE, id_of(SCOPE)), "till")
    await dumped(original, tmp_path / "b")
    first, second = Dump(tmp_path / "a"), Dump(tmp_path / "b")
    assert list(differences(first, first, versions=True)) == []
    assert [(one.of.name, one.what, one.key) for one in differences(first, second)] == [
        ("till", "removed", ""),
        (SCOPE, "removed", "till"),
        ("orders", "changed", "creationTime"),
        ("orders", "added", "markers-4"),
    ]
    assert len(list(differences(first, second, versions=True))) > 4
