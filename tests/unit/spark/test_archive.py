"""The archive's files as workers make them, joined as the driver does, and what the archived journal says."""

from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.archive import archived, files

from retention_spark import archive_files, archive_frames, archive_sink, questions
from retention_spark.archive_facts import GAP, SCALED, TRANSACTION, WORKFLOW, facts_of
from retention_spark.archive_files import FileContent, encode_files, parquet
from retention_spark.archive_frames import ATTEMPTS, repeated
from retention_spark.archive_joining import superseded
from retention_spark.archive_questions import fold_rows
from retention_spark.archive_sink import ends
from retention_spark.joining import JOINED_BYTES, joinable
from retention_spark.settings import SparkSettings
from sluice.archive.layout import ArchiveFile
from sluice.archive.rows import JOURNAL_SCHEMA, ArchivedRecord, Row, UnreadableRecordError, journal_rows
from sluice.catalog.examples.journal_records import journal_records
from sluice.domain.model import decode_record
from sluice.kafka.topics import JOURNAL, SCALE
from sluice.lookback.source import KafkaRecord

DAY = "2026-01-31"
DAY_MS = 24 * 3600 * 1000
BEGAN = 1_769_817_600_000
"""The first moment of that day."""

LOG = [
    KafkaRecord(JOURNAL.name, 0, offset, BEGAN + 1000 * offset, example.key, example.value)
    for offset, example in enumerate(journal_records())
]


def file(start: int, end: int, partition: int = 0) -> ArchiveFile:
    return ArchiveFile(partition, start, end, DAY)


def rows(log: list[KafkaRecord]) -> list[Row]:
    return [row for record in log for row in journal_rows(archived(record))]


def named(made: list[FileContent]) -> list[tuple[str, ArchiveFile]]:
    return [(one.topic, one.file) for one in made]


def test_a_task_makes_one_file_and_the_same_one_when_it_runs_again() -> None:
    (made,) = files(JOURNAL.name, LOG)
    assert made.file == file(0, len(LOG))
    assert files(JOURNAL.name, LOG) == [made]


def test_a_file_ends_with_its_day_also_where_the_brokers_clock_runs_back() -> None:
    times = (BEGAN - 2, BEGAN - 1, BEGAN, BEGAN - 1, BEGAN + 1)
    log = [KafkaRecord(SCALE.name, 0, offset, at, "a/b", b"") for offset, at in enumerate(times)]
    before = "2026-01-30"
    assert [(one.file.day, one.file.start, one.file.end) for one in files(SCALE.name, log)] == [
        (before, 0, 2), (DAY, 2, 3), (before, 3, 4), (DAY, 4, 5),
    ]  # fmt: skip


def test_a_file_ends_where_offsets_are_missing_and_where_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    log = [KafkaRecord(SCALE.name, 0, offset, BEGAN, "a/b", b"xx") for offset in (5, 6, 9, 10, 11)]
    assert named(files(SCALE.name, log)) == [(SCALE.name, file(5, 7)), (SCALE.name, file(9, 12))]
    monkeypatch.setattr(archive_files, "FILE_BYTES", 4)
    assert named(files(SCALE.name, log))[1:] == [(SCALE.name, file(9, 11)), (SCALE.name, file(11, 12))]


def test_partitions_and_topics_have_files_of_their_own() -> None:
    log = [KafkaRecord(SCALE.name, partition, 7, BEGAN, "a/b", b"") for partition in (0, 1)]
    made = [*files(SCALE.name, log), *files(JOURNAL.name, LOG)]
    assert named(made) == [
        (SCALE.name, file(7, 8)), (SCALE.name, file(7, 8, 1)), (JOURNAL.name, file(0, len(LOG))),
    ]  # fmt: skip
    assert ends(named(made)) == {(SCALE.name, 0): 8, (SCALE.name, 1): 8, (JOURNAL.name, 0): len(LOG)}


