"""What a checkpoint must be like to be gone on with, over a folder in memory."""

from typing import Any
from unittest.mock import MagicMock

import msgspec
import pytest

from retention_spark import archive_query, checkpoint_compatibility
from retention_spark.checkpoint_compatibility import FORMAT, Fit, UnfitError, claim, mend, read_fit
from retention_spark.files import DamagedFileError
from retention_spark.settings import SparkSettings
from retention_spark.topic_ends import ReadEnds
from sluice.kafka.topics import RETENTION

FIT = Fit(FORMAT, {"topic id": "ab12", "partitions": 16, "buckets": 32})
SESSION: Any = None
Files = dict[str, bytes]


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Files:
    """All files of a file system, by their paths."""
    files: Files = {}

    def below(folder: str) -> list[str]:
        return [path for path in files if path.startswith(f"{folder}/")]

    def rename(_: Any, parent: str, name: str, other: str) -> None:
        for path in below(f"{parent}/{name}"):
            files[path.replace(f"{parent}/{name}/", f"{parent}/{other}/", 1)] = files.pop(path)

    double: dict[str, Any] = {
        "exists": lambda _, folder, name: f"{folder}/{name}" in files,
        "read": lambda _, folder, name: files[f"{folder}/{name}"],
        "names": lambda _, folder: [path.removeprefix(f"{folder}/") for path in below(folder)],
        "empty_files": lambda _, folder: [path for path in below(folder) if not files[path]],
        "remove": lambda _, folder, name: [files.pop(path) for path in below(f"{folder}/{name}")],
        "rename": rename,
        "write_once": lambda _, folder, name, value: files.setdefault(f"{folder}/{name}", value),
    }
    for name, function in double.items():
        monkeypatch.setattr(checkpoint_compatibility, name, function)
    return files


def batch(ends: dict[str, dict[str, int]]) -> bytes:
    """What Spark writes of a batch before it runs."""
    return b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1795762169368,"conf":{}}\n' + msgspec.json.encode(ends)


def ends_at(offset: int) -> ReadEnds:
    return lambda partitions: dict.fromkeys(partitions, offset)


def test_a_checkpoint_is_gone_on_with_by_the_query_that_began_it(files: Files) -> None:
    claim(SESSION, "c", FIT, ends_at(0))
    claim(SESSION, "c", Fit(FORMAT, dict(FIT.facts)), ends_at(0))
    assert read_fit(files["c/sluice.json"], "c") == FIT


def test_each_journal_has_a_checkpoint_of_its_own() -> None:
    one, other = (archive_query.checkpoint_of(SparkSettings(), journal) for journal in ("ab12", "cd34"))
    assert one != other


def test_a_checkpoint_without_a_file_of_this_service_is_refused(files: Files) -> None:
    files["c/metadata"] = b"{}"
    with pytest.raises(UnfitError, match="is not one of this service"):
        claim(SESSION, "c", FIT, ends_at(0))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"topic id": "cd34"}, "has topic id ab12, needed is cd34"),
        ({"partitions": 8}, "has partitions 16, needed is 8"),
        ({"state partitions": 2}, "has state partitions None, needed is 2"),
    ],
)
def test_a_checkpoint_of_other_facts_is_refused(files: Files, change: dict[str, Any], text: str) -> None:
    claim(SESSION, "c", FIT, ends_at(0))
    with pytest.raises(UnfitError, match=text):
        claim(SESSION, "c", Fit(FORMAT, {**FIT.facts, **change}), ends_at(0))
    assert read_fit(files["c/sluice.json"], "c") == FIT


