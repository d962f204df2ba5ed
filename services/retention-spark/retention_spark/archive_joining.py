"""Joins small files of the archive: each batch adds one for each partition in which there was something.

The new file is there before the ones that it holds go, and its name says that it holds them; so a reader that goes by
the names reads each record once, whenever it looks, and a crash in between leaves only files to be removed. What is
joined is in order and without gaps, and stays small enough for the driver. On any file system that Spark knows.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from retention_spark.archive_files import parquet
from retention_spark.files import read, remove, sizes, write_once
from sluice.archive.layout import ArchiveFile, file_of

log = logging.getLogger(__name__)

MANY = 16
"""So many files are joined at once while their day goes on; of a day that is over, all."""

JOINED_BYTES = 32 * 1024 * 1024


def join_files(session: SparkSession, folder: str, day: str, *, is_over: bool) -> None:
    """Join the files of one day of one topic; `is_over` says that no more of them are to come."""
    found = {file: size for name, size in sizes(session, folder).items() if (file := file_of(day, name)) is not None}
    spare = superseded(found)
    for file in spare:
        remove(session, folder, file.name)
    left = {file: size for file, size in found.items() if file not in spare}
    for group in joinable(left, 2 if is_over else MANY):
        tables = [pq.read_table(BytesIO(read(session, folder, file.name))) for file in group]
        joined = ArchiveFile(group[0].partition, group[0].start, group[-1].end, day)
        write_once(session, folder, joined.name, parquet(*tables))
        for file in group:
            remove(session, folder, file.name)
        log.info("archive joined", extra={"folder": folder, "file": joined.name, "files": len(group)})


def superseded(files: Iterable[ArchiveFile]) -> set[ArchiveFile]:
    """The files whose records are all in another one; a crash left them."""
    gone: set[ArchiveFile] = set()
    last: ArchiveFile | None = None
    # The one that begins first and is longest comes first, so what holds a file comes before it.
    for file in sorted(files, key=lambda one: (one.partition, one.start, -one.end)):
        if last is not None and last.holds(file):
            gone.add(file)
        else:
            last = file
    return gone


def joinable(sizes: Mapping[ArchiveFile, int], at_least: int) -> Iterator[Sequence[ArchiveFile]]:
    """Groups of files that follow on one another, of at least so many, together not larger than `JOINED_BYTES`."""
    group: list[ArchiveFile] = []
    total = 0
    for file in sorted(sizes):
        follows = bool(group) and (group[-1].partition, group[-1].end) == (file.partition, file.start)
        if not follows or total + sizes[file] > JOINED_BYTES:
            if len(group) >= at_least:
                yield group
            group, total = [], 0
        group.append(file)
        total += sizes[file]
    if len(group) >= at_least:
        yield group
