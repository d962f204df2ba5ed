"""Real processes, but small ones: each test takes some hundredths of a second."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.wait import SOON_S

from harness import eventually
from sluice_local.ownership import SupervisorRecord, record_path
from sluice_local.process import Child, ProcessRecord, Spawner, log_tail, start_ticks


@pytest.fixture
def spawner() -> Iterator[Spawner]:
    spawner = Spawner()
    yield spawner
    spawner.close()


def spawn(spawner: Spawner, folder: Path, code: str) -> Child:
    return spawner.spawn([sys.executable, "-c", code], os.environ, folder, folder / "log")


def test_output_and_exit_code_are_kept(spawner: Spawner, tmp_path: Path) -> None:
    child = spawn(spawner, tmp_path, "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")
    assert child.wait(SOON_S)
    assert child.exit_code == 7
    assert sorted(log_tail(tmp_path / "log").splitlines()) == ["err", "out"]


def test_a_child_that_ignores_the_request_says_what_it_is_at_and_is_killed(spawner: Spawner, tmp_path: Path) -> None:
    code = (
        "import faulthandler, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "faulthandler.register(signal.SIGQUIT); print('up', flush=True)\n"
        "while True: signal.pause()"
    )
    child = spawn(spawner, tmp_path, code)
    eventually(lambda: "up" in log_tail(tmp_path / "log"), SOON_S, "the child runs")
    assert child.stop(timeout_s=0.1) == -signal.SIGKILL
    assert "line 3 in <module>" in log_tail(tmp_path / "log")


def test_a_frozen_child_can_be_stopped_gently(spawner: Spawner, tmp_path: Path) -> None:
    code = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(3)); print('up', flush=True)\n"
    child = spawn(spawner, tmp_path, code + "while True: signal.pause()")
    eventually(lambda: "up" in log_tail(tmp_path / "log"), SOON_S, "the child runs")
    child.signal(signal.SIGSTOP)
    assert child.stop(timeout_s=SOON_S) == 3


def test_what_a_child_started_ends_with_it(spawner: Spawner, tmp_path: Path) -> None:
    code = "import subprocess, sys; p = subprocess.Popen(['sleep', '600']); print(p.pid, flush=True); sys.exit(0)"
    child = spawn(spawner, tmp_path, code)
    assert child.wait(SOON_S)
    grandchild = int(log_tail(tmp_path / "log"))
    eventually(lambda: start_ticks(grandchild) is None, SOON_S, "the grandchild is gone")


def test_children_die_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, signal, sys; from sluice_local.process import Spawner\n"
        f"folder = pathlib.Path({str(tmp_path)!r})\n"
        "child = Spawner().spawn(['sleep', '600'], os.environ, folder, folder / 'log')\n"
        "print(child.pid, flush=True)\n"
        "signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        pid = int(supervisor.stdout.readline())
        assert start_ticks(pid) is not None
        supervisor.kill()
    eventually(lambda: start_ticks(pid) is None, SOON_S, "the child is gone")


def test_a_record_knows_another_process_with_the_same_number(tmp_path: Path) -> None:
    path = tmp_path / "part.json"
    ticks = start_ticks(os.getpid())
    assert ticks is not None
    ProcessRecord(os.getpid(), ticks).write(path)
    record = ProcessRecord.read(path)
    assert record is not None
    assert record.is_alive()
    ProcessRecord(os.getpid(), ticks - 1).write(path)
    other = ProcessRecord.read(path)
    assert other is not None
    assert not other.is_alive()


def test_there_is_no_record_of_what_never_ran(tmp_path: Path) -> None:
    assert ProcessRecord.read(tmp_path / "none.json") is None


@pytest.mark.parametrize("left", [b"", b"\0\0\0"])
def test_a_record_that_a_power_loss_emptied_is_of_nothing_that_runs(left: bytes, tmp_path: Path) -> None:
    path = record_path(tmp_path)
    path.parent.mkdir()
    path.write_bytes(left)
    assert ProcessRecord.read(path) is None and SupervisorRecord.read(tmp_path) is None


def test_only_the_end_of_a_log_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(10_000)))
    assert log_tail(log, lines=2) == "line 9998\nline 9999"
