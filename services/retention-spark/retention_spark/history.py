"""The history of decisions as people read it: the last ones of a stream, from the Parquet table.

A batch that ran again has written its rows again; they have the same ids. Days are read from the newest one back, and
no more of them than it takes.
"""

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow.compute as pc
import pyarrow.parquet as pq

from retention_spark.deciding import HistoryRow

ATTEMPTS = 5
"""Files are joined seldom: twice in a row is chance, more is something else."""


def last_decisions(folder: str, scope: str, stream: str, count: int) -> list[HistoryRow]:
    """The newest decisions on a stream, the oldest of them first."""
    found: dict[str, HistoryRow] = {}
    for day in sorted({leaf.name for leaf in Path(folder).glob("kind=*/day=*")}, reverse=True):
        found.update((row.id, row) for row in _rows_of(Path(folder), day, scope, stream))
        if len(found) >= count:
            break
    return sorted(found.values(), key=lambda row: (row.at, row.kind, row.id))[-count:]


def _rows_of(folder: Path, day: str, scope: str, stream: str) -> list[HistoryRow]:
    """The rows of a day; read again if files were joined meanwhile."""
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(FileNotFoundError):
            return list(_rows(folder, day, scope, stream))
    return list(_rows(folder, day, scope, stream))


def _rows(folder: Path, day: str, scope: str, stream: str) -> Iterator[HistoryRow]:
    columns = [name for name in HistoryRow.__struct_fields__ if name != "kind"]
    for file in sorted(folder.glob(f"kind=*/{day}/*.parquet")):
        table = pq.read_table(file, columns=columns, partitioning=None)
        wanted = pc.and_(pc.equal(table["scope"], scope), pc.equal(table["stream"], stream))
        kind = file.parent.parent.name.removeprefix("kind=")
        for row in table.filter(wanted).to_pylist():
            yield msgspec.convert({**row, "kind": kind}, HistoryRow)


def line_of(row: HistoryRow) -> str:
    """One decision, for people."""
    at = datetime.fromtimestamp(row.at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{at}  {row.kind:9}  {row.code:16}  {row.reason}"
