"""How processes share the tests: what is for one of them stands in a unit, and units that take long come first.

What asks for a system that many files use stays together, so that there is one of it; so does what asks for containers.
Otherwise a file is a unit. Much of an integration test is waiting, for a lease to run out or a process to come back;
three of them take little longer than one.

A process is given its next unit when two tests of the one before are left. So a unit ends with short ones: what it has
been given waits for them, whoever else has nothing to do.

A system that nothing uses any more takes a fifth of a processor all the same: it ends with the last test of its unit.
"""

import os
import time
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path, PurePath
from typing import TypeVar

import pytest
from xdist.scheduler import LoadScopeScheduling

T = TypeVar("T")

SYSTEM, DISTURBED, CONTAINERS, PLATFORM, PORTS = "system", "disturbed", "containers", "platform", "ports"
SHARED = (SYSTEM, DISTURBED, PLATFORM)
"""Units whose tests share a system, from a fixture of the same name; no file of `integration` in another unit may ask
for it."""

_UNITS = {
    "test_crash_points": DISTURBED,
    "test_faults": DISTURBED,
    "test_feed": DISTURBED,
    "test_gateways_in_zookeeper": DISTURBED,
    "test_leases": DISTURBED,
    "test_page_faults": DISTURBED,
    "test_schema_registry": DISTURBED,
    "test_several_gateways": DISTURBED,
    "test_transactions_faults": DISTURBED,
    "test_platform": PLATFORM,
    "test_segmentstore": PLATFORM,
}
"""The files of `integration` that share another system than the session's."""
_ON_THEIR_OWN = (
    "test_retention_spark",
    "test_scaling_and_retention",
    "test_secured_system",
    "test_coordination",
    "test_chaos",
    "test_several_stores",
    "test_kafka_access",
    "test_delegation_tokens",
    "test_archive",
    "test_spark_cluster",
    "test_backup",
    "test_snapshots",
    "test_secured_zookeeper",
    "test_password_file",
    "test_site_certificate",
    "test_ipv6",
    "test_take_over",
    "test_small_profile",
)
"""The files of `integration` that share none."""
_LAST = ("test_feed",)
"""The files of `integration` that their units end with."""
SHOWN_S = 10.0
_CPU_S = "cpu_s"
LONGEST = (
    CONTAINERS,
    SYSTEM,
    DISTURBED,
    "tests/conformance/test_conformance.py",
    *_ON_THEIR_OWN,
    PLATFORM,
    PORTS,
    "tests/unit/gateway/rest/test_schema.py",
    "tests/conformance/secured/test_secured.py",
    "tests/simulation/test_transactions.py",
    "tests/simulation/test_scopes.py",
    "tests/simulation/test_model.py",
    "tests/simulation/test_seeds.py",
    "shared/client/tests/unit/client/test_distribution.py",
    "shared/coordination/tests/simulation/coordination/test_task_board.py",
)
"""The units that come first, in this order."""


def unit_of(nodeid: str) -> str:
    """What a test belongs to, by its id: `tests/<folder>/<file>::<test>`."""
    file = nodeid.partition("::")[0]
    path = PurePath(file)
    if "integration" in path.parts:
        return path.stem if path.stem in _ON_THEIR_OWN else _UNITS.get(path.stem, SYSTEM)
    # One broker, one set of containers for all of the folder.
    return next((folder for folder in (CONTAINERS, PORTS) if folder in path.parts), file)


def put_in_order(items: list[pytest.Item]) -> None:
    """Unit by unit, those that take longest first.

    Raises UsageError if two processes could start a shared system.
    """
    for item in items:
        used = set(getattr(item, "fixturenames", ())) & set(SHARED) if "integration" in item.path.parts else ()
        for name in used:
            if unit_of(item.nodeid) != name:
                raise pytest.UsageError(f"{item.nodeid} uses the system `{name}`: see support/side_by_side.py")
    rank = {unit: number for number, unit in enumerate(LONGEST)}

    def place(item: pytest.Item) -> tuple[int, bool]:
        is_last = "integration" in item.path.parts and item.path.stem in _LAST
        return rank.get(unit_of(item.nodeid), len(rank)), is_last

    items.sort(key=place)


class SideBySide(LoadScopeScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


class Timeline:
    """A plugin of pytest: says at the end of a run which of its processes was at which unit, when, and what it took.

    That is CPU time of the process and of those that it has started and seen the end of; containers are not among them.
    While the machine's processors are idle for long, more processes (`PROCESSES`) make a run shorter.
    """

    def __init__(self) -> None:
        self._began = time.time()
        self._spans: dict[tuple[str, str], tuple[float, float, float]] = {}
        self._counted_s = _cpu_s()
        self._idle_s = _idle_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Runs where the test does; what is added here is sent to where reports are gathered."""
        report = yield
        until_now_s = _cpu_s()
        report.user_properties.append((_CPU_S, until_now_s - self._counted_s))
        self._counted_s = until_now_s
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        worker = getattr(report, "worker_id", "here")
        at = (worker, unit_of(report.nodeid))
        since, _, cpu_s = self._spans.get(at, (report.start, 0.0, 0.0))
        self._spans[at] = since, report.stop, cpu_s + float(str(dict(report.user_properties).get(_CPU_S, 0.0)))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        long = [(at, span) for at, span in self._spans.items() if span[1] - span[0] >= SHOWN_S]
        for (worker, unit), (since, until, cpu_s) in sorted(long):
            span = f"{since - self._began:5.0f} to {until - self._began:5.0f} s"
            terminalreporter.line(f"{worker}: {span}, {cpu_s:4.0f} s of CPU: {unit}")
        if long:
            idle = (_idle_s() - self._idle_s) / ((os.cpu_count() or 1) * (time.time() - self._began))
            terminalreporter.line(f"this machine's processors: {idle:.0%} idle")


def _idle_s() -> float:
    """For how long this machine's processors have had nothing to do, all together."""
    return float(Path("/proc/uptime").read_text().split()[1])


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class UntilLast:
    """A plugin of pytest: keeps what a unit's tests share until the last of them has ended."""

    def __init__(self) -> None:
        self._last: dict[str, pytest.Item] = {}
        self._kept: dict[str, ExitStack] = {}

    @contextmanager
    def up(self, unit: str, shared: AbstractContextManager[T]) -> Iterator[T]:
        """What is shared; it is left when the unit's last test has ended, at the latest when this context is."""
        with ExitStack() as stack:
            self._kept[unit] = stack
            yield stack.enter_context(shared)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._last = {unit_of(item.nodeid): item for item in session.items}

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """After all fixtures of the test's own module."""
        unit = unit_of(item.nodeid)
        if item is self._last.get(unit) and unit in self._kept:
            self._kept.pop(unit).close()
