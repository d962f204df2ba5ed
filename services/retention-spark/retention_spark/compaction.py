"""Keeps the history short, and in few files: each batch adds one, and a day of them is slow to read.

A row may be in two files: a crash while they were joined, or a batch that ran again, has left it there. It has one id,
and readers go by that. A file that cannot be read is set aside under another name. Blocking.
"""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import blake2b

from pyspark.sql import SparkSession

from retention_spark.files import names, remove, rename, sizes
from retention_spark.joining import MANY, UnreadableFileError, join, joinable

log = logging.getLogger(__name__)

DAY_S = 24 * 3600


def compact(session: SparkSession, history: str, kept_days: int, clock: Callable[[], float] = time.time) -> None:
    """Join what is many, day by day; days that are longer ago than so many go. `clock` in epoch seconds."""
    first = f"day={datetime.fromtimestamp(clock() - kept_days * DAY_S, UTC):%Y-%m-%d}"
    for kind in _partitions(session, history, "kind="):
        folder = f"{history.rstrip('/')}/{kind}"
        for day in _partitions(session, folder, "day="):
            if day >= first:
                _join(session, f"{folder}/{day}")
            else:
                remove(session, folder, day)
                log.info("history dropped", extra={"folder": f"{folder}/{day}"})


def _partitions(session: SparkSession, folder: str, prefix: str) -> list[str]:
    return sorted(name for name in names(session, folder) if name.startswith(prefix))


def _join(session: SparkSession, folder: str) -> None:
    files = {name: size for name, size in sorted(sizes(session, folder).items()) if name.endswith(".parquet")}
    for group in joinable(files, MANY, lambda _before, _file: True):
        id = blake2b("\n".join(group).encode(), digest_size=16).hexdigest()
        joined = f"joined-{id}.parquet"
        try:
            join(session, folder, group, joined)
        except UnreadableFileError as error:
            rename(session, folder, error.name, f"{error.name}.unreadable")
            log.warning("history cannot be read", extra={"error": str(error)})
        else:
            log.info("history joined", extra={"folder": folder, "file": joined, "files": len(group)})
