"""Fixtures for all tests. Whatever needs processes is started only when a test asks for it."""

import os
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.effort import load_profile
from support.side_by_side import SYSTEM_OF_THEIR_OWN, SideBySide

from harness import System
from sluice_local.settings import LocalSettings

load_profile()

# Most of what a Java program of a short test does is compiling itself.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")

_RUNS_KEPT = 5
_RUN_LASTS_S = 3600


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SideBySide:
    """Part of pytest-xdist."""
    return SideBySide(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Raises UsageError if two processes could start the session's system, or a test would not run at all.

    Of tests that have the same id, processes that share the tests run only one.
    """
    ids: set[str] = set()
    for item in items:
        if item.nodeid in ids:
            raise pytest.UsageError(f"there are two tests {item.nodeid}")
        ids.add(item.nodeid)
        if "system" in getattr(item, "fixturenames", ()) and item.path.stem in SYSTEM_OF_THEIR_OWN:
            raise pytest.UsageError(f"{item.nodeid} uses the session's system: see support/side_by_side.py")


@pytest.fixture(scope="session")
def runs_folder() -> Path:
    """A folder for the systems of this run of the tests; the logs of the last few runs stay for reading."""
    runs = LocalSettings().home / "test-runs"
    runs.mkdir(parents=True, exist_ok=True)
    for old in sorted(runs.iterdir())[: -_RUNS_KEPT + 1]:
        if time.time() - old.stat().st_mtime > _RUN_LASTS_S:
            shutil.rmtree(old, ignore_errors=True)
    folder = runs / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def system(runs_folder: Path) -> Iterator[System]:
    """One whole system for all tests of the session: two segment stores, one of each service."""
    with System(runs_folder / "system") as system:
        yield system
