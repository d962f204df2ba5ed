"""`sluice migrate export` as users run it; what it writes is tested in tests/unit/migration."""

from pathlib import Path
from typing import Any

import pytest
from unit.cli.conftest import Cli
from unit.cli.memory import MemorySource
from unit.migration.original import CONTROLLER, REQUESTS_CREATED, Original, T

from sluice.domain.model import JournalRecord, encode_record
from sluice.kafka.topics import JOURNAL
from sluice.lookback.source import Source

AT = ("--zookeeper", "zk:2181", "--cluster", "theirs")


@pytest.fixture
def taken_over(cli: Cli, original: Original, source: MemorySource, tmp_path: Path) -> Path:
    """A dump of what was imported from the original, whose controller has ended."""
    assert source.now
    del original.nodes.all[CONTROLLER]
    for words in (
        ("dump", tmp_path / "before", *AT),
        ("hold", "--partitions", 3),
        ("import", tmp_path / "before"),
        ("release",),
    ):
        assert cli("migrate", *words).code == 0
    return tmp_path / "before"


def test_what_was_imported_is_exported_to_what_it_was(cli: Cli, taken_over: Path, tmp_path: Path) -> None:
    assert cli("migrate", "export", *AT, "--dry-run").out == "Nothing is in the way\n"
    found = cli("migrate", "export", *AT)
    assert found.code == 0 and "The original's tables say what Sluice knew" in found.out
    assert "nothing was to be done" in cli("migrate", "export", *AT).out
    assert cli("migrate", "export", *AT, "--json").document["streams"] == 1
    assert cli("migrate", "dump", tmp_path / "after", *AT).code == 0
    # The made-up original does not count splits, and recorded cuts begin anew.
    differences = cli("migrate", "diff", taken_over, tmp_path / "after").out.splitlines()
    changed = [line for line in differences if line.startswith("changed")]
    assert [line.split("  ")[-1] for line in changed] == ["epochRecord-1", "epochRecord-2", "retention"]


@pytest.mark.usefixtures("taken_over")
@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_an_original_that_keeps_its_metadata_in_zookeeper_is_refused(
    cli: Cli, original: Original, options: tuple[str, ...]
) -> None:
    original.nodes.all[REQUESTS_CREATED] = T.to_bytes(8)
    refused = cli("migrate", "export", *AT, *options)
    assert refused.code == 1 and "the original keeps its metadata in ZooKeeper" in refused.err


@pytest.mark.usefixtures("taken_over")
def test_a_service_that_runs_is_noticed(cli: Cli, source: MemorySource, monkeypatch: pytest.MonkeyPatch) -> None:
    spans, questions = source.spans, list[int]()

    def going_on(*arguments: Any, **more: Any) -> Any:
        questions.append(len(questions))
        if len(questions) == 3:
            source.append(JOURNAL.name, "cluster", encode_record(JournalRecord(id="any", at=1, by="test")))
        return spans(*arguments, **more)

    monkeypatch.setattr(source, "spans", going_on)
    refused = cli("migrate", "export", *AT)
    assert refused.code == 1 and "the journal went on meanwhile: a service runs" in refused.err


@pytest.mark.usefixtures("original")
def test_a_journal_that_is_held_has_nothing_to_go_back_with(cli: Cli, source: Source) -> None:
    assert source.topics()
    assert cli("migrate", "hold", "--partitions", 3).code == 0
    refused = cli("migrate", "export", *AT)
    assert refused.code == 1 and "the journal itself is held" in refused.err
