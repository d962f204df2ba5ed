"""`sluice migrate` as users run it; what it finds is tested in tests/unit/migration."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from unit.cli.conftest import Cli
from unit.migration.original import CONTROLLER, LEFT, RIGHT, SCOPE, Original, T, orders

from sluice.domain.segment import segment_name
from sluice.lookback.progress import unseen
from sluice.pravega.container_map import CONTAINER_MAP_NODE
from sluice_cli.migration.dump import MANIFEST, THINGS, dump
from sluice_cli.migration.records import EpochTransition

AT = ("--zookeeper", "zk:2181", "--cluster", "theirs")


@pytest.mark.usefixtures("original")
def test_a_sound_original_can_be_brought_along(cli: Cli) -> None:
    document = cli("migrate", "inspect", *AT, "--json").document
    assert document["controllers"] == ["one"]
    assert document["counts"]["readerGroups"] == 1 and document["bytes"] == 50
    assert [one["holds"] for one in document["invariants"]] == [True] * 16
    assert "It can be brought along\n" in cli("migrate", "inspect", *AT).out


def test_what_stops_and_what_is_under_way_are_shown(cli: Cli, original: Original) -> None:
    transition = EpochTransition(1, 0, (RIGHT.id,), ())
    asyncio.run(original.put_stream("orders", msgspec.structs.replace(orders(), transition=transition)))
    asyncio.run(original.store.delete_segment(segment_name(SCOPE, "orders", LEFT.id)))
    found = cli("migrate", "inspect", *AT)
    assert found.code == 1
    assert f"STOPS: stream shop/orders: segment {LEFT.id} is missing (invariant 6)\n" in found.out
    assert "Under way: stream shop/orders: a scale to epoch 2, which is done; it is forgotten\n" in found.out


def test_a_dump_is_written_inspected_and_compared(cli: Cli, original: Original, tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    assert cli("migrate", "dump", first, *AT).out == f"{first} has 6 streams, reader groups and tables, read 2 times\n"
    found = cli("migrate", "inspect", "--dump", first)
    assert "not looked at" in found.out and "Registered controllers: one\n" in found.out
    assert "does not take this dump: it was made while controllers were registered: one\n" in found.out
    asyncio.run(original.put_stream("orders", msgspec.structs.replace(orders(), creation_ms=3)))
    assert cli("migrate", "dump", second, *AT, "--json").document["changed"] == []
    assert cli("migrate", "diff", first, first).code == 0
    found = cli("migrate", "diff", first, second)
    assert (found.code, found.out) == (1, "changed: stream shop/orders  metadata  creationTime\n")


def test_a_dump_that_is_not_finished_or_not_as_it_was_written_is_said_to_be_so(
    cli: Cli, original: Original, tmp_path: Path
) -> None:
    del original.nodes.all[CONTROLLER]

    def flaw() -> str:
        return str(cli("migrate", "inspect", "--dump", tmp_path, "--json").document["flaw"])

    asyncio.run(dump(original.source(), tmp_path, 1, lambda: T, unseen))
    assert flaw() == "changed between its last two readings"
    (tmp_path / MANIFEST).unlink()
    assert flaw() == "is not finished"
    asyncio.run(dump(original.source(), tmp_path, 2, lambda: T, unseen))
    assert flaw() == ""
    with (tmp_path / THINGS).open("ab") as file:
        file.write((tmp_path / THINGS).read_bytes().splitlines(keepends=True)[0])
    refused = cli("migrate", "inspect", "--dump", tmp_path)
    assert refused.code == 1 and "is not what" in refused.err


def test_without_a_map_of_containers_nothing_is_read(cli: Cli, original: Original, tmp_path: Path) -> None:
    del original.nodes.all[CONTAINER_MAP_NODE]
    found = cli("migrate", "dump", tmp_path, *AT)
    assert found.code == 1 and "no map of containers" in found.err
