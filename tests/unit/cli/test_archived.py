"""Questions about what Kafka no longer has: the archive has it, and each event comes once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.archive import files, write
from unit.cli.conftest import Cli
from unit.cli.memory import TOPIC_ID, History
from unit.cli.snapshots import snapshot_of

from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.decision import Decision
from sluice.domain.ids import StreamId
from sluice.domain.scope.commands import CreateScope
from sluice.domain.stream.commands import CreateStream, ScaleStream, SealStream
from sluice.domain.transaction.events import TransactionRangePrepared, TransactionRangeReserved
from sluice.domain.transaction_ids import first_of_range
from sluice.engine.partition import partition_of
from sluice.insight.streams import StreamDescription
from sluice.kafka.topics import JOURNAL
from sluice.lookback.archived import ArchivedSource
from sluice.lookback.describing import STREAM, ResourceQuestion
from sluice.lookback.errors import LookbackError
from sluice.lookback.jobs import run_job
from sluice.lookback.searching import JOURNAL_SEARCH, FoundEvents, SearchQuestion

ALL = 1 << 62


@pytest.fixture
def history(cli: Cli) -> History:
    """`demo/orders` is created, scaled and sealed; another scope and stream are there, too."""
    history = cli.history
    history.create_stream(StreamConfig(scaling=ScalingPolicy(min_segments=1)))
    history.ask(ScaleStream("demo", "orders", (0,), ((0.0, 0.5), (0.5, 1.0)), history.now), "scale")
    history.finish_scale("demo", "orders")
    history.ask(CreateScope("other"), "other-scope")
    history.ask(CreateStream("other", "orders", StreamConfig()), "other-create")
    history.finish_create("other", "orders", "other-create")
    history.ask(SealStream("demo", "orders"), "seal", principal="alice")
    history.finish_seal("demo", "orders", "seal")
    history.twin("demo/orders", decides=False)
    return history


def archive(history: History, target: Path, at: int = ALL) -> None:
    """Archive each partition of the journal up to an offset, in two files, and drop it from Kafka."""
    for partition, log in enumerate(history.source.logs[JOURNAL.name]):
        end = min(at, len(log))
        for part in (log[: end // 2], log[end // 2 : end]):
            write(target, TOPIC_ID, files(JOURNAL.name, part))
        history.source.trim(JOURNAL.name, partition, end)


@pytest.fixture(params=["all", "some"])
def trimmed(request: pytest.FixtureRequest, history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Archives and trims all of the journal, or a part of it, when called."""

    def trim() -> None:
        archive(history, tmp_path, ALL if request.param == "all" else 3)
        monkeypatch.setenv("SLUICE_ARCHIVE", str(tmp_path))

    return trim


