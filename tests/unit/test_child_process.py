"""What a service starts: it says what it has to say, ends by itself or by force, and is no copy of the service."""

import asyncio
import signal
import subprocess
import sys

import pytest
from support.wait import SOON_S

from sluice.child_process import ChildProcess

SERVICE = """
import os, uvloop
from sluice.child_process import ChildProcess

async def main():
    os.register_at_fork(after_in_child=lambda: print("a copy of the service runs", flush=True))
    child = await ChildProcess.start(["true"])
    print("ended with", await child.wait(), flush=True)

uvloop.run(main())
"""


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


async def test_it_reads_what_is_written_to_it_until_the_end_of_input_and_is_read_to_its_end() -> None:
    child = await ChildProcess.start(python("import sys; print(sys.stdin.read()[::-1]); sys.exit(3)"))
    child.write(b"abc")
    child.end_input()
    child.write(b"too late")
    assert await child.output.read() == b"cba\n"
    assert await child.wait() == 3
    assert child.returncode == 3
    child.end_input()
    child.kill()


async def test_its_errors_can_be_read_instead_of_its_output() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr)"
    child = await ChildProcess.start(python(code), says_errors=True)
    assert await child.output.read() == b"err\n"
    assert await child.wait() == 0


async def test_one_that_goes_on_is_killed() -> None:
    child = await ChildProcess.start(("sleep", "600"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(child.wait(), 0.01)
    assert child.returncode is None
    assert await child.ends(within_s=0.01) == -signal.SIGKILL


async def test_what_cannot_be_started_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        await ChildProcess.start(("/no/such/program",))


def test_nothing_of_the_service_runs_in_it() -> None:
    """What runs there would destroy the clients of the service's other threads, and wait for threads it has not."""
    ran = subprocess.run(python(SERVICE), capture_output=True, text=True, timeout=SOON_S, check=True)
    assert ran.stdout == "ended with 0\n"
