"""The core, the command line and the examples depend on what they import; the others test it themselves."""

from pathlib import Path

import pytest
from support.dependencies import Dependencies, check

CLONE = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("folder", "package"),
    [
        ("shared", "sluice"),
        ("cli", "sluice_cli"),
        ("examples/at_least_once", "at_least_once"),
        ("examples/distributed_ingest", "distributed_ingest"),
    ],
)
def test_a_distribution_depends_on_what_it_imports_and_no_more(folder: str, package: str) -> None:
    assert check(CLONE / folder, package) == Dependencies(unused=set(), missing=set())
