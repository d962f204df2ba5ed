"""docs/differences.md against the cases: every difference on purpose is there, for the reason its case gives."""

import re
from pathlib import Path

from conformance.table import CASES

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"


def rows() -> list[list[str]]:
    """The cells of every line of a table, without heads and rules."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "|---" not in line]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[0] != "subject"]


def named_in(row: list[str]) -> set[str]:
    """The cases that the last cell of a row names."""
    return set(re.findall(r"`([a-z_]+-\w+)`", row[-1]))


def reasons() -> set[tuple[str, str]]:
    """(case, reason) for whatever differs, or cannot be tried on the original."""
    differing = {(case.name, step.why) for case in CASES for step in case.differences}
    return differing | {(case.name, case.peer_not_called) for case in CASES if case.peer_not_called}


def test_every_difference_is_listed_with_its_reason() -> None:
    listed = {(name, cell) for row in rows() for name in named_in(row) for cell in row[1:-1]}
    assert reasons() - listed == set(), "not in docs/differences.md, or with another reason"


def test_every_case_is_listed_once() -> None:
    listed = [name for row in rows() for name in named_in(row)]
    assert sorted(listed) == sorted({name for name, _ in reasons()})


def test_the_tables_are_whole() -> None:
    found = rows()
    assert len(found) > 40
    for row in found:
        assert len(row) in (4, 5), row
        assert all(row[:3]), row
