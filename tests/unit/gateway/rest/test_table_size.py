"""How many entries a key-value table has, as segment stores count them."""

import pytest
from unit.gateway.rest.test_sluice_others import KV
from unit.gateway.rest.test_sluice_streams import problem
from unit.gateway.rest.world import World

from api_gateway.console import table_sizes
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import Moment
from sluice.pravega.wire.fields import TableEntry, TableKey

FIRST, SECOND = "sc/kv_kvtable/0.#epoch.0", "sc/kv_kvtable/1.#epoch.0"


@pytest.fixture
async def table(world: World, stream: str, monkeypatch: pytest.MonkeyPatch) -> World:
    """A table of two partitions with three entries; nothing that is counted is shared with a later call."""
    monkeypatch.setattr(table_sizes, "SHARED_S", -1.0)
    assert (await world.call("PUT", KV, {"partitionCount": 2, "primaryKeyLength": 1})).status_code == 201
    for segment, keys in ((FIRST, b"ab"), (SECOND, b"c")):
        entries = [TableEntry(TableKey(bytes([key])), b"v") for key in keys]
        await world.store.update_table_entries(segment, entries)
    return world


async def test_entries_are_counted_by_partition(table: World) -> None:
    found = await table.get(f"{KV}/size")
    assert ([one["entries"] for one in found["partitions"]], found["entries"]) == ([2, 1], 3)
    assert found["complete"]
    assert problem(await table.call("GET", KV.replace("/kv", "/none") + "/size"))[0] == 404


async def test_of_a_partition_whose_store_does_not_answer_it_is_not_known(table: World) -> None:
    def down(moment: Moment, _request: str, segment: str) -> None:
        if moment == "before" and segment == SECOND:
            raise ConnectionFailure(Failure.SILENT)

    table.store.fault = down
    found = await table.get(f"{KV}/size")
    assert (found["entries"], found["complete"]) == (2, False)
