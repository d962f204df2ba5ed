"""What the Rust client of Pravega does, unmodified, on a `sluice dev`: one test for each scenario.

The scenarios in `tests/rust` are built once, where cargo is, and run by one process. With
`SLUICE_TEST_CONTROLLER=host:port` they run against another controller, and no `sluice dev` is started.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.effort import by_hand
from support.scenario_client import ScenarioClient

from sluice_dev.process import dev_process
from sluice_local import progress
from sluice_local.home import CLONE
from sluice_local.settings import LocalSettings

PROJECT = CLONE / "tests" / "rust"
CARGO = shutil.which("cargo") or shutil.which("cargo", path=str(Path.home() / ".cargo" / "bin"))
SCENARIOS = re.findall(r'"([a-z-]+)" => ', (PROJECT / "src" / "scenarios.rs").read_text())

pytestmark = [
    pytest.mark.integration,
    by_hand("its crates are compiled for minutes"),
    # The first test waits for the client to be built where it is not there yet.
    pytest.mark.timeout(1800),
    pytest.mark.skipif(CARGO is None, reason="there is no cargo to build the Rust client with"),
]


@pytest.fixture(scope="module")
def client(runs_folder: Path) -> Iterator[ScenarioClient]:
    program = build(LocalSettings().home / "rust-client")
    with ExitStack() as stack:
        controller = os.environ.get("SLUICE_TEST_CONTROLLER")
        if controller is None:
            controller = stack.enter_context(dev_process()).controller
        command = (str(program), f"tcp://{controller}")
        yield stack.enter_context(ScenarioClient(command, runs_folder / "rust-client.log"))


def build(folder: Path) -> Path:
    """Build the program as far as it has changed. The client has a fixed version, what that needs the newest."""
    assert CARGO is not None
    command = [CARGO, "build", "--manifest-path", str(PROJECT / "Cargo.toml"), "--target-dir", str(folder)]
    progress.run_quietly(command, f"cargo could not build {PROJECT}")
    return folder / "debug" / "sluice-rust-client"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(client: ScenarioClient, scenario: str) -> None:
    problem = client.problem(scenario)
    if problem is not None:
        pytest.fail(f"{scenario}:\n{problem}", pytrace=False)
