"""Keeps the history in few files: each batch adds one, and nobody would want to read a day of them.

Files of a folder that are old enough that no batch still writes them become one. The new file is there before the old
ones go, so a reader may find rows twice, which have the same ids, and never misses any. Blocking; for local folders.
"""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

log = logging.getLogger(__name__)

OLD_S = 600.0
MANY = 16


def compact(folder: Path, clock: Callable[[], float] = time.time) -> int:
    """Return how many files have become fewer; `clock` in epoch seconds."""
    gone = 0
    for leaf in sorted(folder.glob("kind=*/day=*")):
        old = [file for file in sorted(leaf.glob("*.parquet")) if file.stat().st_mtime < clock() - OLD_S]
        if len(old) >= MANY:
            _join(leaf, old)
            gone += len(old)
    return gone


def _join(leaf: Path, files: list[Path]) -> None:
    rows = pa.concat_tables(pq.read_table(file, partitioning=None) for file in files)
    unfinished = leaf / f".{uuid4().hex}"
    pq.write_table(rows, unfinished, compression="snappy")
    unfinished.rename(leaf / f"joined-{uuid4().hex}.parquet")
    for file in files:
        file.unlink()
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    log.info("history joined", extra={"folder": str(leaf), "files": len(files), "rows": rows.num_rows})
