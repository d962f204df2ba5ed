"""Reads the archive without Spark, with pyarrow: from a folder, or an object store that pyarrow knows.

Files may be joined while they are read: one that is gone is looked for again, under the name it has become part of.
Blocking.
"""

from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from sluice.archive.layout import ArchiveFile, Piece, day_of, file_of, id_folder, pieces
from sluice.archive.rows import ArchivedRecord, Row, records_of
from sluice.security.hiding import shown

_ATTEMPTS = 5
"""Files are joined once an hour: twice in a row is chance, more is something else."""

_COLUMNS = {
    True: ["partition", "offset", "entry", "appended_at", "key", "head", "value"],
    False: ["partition", "offset", "appended_at", "key", "value"],
}
_ROWS = 2000


class ArchiveUnreadableError(Exception):
    """The target cannot be read, or what is there is no archive."""


class Archive:
    """One topic's part of the archive at `target`: a path, or a URL as pyarrow or Hadoop write it. `id` is the topic's.

    `splits_entries` says that the topic is the journal, which has a row for each entry. All methods raise
    ArchiveUnreadableError.
    """

    def __init__(self, target: str, topic: str, id: str, *, splits_entries: bool) -> None:
        self._splits_entries = splits_entries
        try:
            self._fs, root = opened(target)
        except (pa.ArrowException, OSError) as error:
            raise ArchiveUnreadableError(f"{shown(target)}: {error}") from error
        self._folder = id_folder(root, topic, id)
        self._files: dict[int, list[ArchiveFile]] | None = None

    def files(self, partition: int) -> list[ArchiveFile]:
        """The files of a partition, as they were when this was first asked for."""
        if self._files is None:
            self._files = self._list()
        return self._files.get(partition, [])

    def read(self, partition: int, start: int, end: int) -> Iterator[ArchivedRecord]:
        """The archived records at [start, end), in order, each once."""
        following, attempts = start, 0
        while (piece := next(pieces(self.files(partition), following, end), None)) is not None:
            try:
                for record in self._records(piece):
                    following, attempts = record.offset + 1, 0
                    yield record
            except FileNotFoundError as error:
                attempts += 1
                if attempts == _ATTEMPTS:
                    raise ArchiveUnreadableError(f"{self._folder}: {error}") from error
                self._files = None
            except (pa.ArrowException, OSError) as error:
                raise ArchiveUnreadableError(f"{self._folder}/{piece.file.path}: {error}") from error
            else:
                following = piece.end

    def offset_at(self, partition: int, at_ms: int) -> int | None:
        """The first archived offset that was appended at `at_ms` or later; None if there is none."""
        day = day_of(at_ms)
        for file in sorted(self.files(partition), key=lambda one: one.start):
            if file.day > day:
                return file.start
            if file.day == day:
                before = takewhile(lambda record: record.at < at_ms, self.read(partition, file.start, file.end))
                following = max((record.offset + 1 for record in before), default=file.start)
                if following < file.end:
                    return following
        return None

    def _list(self) -> dict[int, list[ArchiveFile]]:
        selector = fs.FileSelector(self._folder, allow_not_found=True, recursive=True)
        found: dict[int, list[ArchiveFile]] = {}
        try:
            listed = self._fs.get_file_info(selector)
        except (pa.ArrowException, OSError) as error:
            raise ArchiveUnreadableError(f"{self._folder}: {error}") from error
        for info in listed:
            day = info.path.rpartition("/")[0].rpartition("/day=")[2]
            if info.is_file and (file := file_of(day, info.base_name)) is not None:
                found.setdefault(file.partition, []).append(file)
        return found

    def _records(self, piece: Piece) -> Iterator[ArchivedRecord]:
        rows = self._rows(piece)
        if self._splits_entries:
            yield from records_of(rows)
        else:
            yield from (
                ArchivedRecord(r["partition"], r["offset"], r["appended_at"], r["key"], r["value"]) for r in rows
            )

    def _rows(self, piece: Piece) -> Iterator[Row]:
        with self._fs.open_input_file(f"{self._folder}/{piece.file.path}") as opened:
            for batch in pq.ParquetFile(opened).iter_batches(_ROWS, columns=_COLUMNS[self._splits_entries]):
                at = batch.schema.get_field_index("appended_at")
                plain = batch.set_column(at, "appended_at", batch.column(at).cast(pa.int64()))
                yield from (row for row in plain.to_pylist() if piece.start <= row["offset"] < piece.end)


def opened(target: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or URL, and what it calls the folder. Raises pyarrow.ArrowException, OSError."""
    if "://" not in target:
        return fs.LocalFileSystem(), str(Path(target).absolute())
    # Hadoop's name for what pyarrow calls s3.
    system, folder = fs.FileSystem.from_uri(target.replace("s3a://", "s3://", 1))
    return system, str(folder)
