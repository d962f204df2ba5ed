"""How the tests are shared among processes, and when what they share ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.side_by_side import LONGEST, SHARED, unit_of

TESTS = Path(__file__).parents[1]
CLONE = TESTS.parent
CONFTEST = """
from contextlib import contextmanager
import pytest
from support.side_by_side import UntilLast, put_in_order

until_last = UntilLast()

def pytest_configure(config):
    config.pluginmanager.register(until_last)

def pytest_collection_modifyitems(items):
    put_in_order(items)

@contextmanager
def shared():
    print("up", flush=True)
    yield
    print("down", flush=True)

@pytest.fixture(scope="session")
def platform():
    with until_last.up("platform", shared()):
        yield

@pytest.fixture(autouse=True)
def name_shown(request):
    yield
    print(request.node.name, flush=True)
"""


@pytest.mark.parametrize(
    ("file", "unit"),
    [
        ("tests/containers/test_txn_manager.py", "containers"),
        ("tests/conformance/test_conformance.py", "tests/conformance/test_conformance.py"),
        ("tests/conformance/secured/test_secured.py", "tests/conformance/secured/test_secured.py"),
        ("tests/integration/test_of_tomorrow.py", "system"),
        ("tests/integration/test_faults.py", "disturbed"),
        ("tests/integration/test_coordination.py", "test_coordination"),
        ("tests/integration/test_snapshots.py", "test_snapshots"),
        ("tests/simulation/test_snapshots.py", "tests/simulation/test_snapshots.py"),
        ("tests/ports/test_sessions.py", "ports"),
        ("tests/unit/test_side_by_side.py", "tests/unit/test_side_by_side.py"),
    ],
)
def test_what_shares_something_is_one_unit(file: str, unit: str) -> None:
    assert unit_of(f"{file}::test_something") == unit


def test_every_unit_that_comes_first_is_there() -> None:
    def files(unit: str) -> list[Path]:
        return [TESTS / "integration" / f"{unit}.py", TESTS / unit, CLONE / unit]

    assert [unit for unit in LONGEST if unit not in SHARED and not any(map(Path.exists, files(unit)))] == []


def run(folder: Path, **files: str) -> subprocess.CompletedProcess[str]:
    """Files of `integration`, and one beside it."""
    (folder / "integration").mkdir()
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_elsewhere.py").write_text("def test_of_no_system(): pass")
    for name, text in files.items():
        (folder / "integration" / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-c", os.devnull, str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_what_is_shared_ends_with_the_last_test_of_its_unit(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        test_api="def test_of_the_system(): pass",
        test_java="def test_later(): pass",
        test_platform="def test_first(platform): pass\ndef test_second(): pass",
        test_segmentstore="def test_third(platform): pass\ndef test_last(): pass",
    )
    assert done.returncode == 0, done.stdout
    seen = [word for word in done.stdout.replace(".", "").split() if word in ("up", "down") or word.startswith("test_")]
    shared = ["up", "test_first", "test_second", "test_third", "test_last", "down"]
    assert seen == ["test_of_the_system", "test_later", *shared, "test_of_no_system"]


def test_a_unit_ends_with_its_file_of_short_tests(tmp_path: Path) -> None:
    done = run(tmp_path, test_feed="def test_short(): pass", test_transactions_faults="def test_long(): pass")
    assert done.returncode == 0, done.stdout
    names = [word for word in done.stdout.replace(".", "").split() if word.startswith("test_")]
    assert names == ["test_long", "test_short", "test_of_no_system"]


def test_a_file_that_two_processes_could_share_a_system_with_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, test_api="def test_of_the_system(platform): pass")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and "uses the system `platform`" in done.stderr
