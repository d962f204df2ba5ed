"""The set-up's environment: built beside the one that works. A real one, without packages and without a network."""

import fcntl
import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sluice_local import checks, jars, setup
from sluice_local.errors import LocalError
from sluice_local.ownership import SupervisorRecord, record_path
from sluice_local.process import start_ticks

ENDS_S = 60.0
BACKEND = """\
import zipfile

def build_editable(folder, config=None, metadata=None):
    name = "own-1-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("own.py", "")
        wheel.writestr("own-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: own\\nVersion: 1\\n")
        wheel.writestr("own-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("own-1.dist-info/RECORD", "")
    return name
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lock file of a clone that has one project; no package can be fetched."""
    clone = tmp_path / "clone"
    project = clone / "own"
    project.mkdir(parents=True)
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "backend.py").write_text(BACKEND)
    monkeypatch.setattr(setup, "CLONE", clone)
    monkeypatch.setattr(setup, "PROJECTS", ("own",))
    monkeypatch.setattr(setup, "LOCK_FILE", clone / "requirements.lock")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    (clone / "requirements.lock").write_text("# nothing\n")
    return clone / "requirements.lock"


def test_an_environment_is_replaced_only_by_a_complete_one(lock: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "run").mkdir(parents=True)
    setup.environment(home)
    first = (home / "venv").resolve()
    assert has_own(home / "venv")

    lock.write_text(f"absent==1 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(LocalError, match="locked packages could not be installed"):
        setup.environment(home)
    assert (home / "venv").resolve() == first and has_own(home / "venv")

    lock.write_text("# nothing else\n")
    SupervisorRecord(os.getpid(), start_ticks(os.getpid()) or 0, "ready", "", 1).write(home)
    setup.environment(home)
    assert (home / "venv").resolve() != first and has_own(home / "venv")
    assert has_own(first), "a system that is up may run in it"

    record_path(home).unlink()
    setup.environment(home)
    assert list((home / "venvs").iterdir()) == [(home / "venv").resolve()]


def test_archives_of_classes_are_made_anew_when_java_changes(tmp_path: Path) -> None:
    jars_dir, runs = tmp_path / "jars", tmp_path / "runs"
    program = tmp_path / "venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nmkdir -p {jars_dir}/classes; echo "$@" >> {runs}\n')
    program.chmod(0o755)
    for version in ("17", "17", "21"):
        setup.class_archives(tmp_path, jars_dir, version, program)
    assert runs.read_text().splitlines() == [f"-m sluice_local.archives {tmp_path} {jars_dir}"] * 2


def test_a_set_up_goes_on_without_archives_of_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jars_dir, runs = tmp_path / "jars", tmp_path / "runs"
    jars_dir.mkdir()
    program = tmp_path / "venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho run >> {runs}; echo no memory; exit 1\n")
    program.chmod(0o755)
    setup.class_archives(tmp_path, jars_dir, "17", program)
    assert "no memory" in capsys.readouterr().out
    setup.class_archives(tmp_path, jars_dir, "17", program)
    assert runs.read_text() == "run\n", "it is not tried once more"


def test_set_ups_that_share_a_folder_of_jars_follow_one_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, fetching, go_on = tmp_path / "jars", threading.Semaphore(0), threading.Semaphore(0)

    def fetch(folder: Path, _report: object, _programs: object) -> None:
        assert folder == shared
        fetching.release()
        assert go_on.acquire(timeout=ENDS_S)

    monkeypatch.setenv("SLUICE_JARS", str(shared))
    monkeypatch.setattr(jars, "fetch", fetch)
    monkeypatch.setattr(setup, "environment", lambda _home: None)
    monkeypatch.setattr(setup, "class_archives", lambda *_: None)
    with ThreadPoolExecutor(2) as pool:
        set_ups = [pool.submit(setup.set_up, tmp_path / name) for name in ("one", "two")]
        try:
            assert fetching.acquire(timeout=ENDS_S)
            with (shared / "setup.lock").open("w") as lock, pytest.raises(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            assert not fetching.acquire(blocking=False)
        finally:
            go_on.release(2)
        for one in set_ups:
            one.result(ENDS_S)


@pytest.mark.parametrize(
    ("profile", "fetched"), [("small", ["kafka", "data-plane"]), ("", ["kafka", "data-plane", "spark"])]
)
def test_a_small_system_needs_no_jars_of_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, fetched: list[str]
) -> None:
    bin_folder, requested = tmp_path / "bin", tmp_path / "requested"
    bin_folder.mkdir()
    (bin_folder / "mvn").write_text(f'#!/bin/sh\nbasename "$3" .pom.xml >> {requested}\n')
    (bin_folder / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    monkeypatch.setenv("PROFILE", profile)
    monkeypatch.setenv("SLUICE_JARS", str(tmp_path / "jars"))
    for name, does_nothing in (("environment", lambda _home: None), ("class_archives", lambda *_: None)):
        monkeypatch.setattr(setup, name, does_nothing)
    monkeypatch.setattr(checks, "require_java", lambda: "17")
    setup.set_up(tmp_path / "home")
    assert requested.read_text().split() == fetched


def has_own(venv: Path) -> bool:
    """Whether the environment runs and has the project."""
    return subprocess.run([venv / "bin" / "python", "-c", "import own"], check=False).returncode == 0