def test_each_file_is_written_before_the_next_one_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    log = [KafkaRecord(SCALE.name, partition, 7, BEGAN, "a/b", b"") for partition in range(3)]
    made, written, recorded = files(SCALE.name, log), list[str](), list[object]()

    def rows_of_batch(**_: object) -> Iterator[dict[str, object]]:
        for number, one in enumerate(made):
            assert len(written) == number
            file = one.file
            yield {
                "topic": one.topic, "day": file.day, "partition": file.partition, "start": file.start,
                "end": file.end, "content": bytearray(one.content),
            }  # fmt: skip

    monkeypatch.setattr(archive_sink, "write_once", lambda _session, _folder, name, _content: written.append(name))
    monkeypatch.setattr(archive_sink, "recorded_progress", lambda _client, _ids: {})
    monkeypatch.setattr(archive_sink, "record_progress", lambda _client, progress: recorded.append(progress))
    batch: Any = SimpleNamespace(sparkSession=None, toLocalIterator=rows_of_batch)
    archive_sink.ArchiveSink(SparkSettings(archive="/archive"), {SCALE.name: "id"}).write(batch, 0)
    assert written == [one.file.name for one in made]
    assert recorded == [{(SCALE.name, partition): 8 for partition in range(3)}]


def test_what_spark_gives_and_takes_are_batches_of_arrow() -> None:
    given = [
        {"topic": r.topic, "partition": 0, "offset": r.offset, "at": r.at, "key": r.key.encode(), "value": r.value}
        for r in LOG
    ]
    half = len(given) // 2
    batches = [pa.RecordBatch.from_pylist(part) for part in (given[:half], given[half:])]
    (batch,) = encode_files(iter(batches))
    (made,) = files(JOURNAL.name, LOG)
    assert batch.to_pylist() == [
        {
            "topic": JOURNAL.name,
            "day": DAY,
            "partition": 0,
            "start": 0,
            "end": len(LOG),
            "content": made.content,
        }
    ]


def test_a_record_that_is_none_stops_the_batch() -> None:
    broken = KafkaRecord(JOURNAL.name, 0, len(LOG), BEGAN, "a/b", b"{")
    with pytest.raises(UnreadableRecordError, match=f"0@{len(LOG)}"):
        files(JOURNAL.name, [*LOG, broken])


def test_files_are_joined_where_they_follow_on_one_another_and_are_many() -> None:
    small = {file(at, at + 1): 100 for at in range(8)}
    assert list(joinable(small, 8, ArchiveFile.precedes)) == [list(small)]
    assert list(joinable(small, 9, ArchiveFile.precedes)) == []
    apart = {one: size for one, size in small.items() if one.start != 3}
    groups = joinable(apart, 2, ArchiveFile.precedes)
    assert [[one.start for one in group] for group in groups] == [[0, 1, 2], [4, 5, 6, 7]]
    two = {file(0, 1): 1, file(0, 1, 1): 1, file(1, 2, 1): 1}
    assert [[one.partition for one in group] for group in joinable(two, 2, ArchiveFile.precedes)] == [[1, 1]]


