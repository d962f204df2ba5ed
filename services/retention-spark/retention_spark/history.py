"""The history of decisions as operators read it: the last ones of a stream, from the Parquet table.

A batch that ran again has written its rows again; they have the same ids. Days are read from the newest one back, and
no more of them than it takes. What was decided at the same time stays in the order in which it was.
"""

import contextlib
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from sluice.domain.stream.commands import DecisionKind
from sluice.policies.reported import HistoryRow

log = logging.getLogger(__name__)

ATTEMPTS = 5
"""Files are joined seldom: twice in a row is chance, more is something else."""


def last_decisions(folder: str, scope: str, stream: str, count: int) -> list[HistoryRow]:
    """The newest decisions on a stream, the oldest of them first."""
    found: dict[str, HistoryRow] = {}
    for day in sorted({leaf.name for leaf in Path(folder).glob("kind=*/day=*")}, reverse=True):
        _add(found, _rows_of(Path(folder), "*", day, scope, stream))
        if len(found) >= count:
            break
    return sorted(found.values(), key=_time)[-count:]


def decisions_since(folder: str, scope: str, stream: str, kind: DecisionKind, since: int) -> list[HistoryRow]:
    """All decisions of a kind on a stream that were made at `since` (epoch ms) or later, by time."""
    found: dict[str, HistoryRow] = {}
    first = f"day={datetime.fromtimestamp(since / 1000, UTC):%Y-%m-%d}"
    for day in sorted(leaf.name for leaf in Path(folder).glob(f"kind={kind.value}/day=*")):
        if day >= first:
            _add(found, _rows_of(Path(folder), kind.value, day, scope, stream))
    return sorted((row for row in found.values() if row.at >= since), key=_time)


def _add(found: dict[str, HistoryRow], rows: list[HistoryRow]) -> None:
    for row in rows:
        found.setdefault(row.id, row)


def _time(row: HistoryRow) -> tuple[int, str]:
    return row.at, row.kind


def _rows_of(folder: Path, kind: str, day: str, scope: str, stream: str) -> list[HistoryRow]:
    """The rows of a day; read again if files were joined meanwhile."""
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(FileNotFoundError):
            return list(_rows(folder, kind, day, scope, stream))
    return list(_rows(folder, kind, day, scope, stream))


def _rows(folder: Path, kind: str, day: str, scope: str, stream: str) -> Iterator[HistoryRow]:
    columns = [name for name in HistoryRow.__struct_fields__ if name != "kind"]
    wanted = [("scope", "=", scope), ("stream", "=", stream)]
    for file in sorted(folder.glob(f"kind={kind}/{day}/*.parquet")):
        try:
            table = pq.read_table(file, columns=columns, filters=wanted, partitioning=None)
        except pa.ArrowInvalid as error:
            # The machine went down while it was written: the history lacks its decisions, and has the others.
            log.warning("cannot read %s: %s", file, error)
            continue
        its_kind = file.parent.parent.name.removeprefix("kind=")
        for row in table.to_pylist():
            yield msgspec.convert({**row, "kind": its_kind}, HistoryRow)


def line_of(row: HistoryRow) -> str:
    """One decision, for operators."""
    at = datetime.fromtimestamp(row.at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{at}  {row.kind:9}  {row.code:16}  {row.reason}"