def audit(cli: Cli, *arguments: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cli("audit", *arguments, "--from", "1700000000000", "--json").document
    return found


def test_an_audit_says_who_changed_what_when_and_for_which_request(cli: Cli, history: History) -> None:
    found = audit(cli, "demo/orders")
    assert [(c["type"], c["request"]) for c in found if c["name"] == "demo/orders"] == [
        ("StreamCreationStarted", "create"), ("StreamCreated", "create"),
        ("StreamScaleStarted", "scale"), ("StreamEpochAdded", "scale"), ("StreamScaled", "scale"),
        ("StreamSealStarted", "seal"), ("StreamSealed", "seal"),
    ]  # fmt: skip
    assert {c["by"] for c in found} == {"stream-workflows/b"}
    assert [c["at"] for c in found] == sorted(c["at"] for c in found)
    assert len({(c["partition"], c["offset"], c["entry"], c["type"]) for c in found}) == len(found)


def test_an_audit_names_who_called_for_a_workflow_and_for_nothing_else(cli: Cli, history: History) -> None:
    assert [c["type"] for c in audit(cli, "demo/orders") if c["principal"] == "alice"] == [
        "StreamSealStarted", "StreamSealed",
    ]  # fmt: skip
    assert {c["principal"] for c in audit(cli, "demo/orders") if c["request"] != "seal"} == {""}


def test_an_audit_of_a_scope_has_all_that_is_in_it(cli: Cli, history: History) -> None:
    assert {c["name"] for c in audit(cli, "demo")} == {"demo", "demo/orders"}
    assert {c["name"] for c in audit(cli, "demo", "--internal")} == {"demo", "demo/orders", "demo/_MARKorders"}
    assert {c["name"] for c in audit(cli, "demo/_MARKorders")} == {"demo/_MARKorders"}


def test_an_audit_has_prepared_transactions_only_if_wanted(cli: Cli, history: History) -> None:
    other, first = StreamId("other", "orders"), first_of_range(0, "t")
    types = ["TransactionRangeReserved", "TransactionRangePrepared"]
    history.decide(other.key, lambda *_: Decision((TransactionRangeReserved(*other, first, count=1, at=history.now),)))
    history.decide(other.key, lambda *_: Decision((TransactionRangePrepared(*other, first),)))
    plain, all_of_it = audit(cli, "other/orders"), audit(cli, "other/orders", "--internal")
    assert [c["type"] for c in all_of_it] == [*(c["type"] for c in plain), *types]
    assert [c["type"] for c in audit(cli, "other/orders", "--type", ",".join(types))] == types


def test_an_audit_is_bounded_by_times_and_type(cli: Cli, history: History) -> None:
    everything = audit(cli, "demo")
    at = everything[3]["at"]
    assert audit(cli, "demo", "--to", at) == [c for c in everything if c["at"] < at]
    since = cli("audit", "demo", "--from", at, "--json").document
    assert since == [c for c in everything if c["at"] >= at], "what a workflow does later belongs to its request still"
    assert {c["type"] for c in audit(cli, "demo", "--type", "StreamScaled")} == {"StreamScaled"}
    of_two = audit(cli, "demo", "--type", "streamscaled,StreamCreated", "--type", "StreamSealed")
    assert {c["type"] for c in of_two} == {"StreamScaled", "StreamCreated", "StreamSealed"}


@pytest.mark.parametrize("command", [("audit", "demo"), ("topic", "tail", "journal", "--no-follow")])
def test_a_type_that_there_is_not_is_refused(cli: Cli, history: History, command: tuple[str, ...]) -> None:
    found = cli(*command, "--type", "StreamScaled,StreamScald")
    assert found.code == 2 and "'StreamScald' is no type" in found.err and "StreamScaled, StreamSealed" in found.err


def test_an_audit_for_people_is_a_table_or_a_sentence(cli: Cli, history: History) -> None:
    lines = cli("audit", "demo/orders", "--from", "1700000000000").out.strip().splitlines()
    assert lines[0].split() == ["at", "name", "event", "facts", "principal", "by", "request"]
    assert "nothing of demo/none changed" in cli("audit", "demo/none").out


@pytest.mark.parametrize("subject", ["demo", "demo/orders"])
def test_an_audit_from_the_archive_equals_that_from_the_journal(cli: Cli, trimmed: Any, subject: str) -> None:
    before = audit(cli, subject)
    trimmed()
    assert before and audit(cli, subject) == before


def test_a_stream_as_it_was_is_the_same_from_the_archive(cli: Cli, history: History, trimmed: Any) -> None:
    times = range(history.now - 12, history.now)
    before = [cli("stream", "show", "demo/orders", "--at", at, "--json") for at in times]
    assert any(run.code == 0 for run in before)
    trimmed()
    after = [cli("stream", "show", "demo/orders", "--at", at, "--json") for at in times]
    assert [(run.code, run.out) for run in after] == [(run.code, run.out) for run in before]


def test_a_trace_is_the_same_from_the_archive(cli: Cli, trimmed: Any) -> None:
    def traced() -> Any:
        return cli("trace", "scale", "--since", "1700000000000", "--json").document

    before = traced()
    trimmed()
    assert len(before["steps"]) > 3 and traced() == before


def test_topics_are_tailed_from_the_archive_by_time(cli: Cli, history: History, trimmed: Any) -> None:
    def tailed(begin: object) -> list[tuple[int, int]]:
        lines = cli("topic", "tail", "journal", "--no-follow", "--from", begin, "--json").lines
        return [(line["partition"], line["offset"]) for line in lines]

    begins = ("start", "1700000000000", history.now - 5)
    before = [tailed(begin) for begin in begins]
    trimmed()
    assert [tailed(begin) for begin in begins] == before


def test_what_was_trimmed_and_not_archived_is_missed_and_said(cli: Cli, history: History, tmp_path: Path) -> None:
    archive(history, tmp_path, 2)
    for command in (("audit", "demo"), ("stream", "show", "demo/orders", "--at", "now")):
        run = cli(*command)
        assert run.code == 1 and "lacks its records before offset" in run.err and "SLUICE_ARCHIVE" in run.err


def test_a_gap_between_archive_and_journal_is_said(
    cli: Cli, history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(history, tmp_path, 1)
    log = max(history.source.logs[JOURNAL.name], key=len)
    history.source.trim(JOURNAL.name, log[0].partition, 3)
    monkeypatch.setenv("SLUICE_ARCHIVE", str(tmp_path))
    run = cli("audit", "demo")
    assert run.code == 1 and f"partition {log[0].partition} of the journal lacks its records before offset 3" in run.err


def test_behind_a_gap_in_the_archive_the_past_is_folded_from_a_snapshot(
    cli: Cli, history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = asyncio.run(snapshot_of(history, "demo/orders"))
    log = history.source.logs[JOURNAL.name][snapshot.partition]
    gap, begin = snapshot.offset - 2, len(log)
    for part in (log[: gap // 2], log[gap // 2 : gap], log[gap + 1 : begin]):
        write(tmp_path, TOPIC_ID, files(JOURNAL.name, part))
    commands = [("stream", "show", "demo/orders", "--at", at, "--json") for at in (log[gap - 2].at, history.now)]
    expected = [cli(*command).document["state"] for command in commands]
    history.source.trim(JOURNAL.name, snapshot.partition, begin)
    monkeypatch.setenv("SLUICE_ARCHIVE", str(tmp_path))
    assert [cli(*command).document["state"] for command in commands] == expected


def test_jobs_find_what_the_archive_has_before_a_gap(history: History, tmp_path: Path) -> None:
    partition = partition_of("demo/orders", len(history.source.logs[JOURNAL.name]))
    log = history.source.logs[JOURNAL.name][partition]
    gap, begin = len(log) // 2, len(log)
    moment, source = log[gap - 2].at, ArchivedSource(history.source, str(tmp_path))

    def looked_back() -> tuple[StreamDescription, FoundEvents]:
        question, wanted = ResourceQuestion("demo", "orders", moment), SearchQuestion("demo/orders", to_ms=moment)
        return run_job(STREAM, question, source, history.now), run_job(JOURNAL_SEARCH, wanted, source, history.now)

    expected = looked_back()
    assert expected[1].items
    for part in (log[:gap], log[gap + 1 : begin]):
        write(tmp_path, TOPIC_ID, files(JOURNAL.name, part))
    history.source.trim(JOURNAL.name, partition, begin)
    assert looked_back() == expected
    with pytest.raises(LookbackError, match="lacks its records before offset"):
        run_job(STREAM, ResourceQuestion("demo", "orders", history.now), source, history.now)


def test_an_archive_that_cannot_be_read_is_an_error(
    cli: Cli, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.source.trim(JOURNAL.name, 0, 1)
    monkeypatch.setenv("SLUICE_ARCHIVE", "nothing://here")
    run = cli("audit", "demo")
    assert run.code == 3 and "cannot read the archive: nothing://here" in run.err


def test_an_archive_of_another_journal_is_not_taken(
    cli: Cli, history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(history, tmp_path)
    monkeypatch.setenv("SLUICE_ARCHIVE", str(tmp_path))
    (tmp_path / JOURNAL.name / f"id={TOPIC_ID}").rename(tmp_path / JOURNAL.name / f"id={'0b' * 16}")
    run = cli("audit", "demo")
    assert run.code == 1 and "lacks its records before offset" in run.err
