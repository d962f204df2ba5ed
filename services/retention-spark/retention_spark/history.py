"""The history of decisions as operators read it: the last ones of a stream, from the Parquet table, without Spark.

While files are joined a row may be in two of them, with one id. Days are read from the newest one back, and no more of
them than it takes. What was decided at the same time stays in the order in which it was.
"""

import contextlib
import logging
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSelector

from sluice.archive.reading import opened
from sluice.domain.stream.commands import DecisionKind
from sluice.policies.reported import HistoryRow

log = logging.getLogger(__name__)

ATTEMPTS = 5
"""Files are joined seldom: twice in a row is chance, more is something else."""


def last_decisions(folder: str, scope: str, stream: str, count: int) -> list[HistoryRow]:
    """The newest decisions on a stream, the oldest of them first."""
    found: dict[str, HistoryRow] = {}
    history = _History(folder)
    for day in sorted({day for kind in DecisionKind for day in history.days(kind)}, reverse=True):
        for kind in DecisionKind:
            _add(found, history.rows(kind, day, scope, stream))
        if len(found) >= count:
            break
    return sorted(found.values(), key=_time)[-count:]


def decisions_since(folder: str, scope: str, stream: str, kind: DecisionKind, since: int) -> list[HistoryRow]:
    """All decisions of a kind on a stream that were made at `since` (epoch ms) or later, by time."""
    found: dict[str, HistoryRow] = {}
    first = f"day={datetime.fromtimestamp(since / 1000, UTC):%Y-%m-%d}"
    history = _History(folder)
    for day in history.days(kind):
        if day >= first:
            _add(found, history.rows(kind, day, scope, stream))
    return sorted((row for row in found.values() if row.at >= since), key=_time)


def _add(found: dict[str, HistoryRow], rows: list[HistoryRow]) -> None:
    for row in rows:
        found.setdefault(row.id, row)


def _time(row: HistoryRow) -> tuple[int, str]:
    return row.at, row.kind


class _History:
    """The table in a folder, or below a URL as Hadoop writes it."""

    def __init__(self, folder: str) -> None:
        self._files, self._root = opened(folder)

    def days(self, kind: DecisionKind) -> list[str]:
        """The folders of days, as they are called, from the first on."""
        return [name for name in self._names(f"kind={kind.value}") if name.startswith("day=")]

    def rows(self, kind: DecisionKind, day: str, scope: str, stream: str) -> list[HistoryRow]:
        """The rows of a day; read again if files were joined meanwhile."""
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(FileNotFoundError):
                return list(self._rows(kind, day, scope, stream))
        return list(self._rows(kind, day, scope, stream))

    def _rows(self, kind: DecisionKind, day: str, scope: str, stream: str) -> Iterator[HistoryRow]:
        columns = [name for name in HistoryRow.__struct_fields__ if name != "kind"]
        wanted = [("scope", "=", scope), ("stream", "=", stream)]
        folder = f"kind={kind.value}/{day}"
        for name in self._names(folder):
            if not name.endswith(".parquet"):
                continue
            file = f"{self._root}/{folder}/{name}"
            try:
                table = pq.read_table(file, columns=columns, filters=wanted, partitioning=None, filesystem=self._files)
            except pa.ArrowInvalid as error:
                # The machine went down while it was written: the history lacks its decisions, and has the others.
                log.warning("cannot read %s: %s", file, error)
                continue
            for row in table.to_pylist():
                yield msgspec.convert({**row, "kind": kind.value}, HistoryRow)

    def _names(self, folder: str) -> list[str]:
        found = self._files.get_file_info(FileSelector(f"{self._root}/{folder}", allow_not_found=True))
        return sorted(one.base_name for one in found)


def line_of(row: HistoryRow) -> str:
    """One decision, for operators."""
    at = datetime.fromtimestamp(row.at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{at}  {row.kind:9}  {row.code:16}  {row.reason}"
