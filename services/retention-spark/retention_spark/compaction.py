"""Keeps the history short, and in few files: each batch adds one, and a day of them is slow to read.

Files of a folder that are old enough that no batch still writes them become one. The new file is there before the old
ones go, so a reader may find rows twice, which have the same ids, and never misses any. What cannot be read is set
aside under another name. Blocking; for local folders.
"""

import logging
import os
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

log = logging.getLogger(__name__)

OLD_S = 600.0
DAY_S = 24 * 3600
MANY = 16


def compact(folder: Path, kept_days: int, clock: Callable[[], float] = time.time) -> int:
    """Return how many files have become fewer; days that are longer ago than so many go. `clock` in epoch seconds."""
    gone = 0
    first = f"day={datetime.fromtimestamp(clock() - kept_days * DAY_S, UTC):%Y-%m-%d}"
    for leaf in sorted(folder.glob("kind=*/day=*")):
        if leaf.name < first:
            shutil.rmtree(leaf)
            log.info("history dropped", extra={"folder": str(leaf)})
            continue
        old = [file for file in sorted(leaf.glob("*.parquet")) if file.stat().st_mtime < clock() - OLD_S]
        if len(old) >= MANY:
            _join(leaf, old)
            gone += len(old)
    return gone


def _join(leaf: Path, files: list[Path]) -> None:
    tables = [table for file in files if (table := _read(file)) is not None]
    if not tables:
        return
    rows = pa.concat_tables(tables)
    unfinished = leaf / f".{uuid4().hex}"
    with unfinished.open("wb") as written:
        pq.write_table(rows, written, compression="snappy")
        written.flush()
        os.fsync(written.fileno())
    unfinished.rename(leaf / f"joined-{uuid4().hex}.parquet")
    for file in files:
        file.unlink(missing_ok=True)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    log.info("history joined", extra={"folder": str(leaf), "files": len(files), "rows": rows.num_rows})


def _read(file: Path) -> pa.Table | None:
    try:
        return pq.read_table(file, partitioning=None)
    except pa.ArrowInvalid as error:
        log.warning("history cannot be read", extra={"file": str(file), "error": str(error)})
        file.rename(file.with_suffix(".unreadable"))
        return None
