"""The archive read without Spark, while files are joined and after a crash has left files twice."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.archive import archived, files, write
from unit.cli.memory import BEGAN, TOPIC_ID, History

from sluice.archive.layout import ArchiveFile
from sluice.archive.reading import Archive, ArchiveUnreadableError
from sluice.domain.model import decode_record
from sluice.domain.scope.commands import CreateScope
from sluice.kafka.topics import JOURNAL, SCALE
from sluice.lookback.source import KafkaRecord

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def log() -> list[KafkaRecord]:
    """The fullest partition of a journal that lasted for three days."""
    history = History()
    for number in range(60):
        history.ask(CreateScope(f"scope-{number}"), f"request-{number}")
        history.source.now += DAY_MS // 20
    return max(history.source.logs[JOURNAL.name], key=len)


def opened(target: Path) -> Archive:
    return Archive(str(target), JOURNAL.name, TOPIC_ID, splits_entries=True)


def read(archive: Archive, log: list[KafkaRecord], start: int = 0, end: int = 1 << 62) -> list[int]:
    """The offsets that are read; they hold what the log does."""
    found = list(archive.read(log[0].partition, start, end))
    for record in found:
        wanted = archived(log[record.offset])
        assert (record.at, record.key) == (wanted.at, wanted.key)
        assert decode_record(record.value or b"") == decode_record(wanted.value or b"")
    return [record.offset for record in found]


def test_all_records_come_once_and_in_order(tmp_path: Path, log: list[KafkaRecord]) -> None:
    paths = write(tmp_path, TOPIC_ID, files(JOURNAL.name, log))
    assert len({path.parent for path in paths}) >= 3, "a folder for each day"
    assert read(opened(tmp_path), log) == list(range(len(log)))
    assert read(opened(tmp_path), log, 3, 6) == [3, 4, 5]


def test_files_that_overlap_give_each_record_once(tmp_path: Path, log: list[KafkaRecord]) -> None:
    for start, end in ((0, 4), (2, 9), (2, 5), (0, len(log)), (5, len(log))):
        write(tmp_path, TOPIC_ID, files(JOURNAL.name, log[start:end]))
    assert read(opened(tmp_path), log) == list(range(len(log)))


def test_a_file_that_was_joined_meanwhile_is_found_in_the_joined_one(tmp_path: Path, log: list[KafkaRecord]) -> None:
    first = files(JOURNAL.name, log)[0].file.end
    paths = write(tmp_path, TOPIC_ID, [one for at in range(first) for one in files(JOURNAL.name, log[at : at + 1])])
    archive = opened(tmp_path)
    reading = archive.read(log[0].partition, 0, first)
    assert next(reading).offset == 0
    write(tmp_path, TOPIC_ID, files(JOURNAL.name, log[:first]))
    for path in paths:
        path.unlink()
    assert [record.offset for record in reading] == list(range(1, first))


def test_a_file_that_is_gone_for_good_is_a_gap(tmp_path: Path, log: list[KafkaRecord]) -> None:
    made = files(JOURNAL.name, log)
    paths = write(tmp_path, TOPIC_ID, made)
    archive = opened(tmp_path)
    archive.files(log[0].partition)
    paths[1].unlink()
    missing = range(made[1].file.start, made[1].file.end)
    assert read(archive, log) == [offset for offset in range(len(log)) if offset not in missing]


def test_a_file_that_is_no_parquet_is_an_error_with_its_name(tmp_path: Path, log: list[KafkaRecord]) -> None:
    (path, *_) = write(tmp_path, TOPIC_ID, files(JOURNAL.name, log))
    path.write_text("no parquet")
    with pytest.raises(ArchiveUnreadableError, match=path.name):
        read(opened(tmp_path), log)


def test_an_archive_that_is_not_there_is_empty(tmp_path: Path, log: list[KafkaRecord]) -> None:
    archive = opened(tmp_path / "nowhere")
    assert archive.files(0) == [] and read(archive, log) == []


def test_offsets_by_time_are_those_of_the_log(tmp_path: Path, log: list[KafkaRecord]) -> None:
    write(tmp_path, TOPIC_ID, files(JOURNAL.name, log))
    archive, partition = opened(tmp_path), log[0].partition
    for at in (0, BEGAN, log[0].at, log[0].at + 1, log[4].at, log[-1].at - 1, log[-1].at, log[-1].at + 1):
        assert archive.offset_at(partition, at) == next((r.offset for r in log if r.at >= at), None), at


def test_other_engines_find_the_documented_columns(tmp_path: Path, log: list[KafkaRecord]) -> None:
    write(tmp_path, TOPIC_ID, files(JOURNAL.name, log))
    table = pq.read_table(tmp_path / JOURNAL.name)
    assert table.num_rows == len(log) and set(table["id"].to_pylist()) == {TOPIC_ID}
    assert table.schema.field("appended_at").type == pa.timestamp("ms", tz="UTC")
    assert table["events"].to_pylist()[0] == ["ScopeCreated"]


def test_another_topic_keeps_its_values(tmp_path: Path) -> None:
    records = [KafkaRecord(SCALE.name, 1, offset, BEGAN, "a/b", b"\xff{") for offset in range(2)]
    (one,) = files(SCALE.name, records)
    assert one.file == ArchiveFile(1, 0, 2, "2023-11-14")
    write(tmp_path, TOPIC_ID, [one])
    archive = Archive(str(tmp_path), SCALE.name, TOPIC_ID, splits_entries=False)
    assert list(archive.read(1, 0, 2)) == [archived(record) for record in records]