def test_the_checkpoint_of_an_archive_is_refused_for_another_topic_of_reports(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands somewhere in the topic that was there before: what is first in this one would be left out."""
    ids = dict.fromkeys(archive_query.TOPICS, "ab12")
    monkeypatch.setattr(archive_query, "archived_ids", lambda _: ids)
    archive_query.start_archive(MagicMock(), SparkSettings(archive="/archive"))
    ids[RETENTION.name] = "cd34"
    with pytest.raises(UnfitError, match=r"has topic id of sluice\.retention ab12, needed is cd34"):
        archive_query.start_archive(MagicMock(), SparkSettings(archive="/archive"))


def test_the_checkpoint_of_another_archive_is_refused(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would begin in the middle, and the journal would be trimmed all the same."""
    monkeypatch.setattr(archive_query, "archived_ids", lambda _: dict.fromkeys(archive_query.TOPICS, "ab12"))
    for _ in range(2):
        archive_query.start_archive(MagicMock(), SparkSettings(archive="/old"))
    with pytest.raises(UnfitError, match=r"has archive /old, needed is /new: .*copy its files"):
        archive_query.start_archive(MagicMock(), SparkSettings(archive="/new"))


def test_a_checkpoint_beyond_the_end_of_a_partition_is_refused(files: Files) -> None:
    """A Kafka whose volumes were put back has the ids that it had, and fewer records."""
    claim(SESSION, "c", FIT, ends_at(0))
    files["c/offsets/9"] = batch({"sluice.scale": {"0": 3, "1": 5}})
    files["c/offsets/10"] = batch({"sluice.scale": {"0": 7, "1": 6}})
    claim(SESSION, "c", FIT, ends_at(7))
    with pytest.raises(UnfitError, match=r"has read sluice\.scale/0 up to 7, which ends at 6"):
        claim(SESSION, "c", FIT, ends_at(6))


@pytest.mark.parametrize("name", ["sluice.json", "offsets/0"])
def test_a_checkpoint_that_cannot_be_read_is_put_aside_and_begun_anew(
    files: Files, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        claim(SESSION, "p/c", FIT, ends_at(0))
        files |= {"p/c/metadata": b"{}", "p/c/offsets/0": batch({}), f"p/c/{name}": b""}
    claim(SESSION, "p/c", FIT, ends_at(0))
    assert read_fit(files.pop("p/c/sluice.json"), "p/c") == FIT
    assert {path.removeprefix("p/unreadable-c/") for path in files} == {"sluice.json", "metadata", "offsets/0"}
    assert [f"p/c/{name}" in vars(record)["reason"] for record in caplog.records] == [True, True]


@pytest.mark.parametrize(
    ("empty", "failure", "is_begun_anew"),
    [
        ("file:///p/c/commits/3", "java.io.EOFException", True),
        (None, "Failed to read log file file:/p/c/commits/3. Incomplete log file in the offset commit log", True),
        (None, "Checksum error: file:/p/c/metadata at 0 exp: -215302179 got: -653003750", True),
        (None, "Checksum error: file:/archive/day=2026-01-01/1.parquet at 0 exp: -215302179 got: -653003750", False),
        (None, "Multiple streaming queries are concurrently using file:/p/c/offsets", False),
        (None, "NotDeliveredError: 3 of 3 records: no answer", False),
    ],
)
def test_a_checkpoint_is_begun_anew_if_that_is_what_its_query_fails_by(
    files: Files, empty: str | None, failure: str, is_begun_anew: bool
) -> None:
    folder = "file:///p/c"
    claim(SESSION, folder, FIT, ends_at(0))
    files[f"{folder}/metadata"] = b"{}"
    if empty is not None:
        files[empty] = b""
    mend(SESSION, folder, failure)
    assert (f"{folder}/metadata" not in files) is is_begun_anew
    claim(SESSION, folder, FIT, ends_at(0))


def test_a_checkpoint_of_another_format_is_named_whatever_else_it_holds() -> None:
    older = b'{"format":1,"cluster":"cluster","topic":"sluice.scale","partitions":16,"state_partitions":2}'
    with pytest.raises(UnfitError, match=f"has format 1, needed is {FORMAT}: remove it to begin anew"):
        read_fit(older, "folder")
    for odd in (b"{", b'{"format":%d}' % FORMAT):
        with pytest.raises(DamagedFileError, match=r"folder/sluice\.json"):
            read_fit(odd, "folder")
