"""The archive as Spark's jobs read it: its files may be joined meanwhile, so what a job has listed may be gone."""

from collections.abc import Callable
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from retention_spark.files import names

ATTEMPTS = 5
"""Files are joined once an hour: twice in a row is chance, more is something else."""

_GONE = "FAILED_READ_FILE.FILE_NOT_EXIST"

T = TypeVar("T")


def archived(session: SparkSession, folder: str, schema: str) -> DataFrame | None:
    """What is in a folder of the archive; None while nothing is."""
    return session.read.schema(schema).parquet(folder) if names(session, folder) else None


def repeated(job: Callable[[], T]) -> T:
    """What a job comes to, made anew if a file is gone; it lists the files itself, and leaves none of them cached."""
    for _ in range(ATTEMPTS - 1):
        try:
            return job()
        except Exception as error:
            if _GONE not in str(error):
                raise
    return job()
