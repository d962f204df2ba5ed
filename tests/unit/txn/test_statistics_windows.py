"""The table of windows: what reports and progress change in it, and that it stays bounded."""

import msgspec
import pytest

from sluice.engine.partition import partition_of
from sluice.insight.statistics import (
    MINUTE_MS,
    Figures,
    Folded,
    StatisticsProgress,
    StreamStatistics,
    WindowKind,
    WindowStatistics,
)
from txn_manager.statistics.windows import Windows

PARTITIONS = 4
OF = partition_of("sc/st", PARTITIONS)
HOUR_MS = 60 * MINUTE_MS
BY = "txn-manager/1"


class Table(dict[bytes, bytes]):
    """The table, and what stands in it."""

    def facts(self) -> list[Folded]:
        return [msgspec.json.decode(value, type=Folded) for value in self.values()]

    def windows(self) -> dict[WindowKind, list[WindowStatistics]]:
        found: dict[WindowKind, list[WindowStatistics]] = {}
        for fact in self.facts():
            if isinstance(fact, WindowStatistics):
                found.setdefault(fact.window, []).append(fact)
        return found


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
def windows(table: Table) -> Windows:
    return Windows(table, PARTITIONS, 100, BY)


def report(minute: int, stream: str = "st", opened: int = 1) -> bytes:
    report = StreamStatistics("r", "t/1", minute, "sc", stream, minute, Figures(opened=opened))
    return msgspec.json.encode(report)


def progress(at: int, partition: int = OF) -> bytes:
    return msgspec.json.encode(StatisticsProgress("m", "t/1", at, partition))


def test_a_report_is_in_a_window_of_each_kind(table: Table, windows: Windows) -> None:
    for offset, minute in enumerate((0, MINUTE_MS, HOUR_MS)):
        windows.fold(report(minute), offset)
    found = {kind: [w.figures.opened for w in of] for kind, of in table.windows().items()}
    assert found == {WindowKind.MINUTE: [1, 1, 1], WindowKind.HOUR: [2, 1], WindowKind.DAY: [3]}
    assert all(key.decode().startswith("sc/st ") for key in table)
    assert {fact.by for fact in table.facts()} == {BY}


def test_the_last_mark_of_a_partition_stands_in_the_table(table: Table, windows: Windows) -> None:
    windows.fold(progress(10), 0)
    windows.fold(progress(20), 1)
    assert table == {f"progress {OF}".encode(): progress(20)}


def test_windows_expire_by_marks_of_their_own_partition(table: Table, windows: Windows) -> None:
    windows.fold(report(0), 0)
    last = WindowKind.MINUTE.retained * MINUTE_MS
    windows.fold(progress(last, (OF + 1) % PARTITIONS), 1)
    windows.fold(progress(last - MINUTE_MS), 2)
    assert set(table.windows()) == set(WindowKind)
    windows.fold(progress(last), 3)
    assert set(table.windows()) == {WindowKind.HOUR, WindowKind.DAY}
    windows.fold(progress(WindowKind.DAY.retained * WindowKind.DAY.length_ms), 4)
    assert table.windows() == {}


def test_a_full_table_takes_no_more_windows_and_keeps_counting_in_those_it_has(table: Table) -> None:
    windows = Windows(table, PARTITIONS, 3, BY)
    windows.fold(report(0), 0)
    windows.fold(report(0, "other"), 0)
    windows.fold(report(0), 1)
    assert [(w.stream, w.figures.opened) for w in table.facts() if isinstance(w, WindowStatistics)] == [("st", 2)] * 3


def test_what_is_no_report_is_passed_over(table: Table, windows: Windows) -> None:
    for value in (b"", b"{", b"\xff", b'{"type":"Unknown"}'):
        windows.fold(value, 0)
    assert not table
