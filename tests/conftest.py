"""Fixtures for all tests. Whatever needs processes is started only when a test asks for it."""

import gc
import os
import shutil
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.effort import load_profile
from support.log_lines import WithExtra
from support.ports import free_port
from support.side_by_side import DISTURBED, PLATFORM, SYSTEM, SideBySide, Timeline, UntilLast, put_in_order

from harness import System
from sluice_local.settings import LocalSettings

load_profile()

# Most of what a Java program of a short test does is compiling itself.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")

_RUNS_KEPT = 5
_RUN_LASTS_S = 3600

_until_last = UntilLast()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_until_last)
    config.pluginmanager.register(Timeline())


def pytest_sessionstart(session: pytest.Session) -> None:
    """The log of a failed test is where a failure elsewhere has to be explained from."""
    handler = session.config.pluginmanager.getplugin("logging-plugin").report_handler
    handler.setFormatter(WithExtra(handler.formatter))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected, and all modules, stay: looking for garbage among them takes a third of the collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SideBySide:
    """Part of pytest-xdist."""
    return SideBySide(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Raises UsageError if two processes could start the same system, or a test would not run at all.

    Of tests that have the same id, processes that share the tests run only one.
    """
    ids: set[str] = set()
    for item in items:
        if item.nodeid in ids:
            raise pytest.UsageError(f"there are two tests {item.nodeid}")
        ids.add(item.nodeid)
    put_in_order(items)


@pytest.fixture
def unused_tcp_port() -> int:
    """In place of that of pytest-asyncio, which a connection may draw before it is listened on."""
    return free_port()


@pytest.fixture(scope="session")
def unused_tcp_port_factory() -> Callable[[], int]:
    return free_port


@pytest.fixture(scope="session")
def runs_folder() -> Path:
    """A folder for the systems of this run of the tests; the logs of the last few runs stay for reading."""
    runs = LocalSettings().home / "test-runs"
    runs.mkdir(parents=True, exist_ok=True)
    for old in sorted(runs.iterdir())[: -_RUNS_KEPT + 1]:
        # Another process may remove it, too.
        with suppress(FileNotFoundError):
            if time.time() - old.stat().st_mtime > _RUN_LASTS_S:
                shutil.rmtree(old, ignore_errors=True)
    folder = runs / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def system(runs_folder: Path) -> Iterator[System]:
    """One whole system for all tests that disturb nothing: two segment stores, one of each service."""
    with _until_last.up(SYSTEM, System(runs_folder / SYSTEM)) as system:
        yield system


@pytest.fixture(scope="session")
def disturbed(runs_folder: Path) -> Iterator[System]:
    """One whole system for all tests that kill, freeze and stop: two segment stores, two of each service.

    How many of each run is for a module to say (`support.instances`). What was killed runs again at its end.
    """
    home = runs_folder / DISTURBED
    system = System(home, api_gateways=2, stream_workflows=2, cluster_managers=2, txn_managers=2)
    with _until_last.up(DISTURBED, system) as system:
        yield system


@pytest.fixture(scope="session")
def platform(runs_folder: Path) -> Iterator[System]:
    """Kafka, ZooKeeper, BookKeeper, Redis and two segment stores, without any service."""
    system = System(runs_folder / PLATFORM, api_gateways=0, stream_workflows=0, cluster_managers=0, txn_managers=0)
    with _until_last.up(PLATFORM, system) as system:
        yield system
