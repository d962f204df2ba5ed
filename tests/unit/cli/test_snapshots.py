"""`sluice snapshot`, `sluice topic sizes`, and what reads a journal whose begin is trimmed."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from unit.cli.conftest import Cli
from unit.cli.memory import PARTITIONS
from unit.cli.snapshots import snapshot_of

from sluice.domain.config import StreamConfig
from sluice.domain.model import encode_record
from sluice.domain.scope.commands import CreateScope
from sluice.domain.stream.commands import SealStream
from sluice.engine.partition import partition_of
from sluice.engine.record import Marker, Record
from sluice.engine.snapshots import SnapshotManifest
from sluice.kafka import topics

PARTITION = partition_of("demo/orders", PARTITIONS)


def snapshot(cli: Cli, *, confirmed: bool = True) -> SnapshotManifest:
    """A snapshot of the stream's partition behind a marker."""
    return asyncio.run(snapshot_of(cli.history, "demo/orders", confirmed=confirmed))


@pytest.fixture
def trimmed(cli: Cli) -> SnapshotManifest:
    """The journal of demo/orders is trimmed behind a snapshot; then the stream is sealed."""
    cli.history.create_stream(StreamConfig())
    manifest = snapshot(cli)
    cli.history.source.trim(topics.JOURNAL.name, PARTITION, manifest.offset)
    cli.history.ask(SealStream("demo", "orders"), "seal")
    cli.history.finish_seal("demo", "orders", "seal")
    return manifest


def test_a_stream_behind_a_trimmed_journal_is_shown_from_the_snapshot(cli: Cli, trimmed: SnapshotManifest) -> None:
    now = cli("stream", "show", "demo/orders", "--at", cli.history.now, "--json")
    assert now.document["state"] == "SEALED"
    assert f"trimmed: it is folded from the snapshot at {trimmed.offset}" in now.err
    then = cli("stream", "show", "demo/orders", "--at", trimmed.at, "--json").document
    assert then["state"] == "ACTIVE" and then["record"]["types"] == ["Snapshot"]
    assert (then["record"]["offset"], then["record"]["at"]) == (trimmed.offset, trimmed.at)


def test_a_moment_before_the_oldest_snapshot_of_a_trimmed_journal_is_an_error(
    cli: Cli, trimmed: SnapshotManifest
) -> None:
    found = cli("stream", "show", "demo/orders", "--at", trimmed.at - 1)
    assert found.code == 1 and f"lacks its records before offset {trimmed.offset}: they were trimmed" in found.err


def test_a_request_behind_a_trimmed_journal_is_traced(cli: Cli, trimmed: SnapshotManifest) -> None:
    found = cli("trace", "seal", "--since", "2023-01-01", "--json")
    assert "StreamSealed" in found.out and f"from the snapshot at {trimmed.offset}" in found.err


def test_a_request_from_before_the_oldest_snapshot_is_not_traced_in_part(cli: Cli, trimmed: SnapshotManifest) -> None:
    found = cli("trace", "create", "--since", "2023-01-01", "--json")
    assert found.code == 1 and "No snapshot is as old as what you ask for" in found.err


def test_an_audit_of_a_trimmed_journal_is_folded_from_a_snapshot_before_its_begin(
    cli: Cli, trimmed: SnapshotManifest
) -> None:
    found = cli("audit", "demo/orders", "--from", trimmed.at, "--json")
    changes = [(c["type"], c["request"]) for c in found.document if c["name"] == "demo/orders"]
    assert changes == [("StreamSealStarted", "seal"), ("StreamSealed", "seal")]
    assert cli("audit", "demo/orders", "--from", trimmed.at - 1).code == 1


