"""Joins small files of the archive: each batch adds one for each partition in which there was something.

The name of the new file says that it holds the others; so a reader that goes by the names reads each record once,
whenever it looks, and what a crash has left is known by its name. What is joined is in order and without gaps.
"""

import logging
from collections.abc import Iterable

from pyspark.sql import SparkSession

from retention_spark.files import remove, sizes
from retention_spark.joining import MANY, join, joinable
from sluice.archive.layout import ArchiveFile, file_of

log = logging.getLogger(__name__)


def join_files(session: SparkSession, folder: str, day: str, *, is_over: bool) -> None:
    """Join the files of one day of one topic; if that `is_over`, no more of them are to come, and all are joined."""
    found = {file: size for name, size in sizes(session, folder).items() if (file := file_of(day, name)) is not None}
    spare = superseded(found)
    for file in spare:
        remove(session, folder, file.name)
    left = {file: found[file] for file in sorted(found) if file not in spare}
    for group in joinable(left, 2 if is_over else MANY, ArchiveFile.precedes):
        joined = ArchiveFile(group[0].partition, group[0].start, group[-1].end, day)
        join(session, folder, [file.name for file in group], joined.name)
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
