"""The helper process: started with what it has to do, its reason passed on, ended when it takes too long."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from support.wait import eventually_async

from cluster_manager.settings import ClusterManagerSettings
from cluster_manager.snapshots import Helper
from sluice.child_process import ChildProcess
from sluice.engine.snapshot_keeper import HelperFailedError

DEADLINE_S = 60.0


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is run in place of Python."""
    path = tmp_path / "python"
    monkeypatch.setattr(sys, "executable", str(path))
    return path


def helper(script: Path, text: str, timeout_s: float = DEADLINE_S) -> Helper:
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    settings = ClusterManagerSettings(instance="a", snapshot_timeout_s=timeout_s)
    return Helper("cluster-manager/a", settings)


async def test_a_helper_is_told_what_to_do_for_whom(script: Path) -> None:
    said = script.with_name("said")
    await helper(script, f'echo "$@ $SLUICE_INSTANCE" > {said}').run(3, 1234)
    assert said.read_text() == "-m sluice.snapshotter 3 1234 cluster-manager/a a\n"


async def test_the_reason_of_a_helper_that_fails_is_passed_on(script: Path) -> None:
    with pytest.raises(HelperFailedError, match=r"^NoMarkerError: the record at 3 is no marker$"):
        await helper(script, "echo 'NoMarkerError: the record at 3 is no marker'; exit 1").run(0, 3)


async def test_a_helper_that_cannot_be_started_is_one_that_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/program")
    settings = ClusterManagerSettings(instance="a")
    with pytest.raises(HelperFailedError, match=r"^cannot be started: .*No such file"):
        await Helper("cluster-manager/a", settings).run(0, 3)


async def test_a_helper_that_dies_without_a_word_fails_with_its_status(script: Path) -> None:
    with pytest.raises(HelperFailedError, match="ended with status -9"):
        await helper(script, "kill -9 $$").run(0, 3)


async def test_a_helper_that_takes_too_long_is_ended(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[ChildProcess] = []

    async def recording(*command: Any) -> ChildProcess:
        started.append(await start(*command))
        return started[-1]

    start = ChildProcess.start
    monkeypatch.setattr(ChildProcess, "start", recording)
    with pytest.raises(HelperFailedError, match=r"not done within 0\.1 s"):
        await helper(script, "exec sleep 600", timeout_s=0.1).run(0, 3)
    (process,) = started
    assert not is_running(process.pid)


async def test_a_helper_ends_with_what_waits_for_it(script: Path) -> None:
    pid = script.with_name("pid")
    waiting = asyncio.ensure_future(helper(script, f"echo $$ > {pid}; exec sleep 600").run(0, 3))
    await eventually_async(lambda: pid.exists() and pid.read_text().strip(), DEADLINE_S, "it runs")
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert not is_running(int(pid.read_text()))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
