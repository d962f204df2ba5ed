"""What the Java client of Pravega does, unmodified, on the whole system: one test for each scenario but one.

The scenarios in `tests/java` are compiled once and run by one Java process for all tests, each by its name.
With `SLUICE_TEST_CONTROLLER=host:port` they run against another controller, such as Pravega's own, and no system is
started.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from support.scenario_client import ScenarioClient

from harness import System
from sluice_local import java, progress, stamp
from sluice_local.home import CLONE
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


class JavaClient(ScenarioClient):
    """The process with the client. `controller` is a URI."""

    def __init__(
        self,
        classpath: str,
        controller: str,
        log: Path,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        command = (java.executable(), *_OPTIONS, *LOG_OPTIONS, *options, "-cp", classpath, _MAIN, controller)
        super().__init__(command, log, environment or {})


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
