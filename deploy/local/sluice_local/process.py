"""One child process: start it, signal it, know when it ended.

Concurrency: every method may be called from any thread. Processes are *created* on one thread that lives as long as the
`Spawner`, because the kernel ends a child with the thread that forked it (see `launch`).
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from sluice_local import launch

_LOG_ROTATE_BYTES = 64 * 1024 * 1024
_STACKS_S = 1.0
"""A process may take as long to print what its threads are at."""


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """What is written to `run/<part>.json`: enough to find the process again and to know that it is still the same."""

    pid: int
    start_ticks: int
    """When the kernel says the process began; guards against a pid that was given to another process."""

    def write(self, path: Path) -> None:
        """Replace the file at once, so that a reader never sees half of it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}.new")
        new.write_text(json.dumps(asdict(self)) + "\n")
        new.replace(path)

    @classmethod
    def read(cls, path: Path) -> "ProcessRecord | None":
        """Return what the file says, or None if there is none, or a power loss has left it empty."""
        try:
            found = json.loads(path.read_text())
        except (FileNotFoundError, ValueError):
            return None
        return cls(found["pid"], found["start_ticks"])

    def is_alive(self) -> bool:
        """Whether that very process still runs."""
        return start_ticks(self.pid) == self.start_ticks


def start_ticks(pid: int) -> int | None:
    """Return when a process began, in kernel ticks since boot, or None if it does not run (a zombie does not)."""
    try:
        # The name of the program stands in brackets and may contain anything, even brackets.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, ticks = fields[0], fields[19]
    return None if state in "ZX" else int(ticks)


def log_tail(path: Path, lines: int = 15, limit_bytes: int = 16_384) -> str:
    """Return the last lines of a log file, or a remark if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - limit_bytes))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return "(no log was written)"


class Spawner:
    """The one thread that creates processes. Closing it ends those that it created and that still run."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")

    def spawn(self, command: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path) -> "Child":
        """Start a program in a session of its own, with its output appended to the log."""
        return self._thread.submit(_spawn, command, environment, folder, log).result()

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()


def _spawn(command: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path) -> "Child":
    folder.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _LOG_ROTATE_BYTES:
        log.replace(log.with_suffix(".old.log"))
    launcher = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid())]
    with log.open("ab") as output:
        return Child(
            subprocess.Popen(
                [*launcher, *command],
                env=dict(environment),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        )


class Child:
    """A running, or ended, child process."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self.pid = popen.pid
        self.start_ticks = start_ticks(popen.pid) or 0
        self._ended = threading.Event()
        threading.Thread(target=self._reap, name=f"reaper-{self.pid}", daemon=True).start()

    def _reap(self) -> None:
        # While the dead leader is not collected its number cannot go to another one, so the rest of its group can be
        # ended safely.
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait()
        self._ended.set()

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative if a signal ended it."""
        return self._popen.returncode if self._ended.is_set() else None

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end; return whether it has come."""
        return self._ended.wait(timeout_s)

    def signal(self, number: int) -> None:
        """Send a signal to the process and everything it started; nothing happens if it has ended."""
        if self._ended.is_set():
            return
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return

    def stop(self, timeout_s: float) -> int:
        """End it gently, or by force when the time is up. Return the exit code."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        if self.wait(timeout_s):
            return self._popen.returncode
        # What it hangs at is in its log then.
        self.signal(signal.SIGQUIT)
        self.wait(_STACKS_S)
        return self.kill()

    def kill(self) -> int:
        """End it by force and wait for the end."""
        self.signal(signal.SIGKILL)
        self._ended.wait()
        return self._popen.returncode