def test_a_back_up_of_a_trimmed_journal_equals_that_of_the_whole_one(
    cli: Cli, trimmed: SnapshotManifest, tmp_path: Path
) -> None:
    assert cli("backup", "create", tmp_path / "trimmed").code == 0
    cli.history.source.trim(topics.JOURNAL.name, PARTITION, 0)
    assert cli("backup", "create", tmp_path / "whole").code == 0
    files = sorted(path.name for path in (tmp_path / "whole").glob("*.parts"))
    assert len(files) == PARTITIONS
    for name in files:
        assert (tmp_path / "trimmed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_back_up_of_a_journal_that_lost_its_end_has_the_newest_snapshot(cli: Cli, tmp_path: Path) -> None:
    cli.history.create_stream(StreamConfig())
    snapshot(cli)
    del cli.history.source.logs[topics.JOURNAL.name][PARTITION][1:]
    found = cli("backup", "create", tmp_path / "b", "--json").document
    assert found["fromSnapshots"] == [PARTITION] and found["streams"] == 1
    shown = cli("backup", "create", tmp_path / "c").out
    assert f"Partition {PARTITION} of the journal has lost its end: the back-up has its newest snapshot" in shown


def test_a_journal_that_lost_its_end_is_not_exported(cli: Cli) -> None:
    cli.history.create_stream(StreamConfig())
    snapshot(cli)
    del cli.history.source.logs[topics.JOURNAL.name][PARTITION][1:]
    refused = cli("migrate", "export")
    assert refused.code == 1 and f"partitions [{PARTITION}] of the journal have lost their end" in refused.err


def test_a_snapshot_of_another_journal_is_not_folded_from(cli: Cli, trimmed: SnapshotManifest) -> None:
    log = cli.history.source.logs[topics.JOURNAL.name][PARTITION]
    other: Record[Any, Any] = Record("other", trimmed.at, "cluster-manager/a", marker=Marker(1))
    log[trimmed.offset] = msgspec.structs.replace(log[trimmed.offset], value=encode_record(other))
    found = cli("stream", "show", "demo/orders", "--at", cli.history.now)
    assert found.code == 1 and "they were trimmed" in found.err


def test_a_snapshot_that_no_second_run_confirmed_is_not_folded_from(cli: Cli) -> None:
    cli.history.create_stream(StreamConfig())
    manifest = snapshot(cli, confirmed=False)
    cli.history.source.trim(topics.JOURNAL.name, PARTITION, manifest.offset)
    found = cli("stream", "show", "demo/orders", "--at", cli.history.now)
    assert found.code == 1 and "they were trimmed" in found.err


def test_a_journal_that_is_not_trimmed_is_folded_from_its_begin(cli: Cli) -> None:
    cli.history.create_stream(StreamConfig())
    snapshot(cli)
    found = cli("stream", "show", "demo/orders", "--at", cli.history.now, "--json")
    assert found.document["record"]["types"] == ["StreamCreated"] and found.err == ""


def test_snapshots_are_listed_with_why_one_may_not_be_used(cli: Cli) -> None:
    cli.history.create_stream(StreamConfig())
    first, second = snapshot(cli), snapshot(cli, confirmed=False)
    cli.history.source.append(topics.SNAPSHOTS.name, "", b'{"type":"SnapshotManifest","format":9}', partition=PARTITION)
    found = cli("snapshot", "list", "--json").document
    assert [s.get("offset") for s in found] == [second.offset, first.offset, None]
    assert [s["problem"] for s in found] == [
        "no second run has confirmed it",
        None,
        "the note at 3 is of format 9, this is 1",
    ]
    assert found[1]["confirmedBy"] == ["cluster-manager/b"] and found[1]["parts"]["head"] == 1
    assert "no second run has confirmed it" in cli("snapshot", "list").out


def test_a_damaged_snapshot_is_found_by_reading_all_of_it(cli: Cli) -> None:
    cli.history.create_stream(StreamConfig())
    manifest = snapshot(cli)
    cli.history.source.trim(topics.SNAPSHOT_CHUNKS.name, PARTITION, manifest.last_chunk + 1)
    assert cli("snapshot", "list", "--json").document[0]["problem"] is None
    assert "incomplete" in cli("snapshot", "list", "--check", "--json").document[0]["problem"]


def test_without_snapshots_the_list_says_so(cli: Cli) -> None:
    assert cli("snapshot", "list").out == "there is no snapshot yet\n"


# Sizes.


def sizes(cli: Cli) -> dict[str, Any]:
    return {topic["topic"]: topic for topic in cli("topic", "sizes", "--json").document}


def test_sizes_of_topics_are_those_of_what_is_left_in_them(cli: Cli) -> None:
    source = cli.history.source
    for number in range(100):
        source.append(topics.COMMIT.name, "k", bytes(number % 2 * 20))
    partition = partition_of("k", PARTITIONS)
    source.trim(topics.COMMIT.name, partition, 10)
    commits = sizes(cli)[topics.COMMIT.name]
    assert commits["records"] == 90 and commits["bytes"] == 90 * 11
    assert commits["oldest"] == source.logs[topics.COMMIT.name][partition][10].at
    assert commits["partitions"][partition]["begin"] == 10 and commits["partitions"][partition]["end"] == 100


def test_a_short_partition_is_measured_once(cli: Cli) -> None:
    for _ in range(25):
        cli.history.source.append(topics.ABORT.name, "k", bytes(9))
    assert sizes(cli)[topics.ABORT.name]["bytes"] == 250


def test_the_largest_topic_comes_first_and_empty_ones_are_shown(cli: Cli) -> None:
    cli.history.ask(CreateScope("demo"), "scope")
    cli.history.source.append(topics.ABORT.name, "k", bytes(100_000))
    found = list(sizes(cli).values())
    assert found[0]["topic"] == topics.ABORT.name and found[0]["bound"] == "7 d"
    assert {topic.name for topic in topics.TOPICS} == {one["topic"] for one in found}
    assert found[-1]["bytes"] == 0 and found[-1]["oldest"] is None
    assert "97.66 KiB" in cli("topic", "sizes").out


def test_every_topic_says_what_bounds_it() -> None:
    assert all(topic.bound for topic in topics.TOPICS)
    assert [t.name for t in topics.TOPICS if t.retention_ms < 0 and not t.bound_by] == []
