"""Entries of a key-value table written, read and removed, on the twin of the segment stores."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from unit.cli.conftest import Cli, problem
from unit.cli.shown import TABLE, TABLE_CONFIG

from sluice.domain.segment import kvt_segment_name
from sluice.pravega import ConnectionFailure, Failure, InMemorySegmentStore
from sluice_cli import session
from sluice_cli.entries import access
from sluice_client import Client
from sluice_client.memory import InMemoryController

PARTITIONS = [{"id": 1, "low": 0.5, "high": 1.0}, {"id": 0, "low": 0.0, "high": 0.5}]
NAMES = [kvt_segment_name("demo", "kv", number) for number in (0, 1)]


def table(primary: int, secondary: int = 0, state: str = "ACTIVE") -> dict[str, Any]:
    config = {**TABLE_CONFIG, "primaryKeyLength": primary, "secondaryKeyLength": secondary}
    return {**TABLE, "config": config, "segments": PARTITIONS, "state": state}


@pytest.fixture
def store(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> InMemorySegmentStore:
    """With the segments of `demo/kv`, whose keys have four bytes."""
    twin = InMemorySegmentStore()

    @asynccontextmanager
    async def opened(_controller: str) -> AsyncIterator[Client]:
        yield Client(InMemoryController(twin), twin)

    monkeypatch.setattr(session, "open_client", opened)
    use(cli, twin, 4)
    return twin


def use(cli: Cli, twin: InMemorySegmentStore, primary: int, secondary: int = 0) -> None:
    twin.segments.clear()
    for name in NAMES:
        asyncio.run(twin.create_table_segment(name, primary + secondary))
    cli.answers["GET /scopes/demo/tables/kv"] = table(primary, secondary)


@pytest.mark.usefixtures("store")
def test_what_is_put_is_got_until_it_is_removed(cli: Cli) -> None:
    assert cli("table", "put", "demo/kv", "key1", "one").out == "entry written to demo/kv, version 0\n"
    assert cli("table", "get", "demo/kv", "key1").out == "one\n"
    again = cli("table", "put", "demo/kv", "key1", "two", "--json").document
    assert again == {"table": "demo/kv", "version": 24}
    found = cli("table", "get", "demo/kv", "key1", "--json").document
    assert found.pop("partition") in ("0.#epoch.0", "1.#epoch.0")
    assert found == {"version": 24, "key": {"text": "key1"}, "value": {"text": "two"}}
    for _ in range(2):
        assert cli("table", "remove", "demo/kv", "key1").code == 0
    gone = cli("table", "get", "demo/kv", "key1")
    assert gone.code == 1 and gone.out == "" and "demo/kv has no entry of this key" in gone.err


@pytest.mark.usefixtures("store")
def test_a_write_on_condition_is_refused_when_that_does_not_hold(cli: Cli) -> None:
    assert cli("table", "put", "demo/kv", "key1", "one", "--if-absent").code == 0
    there = cli("table", "put", "demo/kv", "key1", "two", "--if-absent")
    assert there.code == 1 and "there is an entry already" in there.err and "got lost" not in there.err
    assert cli("table", "put", "demo/kv", "key1", "two", "--version", 0).code == 0
    for late in (["put", "demo/kv", "key1", "x"], ["remove", "demo/kv", "key1"], ["put", "demo/kv", "none", "x"]):
        refused = cli("table", *late, "--version", 0)
        assert refused.code == 1 and "not of version 0" in refused.err
    assert cli("table", "get", "demo/kv", "key1").out == "two\n"
    assert cli("table", "put", "demo/kv", "key1", "x", "--version", 1, "--if-absent").code == 2


def test_a_condition_that_a_lost_answer_may_have_broken_is_said(cli: Cli, store: InMemorySegmentStore) -> None:
    lost = iter((True,))

    def fault(moment: str, request: str, _segment: str) -> None:
        if (moment, request) == ("after", "UpdateTableEntries") and next(lost, False):
            raise ConnectionFailure(Failure.LOST)

    store.fault = fault
    refused = cli("table", "put", "demo/kv", "key1", "one", "--if-absent")
    assert refused.code == 1 and "may be what it wrote" in refused.err


def test_entries_come_page_by_page_by_partition_and_key(
    cli: Cli, store: InMemorySegmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "PAGE_ENTRIES", 3)
    assert cli("table", "entries", "demo/kv").out == ""
    keys = [f"{number:04}" for number in range(20)]
    for key in keys:
        cli("table", "put", "demo/kv", key, f"value {key}")
    cli("table", "put", "demo/kv", "/////w==", "AAA=", "--base64")
    held = [store.segments[name].table for name in NAMES]
    assert all(one is not None and len(one.entries) > 3 for one in held), "both partitions have some"
    found = cli("table", "entries", "demo/kv", "--json").lines
    assert sorted(line["key"]["text"] for line in found if "text" in line["key"]) == keys
    order = [(line["partition"], line["key"].get("text", "~")) for line in found]
    assert order == sorted(order)
    [binary] = [line for line in found if "base64" in line["key"]]
    assert binary["key"] == {"base64": "/////w=="} and binary["value"] == {"text": "\0\0"}
    first = cli("table", "entries", "demo/kv", "--limit", 4).out.splitlines()
    assert first == [f"{line['key']['text']}\t{line['value']['text']}" for line in found[:4]]


def test_a_secondary_key_follows_the_primary_one_and_does_not_choose_the_partition(
    cli: Cli, store: InMemorySegmentStore
) -> None:
    use(cli, store, 4, 2)
    for second in ("aa", "bb", "cc", "dd", "ee"):
        assert cli("table", "put", "demo/kv", "key1", f"of {second}", "--secondary", second).code == 0
    assert cli("table", "get", "demo/kv", "key1", "--secondary", "bb").out == "of bb\n"
    found = cli("table", "entries", "demo/kv", "--json").lines
    assert len({line["partition"] for line in found}) == 1
    assert found[0]["key"] == {"text": "key1"} and found[0]["secondary"] == {"text": "aa"}
    assert cli("table", "entries", "demo/kv", "--limit", 1).out == "key1\taa\tof aa\n"


def test_a_key_that_the_table_cannot_have_is_refused(cli: Cli, store: InMemorySegmentStore) -> None:
    for key, complaint in (("abc", "the key has 3 bytes; in table demo/kv it has 4"), ("äöü", "6 bytes")):
        refused = cli("table", "put", "demo/kv", key, "v")
        assert refused.code == 2 and complaint in refused.err
    extra = cli("table", "get", "demo/kv", "key1", "--secondary", "x")
    assert extra.code == 2 and "no secondary keys" in extra.err
    assert all(cli("table", "get", "demo/kv", key, "--base64").code == 2 for key in ("key", "ä"))
    use(cli, store, 4, 2)
    without = cli("table", "get", "demo/kv", "key1")
    assert without.code == 2 and "secondary keys of 2 bytes" in without.err
    short = cli("table", "remove", "demo/kv", "key1", "--secondary", "b")
    assert short.code == 2 and "the secondary key has 1 bytes" in short.err


def test_a_table_that_is_not_there_is_refused(
    cli: Cli, store: InMemorySegmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.answers["GET /scopes/demo/tables/none"] = problem(404, "table demo/none does not exist", "TABLE_NOT_FOUND")
    missing = cli("table", "entries", "demo/none")
    assert missing.code == 1 and "demo/none does not exist" in missing.err
    cli.answers["GET /scopes/demo/tables/kv"] = table(4, state="CREATING")
    assert "demo/kv is CREATING" in cli("table", "get", "demo/kv", "key1").err
    use(cli, store, 4)
    store.segments.clear()
    gone = cli("table", "put", "demo/kv", "key1", "v")
    assert gone.code == 1 and "demo/kv is not there any more" in gone.err
    monkeypatch.setattr(access, "PATIENCE_S", 0.01)

    def away(_moment: str, _request: str, _segment: str) -> None:
        raise ConnectionFailure(Failure.CONNECT_FAILED)

    store.fault = away
    assert cli("table", "get", "demo/kv", "key1").code == 3
