"""Where the archive's files are written: to any file system that Spark knows, by the driver.

Exactly once by names: a file is named by what it holds (`sluice.archive.layout`) and written once, whole or not at all.
A batch that runs again, because the process ended before Spark's checkpoint had it, finds its files there, or writes
those that are missing. Spark's own file sink was not taken: it says in a log of its own which files count, which
only Spark reads and which joining files would break. How far the archive is gets known only once the files are there.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from retention_spark.archive_files import COLUMNS, INPUT, FileContent, encode_files
from retention_spark.archive_joining import join_files
from retention_spark.files import names, write_once
from retention_spark.settings import SparkSettings
from sluice.archive.layout import ArchiveFile, id_folder
from sluice.engine.crash_points import CrashPoints
from sluice.kafka.archive_progress import Progress, record_progress, recorded_progress


def contents(records: DataFrame) -> DataFrame:
    """Records of Kafka's source as files to write."""
    columns = ("topic", "partition", "offset", "unix_millis(timestamp) at", "key", "value")
    assert tuple(column.rpartition(" ")[2] for column in columns) == INPUT
    return records.selectExpr(*columns).mapInArrow(encode_files, COLUMNS)


class ArchiveSink:
    """What `foreachBatch` calls; `ids` are the topics' ids by name. Belongs to the query's thread in the driver."""

    def __init__(self, settings: SparkSettings, ids: Mapping[str, str]) -> None:
        self._target = settings.archive
        self._ids = ids
        self._client = settings.kafka_client()
        self._crash_points = CrashPoints(settings.crash_at)
        self._progress: Progress | None = None
        self._days: set[tuple[str, str]] | None = None
        self._join_s = settings.archive_join_s
        self._join_at = time.monotonic() + self._join_s

    def write(self, batch: DataFrame, _number: int) -> None:
        """Raises when not all could be written, or that could not be said, so that the batch runs again.

        Each file is written as it comes: the driver has no memory for those of a whole batch.
        """
        session = batch.sparkSession
        # Spark has all batches before this one in its checkpoint: none whose files are joined here will run again.
        if time.monotonic() >= self._join_at:
            self._join(session)
        written: list[tuple[str, ArchiveFile]] = []
        for one in map(_content, batch.toLocalIterator(prefetchPartitions=True)):
            folder = f"{id_folder(self._target, one.topic, self._ids[one.topic])}/day={one.file.day}"
            write_once(session, folder, one.file.name, one.content)
            self._crash_points.passed("archive-file-written")
            written.append((one.topic, one.file))
        if not written:
            return
        self._record(written)
        if self._days is not None:
            self._days |= {(topic, file.day) for topic, file in written}

    def _record(self, written: Iterable[tuple[str, ArchiveFile]]) -> None:
        """Say how far each partition is: also those of which there is nothing new, for Kafka forgets."""
        if self._progress is None:
            self._progress = recorded_progress(self._client, self._ids)
        self._progress |= ends(written)
        record_progress(self._client, self._progress)

    def _join(self, session: SparkSession) -> None:
        """Join the files of days that have got some, at first of all; the newest comes once more when it is over."""
        days = self._all_days(session) if self._days is None else self._days
        newest = max((day for _, day in days), default="")
        for topic, day in sorted(days):
            folder = f"{id_folder(self._target, topic, self._ids[topic])}/day={day}"
            join_files(session, folder, day, is_over=day < newest)
        self._days = {(topic, day) for topic, day in days if day == newest}
        self._join_at = time.monotonic() + self._join_s

    def _all_days(self, session: SparkSession) -> set[tuple[str, str]]:
        return {
            (topic, name.removeprefix("day="))
            for topic, id in self._ids.items()
            for name in names(session, id_folder(self._target, topic, id))
            if name.startswith("day=")
        }


def ends(written: Iterable[tuple[str, ArchiveFile]]) -> Progress:
    """By topic and partition where the last of the files ends; each is given with its topic."""
    progress: Progress = {}
    for topic, file in written:
        partition = topic, file.partition
        progress[partition] = max(file.end, progress.get(partition, 0))
    return progress


def _content(row: Any) -> FileContent:
    file = ArchiveFile(row["partition"], row["start"], row["end"], row["day"])
    return FileContent(row["topic"], file, bytes(row["content"]))
