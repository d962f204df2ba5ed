"""Fixtures for all tests. Whatever needs processes is started only when a test asks for it."""

import os
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import settings
from support.effort import JUDGED

from harness import System
from sluice_local.settings import LocalSettings

# Where changes are judged, the same examples each time; whoever runs the tests by hand looks for new ones.
settings.register_profile("judged", derandomize=True)
if JUDGED:
    settings.load_profile("judged")

_RUNS_KEPT = 5
_RUN_LASTS_S = 3600

_ON_THE_SYSTEM = "system"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which tests stay together when several processes run them.

    All that ask for the session's system do, so that there is one; so does each file that starts a system of its own.
    """
    on_the_system = {item.path for item in items if "system" in getattr(item, "fixturenames", ())}
    for item in items:
        if item.path in on_the_system or "conformance" in item.path.parts:
            item.add_marker(pytest.mark.xdist_group(_ON_THE_SYSTEM))
        elif "integration" in item.path.parts:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


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
