"""`down` and `status` by a Python without any package, in an environment with invalid settings."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from unit.local.test_ports import listening

from sluice_local.home import CLONE, run_dir
from sluice_local.ownership import SupervisorRecord
from sluice_local.part import Part, StopRank
from sluice_local.probes import Look, Probe, ProbeKind
from sluice_local.process import ProcessRecord, start_ticks
from sluice_local.running import process_record_path, settings_path, status_table, write_parts

ENDS_S = 60.0


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for the supervisor of a system on the folder."""
    run_dir(tmp_path).mkdir()
    with subprocess.Popen(["sleep", "600"]) as process:
        SupervisorRecord(process.pid, start_ticks(process.pid) or 0, "ready", "", 1).write(tmp_path)
        yield process
        process.kill()


def bare(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command by a Python without packages (-S), with a setting that is invalid."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(CLONE / "deploy" / "local"),
        "SLUICE_HOME": str(home),
        "SLUICE_KAFKA_PORT": "none",
    }
    command_line = [sys.executable, "-S", "-m", "sluice_local", *words]
    return subprocess.run(command_line, env=environment, capture_output=True, text=True, timeout=ENDS_S, check=False)


def test_down_needs_no_packages_and_no_valid_settings(supervisor: subprocess.Popen[bytes], tmp_path: Path) -> None:
    done = bare(tmp_path, "down")
    assert (done.returncode, done.stdout, done.stderr) == (0, "stopped\n", "")
    assert supervisor.wait(ENDS_S) != 0


@pytest.mark.parametrize("services_run", [True, False])
def test_down_of_services_tells_the_supervisor_and_waits_for_their_end(
    supervisor: subprocess.Popen[bytes], tmp_path: Path, services_run: bool
) -> None:
    """What stands for the supervisor ends by the signal: then nothing is left to wait for."""
    kafka, gateway = (part(tmp_path, name, ProbeKind.TCP, 1) for name in ("kafka", "gateway"))
    write_parts(tmp_path, [kafka, replace(gateway, stop_rank=StopRank.SERVICE)])
    for name in ("kafka", *(["gateway"] if services_run else [])):
        ProcessRecord(os.getpid(), 0).write(process_record_path(tmp_path, name))
    done = bare(tmp_path, "down", "--only", "services")
    assert (done.returncode, done.stderr) == (0, "") and "`make up` starts them again" in done.stdout
    assert supervisor.wait(ENDS_S) == -signal.SIGUSR2
    assert bare(tmp_path, "down", "--only", "services").returncode == 3, "no system is up"


def test_clean_removes_a_linked_state_folder_and_the_link(tmp_path: Path) -> None:
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    done = bare(link, "clean")
    assert done.returncode == 0, done.stderr
    assert not folder.exists() and not link.is_symlink()


def test_make_down_needs_no_environment(supervisor: subprocess.Popen[bytes], tmp_path: Path) -> None:
    command = ["make", "--silent", "-C", str(CLONE), "down", f"SLUICE_HOME={tmp_path}", "SLUICE_KAFKA_PORT=none"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=ENDS_S, check=False)
    assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr
    assert supervisor.wait(ENDS_S) != 0


@pytest.mark.parametrize("what", ["clone", "state folder"])
def test_make_refuses_a_path_with_a_space(what: str, tmp_path: Path) -> None:
    folder = tmp_path / "with a space"
    folder.mkdir()
    clone, home = (folder, tmp_path) if what == "clone" else (tmp_path, folder)
    command = ["make", "-C", str(clone), "-f", str(CLONE / "Makefile"), "--dry-run", "up", f"SLUICE_HOME={home}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=ENDS_S, check=False)
    assert done.returncode == 2 and f"the {what} is {folder}" in done.stderr, done.stderr


def part(folder: Path, name: str, kind: ProbeKind, port: int) -> Part:
    log, address, probe = folder / f"{name}.log", f"127.0.0.1:{port}", Probe(kind, port)
    return Part(name, ("true",), folder, log, address, (), probe, StopRank.STORE)


@pytest.mark.usefixtures("supervisor")
def test_status_needs_no_packages_and_no_valid_settings(tmp_path: Path) -> None:
    with listening() as port:
        kafka = part(tmp_path, "kafka", ProbeKind.KAFKA, port)
        ticks = start_ticks(os.getpid()) or 0
        ProcessRecord(os.getpid(), ticks).write(process_record_path(tmp_path, "kafka"))
        write_parts(tmp_path, [kafka, part(tmp_path, "redis", ProbeKind.REDIS, port)])
        done = bare(tmp_path, "status")
    assert (done.returncode, done.stderr) == (3, "")
    states = {cells[0]: cells[-1] for line in done.stdout.splitlines() if (cells := re.split(r"\s{2,}", line))}
    assert (states["kafka"], states["redis"]) == ("ready", "not started")


@pytest.mark.usefixtures("supervisor")
def test_status_names_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = part(tmp_path, "kafka", ProbeKind.KAFKA, 1)
    Path(ended.log).write_text("java.io.IOException: No space left on device\n")
    ProcessRecord(os.getpid(), 0).write(process_record_path(tmp_path, "kafka"))
    write_parts(tmp_path, [ended])
    assert "ended: no space left on device" in status_table(tmp_path)[0]
    write_parts(tmp_path, [])
    assert status_table(tmp_path)[1], "there is room"
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=5 * 2**20))
    table, ready = status_table(tmp_path)
    assert "no space left on device: 5 MiB are free" in table and not ready


@pytest.mark.usefixtures("supervisor")
def test_status_wraps_what_does_not_fit_into_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = " ".join(f"container-{number} does not answer," for number in range(40))
    monkeypatch.setattr(Probe, "look", lambda _self: Look(False, said))
    ProcessRecord(os.getpid(), start_ticks(os.getpid()) or 0).write(process_record_path(tmp_path, "gateway"))
    write_parts(tmp_path, [part(tmp_path, "gateway", ProbeKind.SERVICE, 1)])
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=2**40))
    table, _ = status_table(tmp_path)
    rows = table.splitlines()
    state, end = rows[0].index("state"), next(i for i, row in enumerate(rows) if row.startswith("supervisor"))
    assert " ".join(row[state:] for row in rows[1:end]) == said
    assert {row[:state].strip() for row in rows[2:end]} == {""} and max(map(len, rows[:end])) <= max(120, state + 40)


@pytest.mark.usefixtures("supervisor")
def test_status_looks_at_the_disk_of_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        data.symlink_to(elsewhere)
        write_parts(tmp_path, [part(data, "kafka", ProbeKind.KAFKA, 1)])
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=0 if folder == data else 2**40))
        table, ready = status_table(tmp_path)
    rows = [line.split() for line in table.splitlines() if line.startswith("disk")]
    assert [(row[2], "left" in row) for row in rows] == [(str(tmp_path), False), (str(data), True)]
    assert not ready


@pytest.mark.usefixtures("supervisor")
@pytest.mark.parametrize(("wanted", "is_secured", "says"), [("1", False, True), ("1", True, False), ("", False, False)])
def test_status_says_that_a_system_is_not_secured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, is_secured: bool, says: bool
) -> None:
    monkeypatch.setenv("SECURE", wanted)
    write_parts(tmp_path, [])
    settings_path(tmp_path).write_text(json.dumps({"secure": is_secured}))
    assert ("This system is not secured" in status_table(tmp_path)[0]) == says


def test_status_without_a_system_says_how_to_start_one(tmp_path: Path) -> None:
    done = bare(tmp_path, "status")
    assert done.returncode == 3
    assert "make up" in done.stderr
