"""`sluice dev` where there is only what Windows has, too: another event loop, no modules and functions of Unix."""

import subprocess
import sys
from pathlib import Path

import sluice_dev

SERVES = """
import asyncio, os, signal, sys
import sluice.event_loop

# asyncio itself has been imported, which is another one there.
sys.modules.update(dict.fromkeys(("uvloop", "fcntl", "resource", "pwd", "grp", "termios", "pty", "syslog")))
for missing in ("fork", "getuid", "geteuid", "nice", "setsid", "killpg", "statvfs", "sched_getaffinity", "fchmod"):
    delattr(os, missing)
for missing in ("SIGKILL", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2"):
    delattr(signal, missing)

import sluice_cli.main, sluice_dev.commands, sluice_dev.process, sluice_dev.pytest_plugin
from sluice_dev.options import DevOptions, StreamToBegin
from sluice_dev.system import DevSystem

async def serve():
    streams = (StreamToBegin("demo", "orders"),)
    system = DevSystem(DevOptions(grpc_port=0, rest_port=0, store_port=0, streams=streams, secure=True))
    await system.start()
    await system.stop()

asyncio.run(serve())
"""


def test_it_begins_and_ends_without_what_only_unix_has(tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(Path(sluice_dev.__file__).parents[1]), "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        [sys.executable, "-c", SERVES], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
