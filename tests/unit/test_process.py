"""How a process ends, and with which status."""

import signal
import subprocess
import sys

import pytest

ENDS_S = 60.0
PROGRAM = """
import asyncio, os, signal
from sluice.exceptions import CannotStartError, EndedError
from sluice.process import Process, run_process
from sluice.settings import ServiceSettings

async def work(process):
    {work}

run_process(Process, "any", ServiceSettings(health_port=0), work)
"""


@pytest.mark.parametrize(
    ("work", "status", "said"),
    [
        ("raise CannotStartError('other topics')", 2, "other topics"),
        ("raise EndedError('no journal')", 3, "no journal"),
        ("os.kill(os.getpid(), signal.SIGQUIT); raise EndedError('no journal')", 3, "in work"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV, "in work"),
        ("os.kill(os.getpid(), signal.SIGTERM); await asyncio.sleep(3600)", 0, "stopped"),
    ],
)
def test_a_process_ends_with_a_status_that_says_what_to_do(work: str, status: int, said: str) -> None:
    command = [sys.executable, "-c", PROGRAM.format(work=work)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=ENDS_S, check=False)
    assert ended.returncode == status and said in ended.stdout + ended.stderr
