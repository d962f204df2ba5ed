"""`sluice backup` over topics in memory: from one system's journal into another one's."""

from pathlib import Path

import pytest
from unit.cli.conftest import Cli
from unit.cli.memory import MemorySource, MemoryTopics

from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.model import DomainModel, decode_record
from sluice.domain.stream.restore import bases_of
from sluice.domain.stream.state import StreamState, find_stream
from sluice.engine.fold import GuardedReader, PartitionView
from sluice.engine.partition import partition_keys, partition_of
from sluice.kafka.topics import JOURNAL
from sluice.lookback.source import KafkaRecord
from sluice_cli import session

ORDERS = StreamId("demo", "orders")


@pytest.fixture
def topics(cli: Cli, empty: MemorySource) -> MemoryTopics:
    """Where a restore writes."""
    found = session.open_topics("")
    assert isinstance(found, MemoryTopics)
    return found


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch, cli: Cli, tmp_path: Path) -> MemorySource:
    """A back-up of a stream in `tmp_path`; from then on the commands see a system without a record."""
    cli.history.create_stream(StreamConfig(ScalingPolicy(min_segments=2)))
    found = cli("backup", "create", tmp_path / "b", "--json").document
    assert (found["scopes"], found["streams"], found["internalStreams"], found["partitions"]) == (1, 1, 1, 4)
    source = MemorySource()
    cli.history.source = source
    topics = MemoryTopics(source)
    monkeypatch.setattr(session, "open_topics", lambda _bootstrap: topics)
    return source


def views(logs: list[list[KafkaRecord]]) -> list[PartitionView]:
    found = []
    for key, log in zip(partition_keys(len(logs)), logs, strict=True):
        view = PartitionView(DomainModel(), key)
        for record in log:
            view.fold(decode_record(record.value or b""), record.offset, record.at)
        found.append(view)
    return found


@pytest.mark.parametrize("partitions", [None, 1, 8])
def test_a_restore_brings_the_streams_into_empty_topics(
    cli: Cli, empty: MemorySource, tmp_path: Path, partitions: int | None
) -> None:
    options = ["--partitions", partitions] if partitions is not None else []
    found = cli("backup", "restore", tmp_path / "b", *options, "--json").document
    logs = empty.logs[JOURNAL.name]
    assert found["partitions"] == len(logs) == (partitions or 4) and found["repairs"] == []
    view = views(logs)[partition_of(ORDERS.key, len(logs))]
    stream = find_stream(GuardedReader(view), ORDERS)
    assert stream is not None and stream.state is StreamState.RESTORING and bases_of(stream) == (found["base"],)
    assert len(stream.active_epoch.segments) == 2


def test_a_restore_looks_where_another_one_numbered_from_if_that_can_have_been(
    cli: Cli, empty: MemorySource, tmp_path: Path
) -> None:
    for base in (63, 64 * 10**7):
        refused = cli("backup", "restore", tmp_path / "b", "--earlier", base)
        assert refused.code == 1 and f"no restore that was made behind this back-up can have numbered from {base}" in (
            refused.err
        )
    assert not any(empty.logs.get(JOURNAL.name, []))
    found = cli("backup", "restore", tmp_path / "b", "--earlier", 64, "--earlier", 640, "--json").document
    stream = find_stream(GuardedReader(views(empty.logs[JOURNAL.name])[partition_of(ORDERS.key, 4)]), ORDERS)
    assert stream is not None and bases_of(stream) == (64, 640, found["base"])


def test_a_restore_into_topics_with_records_is_refused(cli: Cli, empty: MemorySource, tmp_path: Path) -> None:
    assert cli("backup", "restore", tmp_path / "b").code == 0
    refused = cli("backup", "restore", tmp_path / "b")
    assert refused.code == 1 and "sluice.journal" in refused.err and "delete the topics" in refused.err


def test_an_audit_of_a_restored_stream_says_what_brought_it(cli: Cli, empty: MemorySource, tmp_path: Path) -> None:
    assert cli("backup", "restore", tmp_path / "b").code == 0
    (change,) = cli("audit", "demo/orders", "--from", "2023-01-01", "--json").document
    assert (change["type"], change["by"]) == ("AggregateRestored", "sluice/backup")
    assert change["facts"].startswith("state=(") and change["facts"].endswith(" bytes)")
    before = cli("stream", "show", "demo/orders", "--at", change["at"] - 1)
    assert before.code == 1 and "restored journal knows nothing of the time before it" in before.err


def test_a_restore_beside_a_service_that_writes_is_refused(cli: Cli, topics: MemoryTopics, tmp_path: Path) -> None:
    def write() -> None:
        topics.source.append(JOURNAL.name, "cluster", b"{}")

    topics.meanwhile = write
    refused = cli("backup", "restore", tmp_path / "b")
    assert refused.code == 1 and "another process has written to sluice.journal" in refused.err


def test_a_restore_that_was_broken_off_cannot_be_backed_up(cli: Cli, empty: MemorySource, tmp_path: Path) -> None:
    assert cli("backup", "restore", tmp_path / "b").code == 0
    log = max(empty.logs[JOURNAL.name], key=len)
    assert len(log) > 1
    del log[-1]
    refused = cli("backup", "create", tmp_path / "half")
    assert refused.code == 1 and "half restored" in refused.err


def test_a_back_up_says_what_it_has_and_one_that_is_damaged_says_why_not(cli: Cli, tmp_path: Path) -> None:
    cli.history.create_stream(StreamConfig())
    assert cli("backup", "create", tmp_path / "b").code == 0
    assert "can be restored" in cli("backup", "verify", tmp_path / "b").out
    file = next(path for path in sorted((tmp_path / "b").glob("*.parts")) if path.stat().st_size > 100)
    file.write_bytes(file.read_bytes()[:-1])
    refused = cli("backup", "verify", tmp_path / "b")
    assert refused.code == 1 and file.name in refused.err


def test_a_journal_that_was_given_more_partitions_is_backed_up_as_it_was(cli: Cli, tmp_path: Path) -> None:
    cli.history.create_stream(StreamConfig())
    cli.history.source.logs[JOURNAL.name] += [[], []]
    refused = cli("backup", "create", tmp_path / "b")
    assert refused.code == 1 and "belongs to another partition" in refused.err
    found = cli("backup", "create", tmp_path / "c", "--partitions", 4, "--json").document
    assert (found["partitions"], found["streams"]) == (4, 1)


def test_a_back_up_is_written_into_a_folder_of_its_own(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    refused = cli("backup", "create", tmp_path)
    assert refused.code == 1 and "not empty" in refused.err
