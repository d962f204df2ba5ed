"""Makes one file of several small ones, in a folder of any file system that Spark knows.

The new file is there before those that it holds go: a reader may find rows twice, and never misses any. A crash in
between leaves files to be joined again, or removed. A joined file stays small enough for the driver. Blocking.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from retention_spark.archive_files import parquet
from retention_spark.files import DamagedFileError, read, remove, write_once

MANY = 16
"""So many files are joined at once while more of them are to come."""

JOINED_BYTES = 32 * 1024 * 1024

F = TypeVar("F")


class UnreadableFileError(Exception):
    """What a file of that name holds is no Parquet: the machine went down, say, while it was written."""

    def __init__(self, folder: str, name: str, why: str) -> None:
        super().__init__(f"{folder}/{name}: {why}")
        self.name = name


def joinable(sizes: Mapping[F, int], at_least: int, precedes: Callable[[F, F], bool]) -> Iterator[Sequence[F]]:
    """Groups of at least so many files, together not larger than `JOINED_BYTES`.

    `sizes` has the files in their order with their bytes; `precedes` says whether one may come before another one in a
    group.
    """
    group: list[F] = []
    total = 0
    for file, size in sizes.items():
        if group and (not precedes(group[-1], file) or total + size > JOINED_BYTES):
            if len(group) >= at_least:
                yield group
            group, total = [], 0
        group.append(file)
        total += size
    if len(group) >= at_least:
        yield group


def join(session: SparkSession, folder: str, files: Sequence[str], joined: str) -> None:
    """Make one file of these. Raises UnreadableFileError, and then has changed nothing."""
    tables = [_table(session, folder, name) for name in files]
    write_once(session, folder, joined, parquet(*tables))
    for name in files:
        remove(session, folder, name)


def _table(session: SparkSession, folder: str, name: str) -> pa.Table:
    try:
        return pq.read_table(BytesIO(read(session, folder, name)))
    except (pa.ArrowInvalid, DamagedFileError) as error:
        raise UnreadableFileError(folder, name, f"{error}") from error
