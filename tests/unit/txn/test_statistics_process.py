"""The process of the Faust app: begun anew when it ends, ended with the service, visible when it is silent."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from harness import eventually_async
from sluice.child_process import ChildProcess
from txn_manager.settings import TxnSettings
from txn_manager.statistics import supervisor
from txn_manager.statistics.supervisor import StatisticsProcess

DEADLINE_S = 60.0
SETTINGS = TxnSettings(instance="txn-manager-7")
LIVES = """
import os, sys, time
with open(sys.argv[1], "a") as lives:
    print(os.environ["SLUICE_INSTANCE"], file=lives)
{then}
"""
IGNORES = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(sys.argv[1], "a") as lives:
    print(os.getpid(), file=lives)
time.sleep(600)
"""


def process(lives: Path, then: str) -> StatisticsProcess:
    return StatisticsProcess(SETTINGS, (sys.executable, "-c", LIVES.format(then=then), str(lives)))


def begun(lives: Path) -> list[str]:
    return lives.read_text().splitlines() if lives.exists() else []


async def test_a_process_that_ends_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "RETRY_MIN_S", 0.01)
    statistics = process(tmp_path / "lives", "sys.exit(1)")
    statistics.start()
    await eventually_async(lambda: len(begun(tmp_path / "lives")) > 2, DEADLINE_S, "it has begun anew twice")
    await statistics.stop()
    assert set(begun(tmp_path / "lives")) == {"txn-manager-7"}


class Lines:
    """In the place of a process: it writes a line when it is told to, and ends when it is waited for."""

    def __init__(self) -> None:
        self.output = self
        self.reads = 0
        self._line = asyncio.get_running_loop().create_future()

    def write(self) -> None:
        self._line.set_result(b".")

    async def readline(self) -> bytes:
        self.reads += 1
        line, self._line = await self._line, asyncio.get_running_loop().create_future()
        return bytes(line)

    def terminate(self) -> None: ...

    async def ends(self, within_s: float) -> int:
        return 0


@pytest.mark.parametrize("turns", range(4))
async def test_a_stop_that_comes_with_a_line_ends_it(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many turns of the event loop lie between the two."""
    lines = Lines()

    async def create(*_command: str, **_settings: object) -> Lines:
        return lines

    monkeypatch.setattr(ChildProcess, "start", create)
    statistics = process(Path(), "")
    statistics.start()
    await eventually_async(lambda: lines.reads == 1, DEADLINE_S, "it waits for a line")
    lines.write()
    for _ in range(turns):
        await asyncio.sleep(0)
    # Not by `wait_for`: the end of its time would be a second cancellation.
    _, late = await asyncio.wait({asyncio.create_task(statistics.stop())}, timeout=DEADLINE_S)
    assert not late


async def test_a_silent_process_is_shown_and_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"RETRY_MIN_S": 0.01, "DEGRADED_AFTER_S": 0.1, "MAX_SILENCE_S": 0.5}.items():
        monkeypatch.setattr(supervisor, name, seconds)
    # No Python: it has to write its line before it is killed, also where all begins slowly.
    silent = ("sh", "-c", 'echo begun >> "$0"; exec sleep 600', str(tmp_path / "lives"))
    statistics = StatisticsProcess(SETTINGS, silent)
    statistics.start()
    assert statistics.problem() is None
    await eventually_async(lambda: statistics.problem() is not None, DEADLINE_S, "its silence shows")
    await eventually_async(lambda: len(begun(tmp_path / "lives")) > 1, DEADLINE_S, "another one has begun")
    await statistics.stop()


async def test_a_process_that_does_not_end_is_killed_when_the_service_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "STOP_S", 0.2)
    statistics = process(tmp_path / "lives", IGNORES)
    statistics.start()
    await eventually_async(lambda: len(begun(tmp_path / "lives")) == 2, DEADLINE_S, "it ignores the signal")
    await asyncio.wait_for(statistics.stop(), DEADLINE_S)
    _, pid = begun(tmp_path / "lives")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


async def test_security_that_faust_cannot_give_shows_and_no_process_starts(tmp_path: Path) -> None:
    conf = '{"security.protocol": "ssl", "ssl.cipher.suites": "ECDHE-RSA-AES128-GCM-SHA256"}'
    settings = TxnSettings.model_validate({"kafka_conf": conf})
    statistics = StatisticsProcess(settings, (str(tmp_path / "nowhere"),))
    statistics.start()
    assert "ssl.cipher.suites is not possible with Faust" in (statistics.problem() or "")
    await statistics.stop()


async def test_where_faust_is_not_installed_that_shows_and_no_process_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "FAUST", "not-installed")
    statistics = process(tmp_path / "lives", IGNORES)
    statistics.start()
    assert "sluice-streams-txn-manager[statistics]" in (statistics.problem() or "")
    await statistics.stop()
    assert not (tmp_path / "lives").exists()
