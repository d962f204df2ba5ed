"""What Spark's workers do for the archive: the records of a batch become the contents of files.

A task of Spark's source for Kafka has one partition of a topic, in the order of offsets. A file ends where its day or
its partition does, where offsets leave some out, or where it is large enough. What a file is named by follows from the
records alone, so a batch that runs again makes the same files.
"""

from collections.abc import Iterable, Iterator
from io import BytesIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from sluice.archive.layout import ArchiveFile, day_of
from sluice.archive.rows import JOURNAL_SCHEMA, RECORD_SCHEMA, ArchivedRecord, Row, journal_rows, record_rows
from sluice.kafka.topics import JOURNAL

INPUT = ("topic", "partition", "offset", "at", "key", "value")
"""What a task is given of each record; `at` epoch ms."""

COLUMNS = "topic string, day string, partition int, start bigint, `end` bigint, content binary"

FILE_BYTES = 32 * 1024 * 1024
"""Of records' values: they become a tenth of it, or so."""


class FileContent(msgspec.Struct, frozen=True):
    """A file of a topic, to be written."""

    topic: str
    file: ArchiveFile
    content: bytes


class _Open:
    """A file while records are added to it."""

    def __init__(self, topic: str, first: ArchivedRecord) -> None:
        self.topic = topic
        self.start = self.end = first.offset
        self._partition = first.partition
        self._day = day_of(first.at)
        self._bytes = 0
        self._rows: list[Row] = []

    def takes(self, topic: str, record: ArchivedRecord) -> bool:
        """Whether the record belongs to this file."""
        follows = (topic, record.partition, record.offset) == (self.topic, self._partition, self.end)
        return follows and self._bytes < FILE_BYTES and day_of(record.at) == self._day

    def add(self, record: ArchivedRecord) -> None:
        self._rows += journal_rows(record) if self.topic == JOURNAL.name else record_rows(record)
        self._bytes += len(record.value or b"")
        self.end = record.offset + 1

    def closed(self) -> FileContent:
        schema = JOURNAL_SCHEMA if self.topic == JOURNAL.name else RECORD_SCHEMA
        file = ArchiveFile(self._partition, self.start, self.end, self._day)
        return FileContent(self.topic, file, parquet(pa.Table.from_pylist(self._rows, schema=schema)))


def parquet(*tables: pa.Table) -> bytes:
    """Tables as one file; a column that one of an earlier release lacks is null there."""
    file = BytesIO()
    pq.write_table(pa.concat_tables(tables, promote_options="default"), file, compression="zstd")
    return file.getvalue()


def files_of(records: Iterable[tuple[str, ArchivedRecord]]) -> Iterator[FileContent]:
    """The files of a task, each once its records are complete. Raises UnreadableRecordError."""
    file: _Open | None = None
    for topic, record in records:
        if file is None or not file.takes(topic, record):
            if file is not None:
                yield file.closed()
            file = _Open(topic, record)
        file.add(record)
    if file is not None:
        yield file.closed()


def encode_files(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What Spark sends to its workers: records, as `INPUT` has them, become files, as `COLUMNS` has them."""
    for made in files_of(_records(batches)):
        file = made.file
        columns: dict[str, list[object]] = {
            "topic": [made.topic],
            "day": [file.day],
            "partition": [file.partition],
            "start": [file.start],
            "end": [file.end],
            "content": [made.content],
        }
        types = (pa.string(), pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.binary())
        arrays = [pa.array(values, type=type) for values, type in zip(columns.values(), types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _records(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, ArchivedRecord]]:
    for batch in batches:
        for row in batch.to_pylist():
            key = (row["key"] or b"").decode(errors="backslashreplace")
            yield row["topic"], ArchivedRecord(row["partition"], row["offset"], row["at"], key, row["value"])
