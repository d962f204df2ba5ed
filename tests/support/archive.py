"""The archive as retention-spark's workers and driver would have written it, without Spark."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from retention_spark.archive_files import FileContent, files_of
from sluice.archive.layout import id_folder
from sluice.archive.rows import ArchivedRecord
from sluice.lookback.source import KafkaRecord


def archived(record: KafkaRecord) -> ArchivedRecord:
    return ArchivedRecord(record.partition, record.offset, record.at, record.key, record.value)


def files(topic: str, records: Iterable[KafkaRecord]) -> list[FileContent]:
    """The files of records in the order of a task."""
    return list(files_of((topic, archived(record)) for record in records))


def write(target: Path, id: str, made: Sequence[FileContent]) -> list[Path]:
    """Put files where the driver puts them."""
    paths = [Path(id_folder(str(target), one.topic, id)) / one.file.path for one in made]
    for path, one in zip(paths, made, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(one.content)
    return paths
