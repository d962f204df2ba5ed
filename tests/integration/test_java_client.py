"""What the Java client of Pravega does, unmodified, on the whole system: one test for each scenario but one.

The scenarios in `tests/java` are compiled once and run by one Java process for all tests, each by its name.
With `SLUICE_TEST_CONTROLLER=host:port` they run against another controller, such as Pravega's own, and no system is
started.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from harness import System
from sluice_local import java, progress, stamp
from sluice_local.home import CLONE
from sluice_local.process import log_tail
from sluice_local.settings import LocalSettings

# The first test waits for the client's jars to be fetched where they are not there yet.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

PROJECT = CLONE / "tests" / "java"
SOURCES = PROJECT / "src" / "main" / "java"
WITH_FAULTS = "TransactionsExactlyOnce"
"""Run by `test_transactions_faults.py`, where txn-manager is killed meanwhile."""
SCENARIOS = sorted({path.stem for path in (SOURCES / "io/sluice/client/scenarios").glob("*.java")} - {WITH_FAULTS})

_MAIN = "io.sluice.client.Main"
_OPTIONS = ("-XX:+UseSerialGC", "-Xmx512m", *java.SHORT_LIVED, "-Djava.net.preferIPv4Stack=true")
LOG_OPTIONS = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")
_END = "=== "


class JavaClient:
    """The process with the client. As a context it runs inside and is gone after; it ends with the test runner too."""

    def __init__(
        self,
        classpath: str,
        controller: str,
        log: Path,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`controller` is a URI; `environment` is added to that of the tests."""
        self._command = (java.executable(), *_OPTIONS, *LOG_OPTIONS, *options, "-cp", classpath, _MAIN, controller)
        self._environment = {**os.environ, **(environment or {})}
        self._log = log

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                bufsize=1,
                env=self._environment,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def problem(self, scenario: str) -> str | None:
        """Run a scenario; return what it says if it failed. It gives itself up in time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{scenario}\n")
        lines: list[str] = []
        for line in self._process.stdout:
            if line.startswith(_END):
                return None if line.startswith(f"{_END}passed") else "".join(lines)
            lines.append(line)
        return f"the client ended:\n{log_tail(self._log)}"


@pytest.fixture(scope="module")
def client(request: pytest.FixtureRequest, runs_folder: Path) -> Iterator[JavaClient]:
    classpath = build(LocalSettings().home / "java-client")
    controller = os.environ.get("SLUICE_TEST_CONTROLLER")
    if controller is None:
        system: System = request.getfixturevalue("system")
        controller = system.grpc_address
    with JavaClient(classpath, f"tcp://{controller}", runs_folder / "java-client.log") as client:
        yield client


def build(folder: Path, project: Path = PROJECT) -> str:
    """Fetch a project's jars and compile its sources, if either has changed; return the class path."""
    classes, jars = folder / "classes", folder / "jars"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pom = project / "pom.xml"
        value = stamp.digest([pom, *sorted((project / "src").rglob("*.java"))])
        if not stamp.is_current(folder / "stamp", value):
            (folder / "stamp").unlink(missing_ok=True)
            for part in (classes, jars):
                shutil.rmtree(part, ignore_errors=True)
            command = ["mvn", "-B", "-f", str(pom), "compiler:compile", "dependency:copy-dependencies"]
            command += [f"-Dbuild.folder={folder}", "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
            progress.run_quietly(command, f"Maven could not build {project}")
            stamp.set_current(folder / "stamp", value)
    return f"{classes}:{jars}/*"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(client: JavaClient, scenario: str) -> None:
    problem = client.problem(scenario)
    if problem is not None:
        pytest.fail(f"{scenario}:\n{problem}", pytrace=False)