def test_joined_files_stay_small_enough_for_the_driver() -> None:
    sizes = {file(at, at + 1): JOINED_BYTES // 3 for at in range(7)}
    sizes[file(7, 8)] = 2 * JOINED_BYTES
    groups = list(joinable(sizes, 2, ArchiveFile.precedes))
    assert [[one.start for one in group] for group in groups] == [[0, 1, 2], [3, 4, 5]]


def test_a_file_of_an_earlier_release_is_joined_with_a_new_one() -> None:
    new = pa.Table.from_pylist(rows(LOG[:2]), schema=JOURNAL_SCHEMA)
    old = new.drop_columns(["principal"])
    for tables in ((old, new), (new, old)):
        joined = pq.read_table(BytesIO(parquet(*tables)))
        assert joined.num_rows == 2 * new.num_rows
        assert joined.column("value").to_pylist() == 2 * new.column("value").to_pylist()
        assert joined.schema.names == JOURNAL_SCHEMA.names


def test_what_a_crash_left_is_what_another_file_holds() -> None:
    left = {file(0, 2), file(2, 5), file(0, 5, 1)}
    assert superseded({*left, file(0, 5)}) == {file(0, 2), file(2, 5)}
    assert superseded({*left, file(1, 3)}) == set()


def test_the_facts_of_a_history_are_those_that_counted() -> None:
    scaled = next(r for r in reversed(LOG) if b'"StreamScaled"' in (r.value or b""))
    late = KafkaRecord(JOURNAL.name, 0, len(LOG), LOG[-1].at + 1, scaled.key, scaled.value)
    found = list(facts_of(rows([*LOG, late])))
    events = Counter(
        type(e).__name__ for r in LOG for entry in decode_record(r.value or b"").entries for e in entry.events
    )
    kinds = Counter((one.kind, one.what) for one in found if one.kind != WORKFLOW)
    assert kinds == {
        (SCALED, ""): events["StreamScaled"],
        (TRANSACTION, "committed"): events["TransactionCommitted"],
        (TRANSACTION, "aborted"): events["TransactionAborted"],
    }
    assert all(kinds.values()), "the examples have all of them"


def test_a_workflow_takes_from_the_record_that_began_it_to_the_one_that_ended_it() -> None:
    began = next(r for r in LOG if b'"StreamScaleStarted"' in (r.value or b""))
    ended = next(r for r in LOG if b'"StreamScaled"' in (r.value or b"") and r.offset > began.offset)
    scales = [one for one in facts_of(rows(LOG)) if one.kind == WORKFLOW and one.what == "scale-stream"]
    assert scales[0].took_ms == ended.at - began.at and scales[0].at == ended.at


def test_rows_that_come_twice_count_once() -> None:
    once = rows(LOG)
    twice = [row for one in once for row in (one, one)]
    assert list(facts_of(twice)) == list(facts_of(once))


def test_behind_a_gap_nothing_is_known() -> None:
    gap = 5
    found = list(facts_of(rows([r for r in LOG if r.offset != gap])))
    assert (found[-1].kind, found[-1].what) == (GAP, str(gap + 1))
    assert found[:-1] == list(facts_of(rows(LOG[:gap])))


def test_workers_fold_each_partition_of_each_journal_by_itself() -> None:
    def given(id: str, partition: int) -> list[Row]:
        kept = ("offset", "entry", "appended_at", "key", "head", "value")
        return [{"id": id, "partition": partition, **{name: row[name] for name in kept}} for row in rows(LOG)]

    batches = [pa.RecordBatch.from_pylist(given(*place)) for place in (("a", 0), ("a", 1), ("b", 1))]
    found = [row for batch in fold_rows(iter(batches)) for row in batch.to_pylist()]
    one = list(facts_of(rows(LOG)))
    assert len(found) == 3 * len(one)
    assert [row["took_ms"] for row in found[: len(one)]] == [fact.took_ms for fact in one]


def test_a_record_without_a_key_is_archived() -> None:
    assert journal_rows(ArchivedRecord(0, 0, 1, "", LOG[0].value))[0]["key"] == ""


def test_a_job_begins_anew_when_files_were_joined_while_it_read() -> None:
    gone, other = Exception("o1.collect: [FAILED_READ_FILE.FILE_NOT_EXIST] a file"), Exception("o1.collect: a file")

    def job(*errors: Exception) -> str:
        left = list(errors)

        def call() -> str:
            if left:
                raise left.pop()
            return "done"

        return repeated(call)

    assert job(*[gone] * (ATTEMPTS - 1)) == "done"
    with pytest.raises(Exception, match="FILE_NOT_EXIST"):
        job(*[gone] * ATTEMPTS)
    with pytest.raises(Exception, match=r"collect: a file"):
        job(other)


def test_questions_to_an_archive_with_nothing_in_it_yet_are_answered_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLUICE_ARCHIVE", "/archive")
    monkeypatch.setattr(questions, "open_session", lambda _name, _settings: MagicMock())
    monkeypatch.setattr(archive_frames, "names", lambda _session, _folder: [])
    assert questions.main([]) == 0
    assert capsys.readouterr().out == "nothing is archived in /archive yet\n"
