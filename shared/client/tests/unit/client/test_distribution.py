"""The distribution by itself: what it depends on."""

from pathlib import Path

from support.dependencies import Dependencies, check

PROJECT = Path(__file__).parents[3]


def test_the_distribution_depends_on_what_it_imports_and_no_more() -> None:
    assert check(PROJECT, "sluice_client") == Dependencies(unused=set(), missing=set())
