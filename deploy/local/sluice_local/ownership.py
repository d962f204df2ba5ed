"""Who runs a system on a state folder: the lock that its supervisor holds, and the record that it writes.

Only the standard library is used. The lock is one of the kernel's on an open file: it goes with the process that holds
it. The record is replaced at once, so any process may read it at any time.
"""

import fcntl
import json
import os
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, Self

from sluice_local.errors import AlreadyUp, UnusableState
from sluice_local.home import COMMAND, run_dir
from sluice_local.process import start_ticks

State = Literal["starting", "ready", "stopping"]


@dataclass(frozen=True, slots=True)
class SupervisorRecord:
    """What is written to `run/supervisor.json`."""

    pid: int
    start_ticks: int
    state: State
    message: str
    """Why the last start failed, if it did."""
    starts: int
    """How many starts of the parts are complete; so that who asks for another one knows when it was done."""

    def write(self, home: Path) -> None:
        """Replace the file at once."""
        new = run_dir(home) / f"supervisor.{os.getpid()}.new"
        new.write_text(json.dumps(asdict(self)) + "\n")
        new.replace(record_path(home))

    @classmethod
    def read(cls, home: Path) -> Self | None:
        """Return the record of a supervisor that lives, or None: it outlives no power loss that leaves a file empty."""
        try:
            record = cls(**json.loads(record_path(home).read_text()))
        except (FileNotFoundError, ValueError):
            return None
        return record if start_ticks(record.pid) == record.start_ticks else None


def record_path(home: Path) -> Path:
    """Return the file of the supervisor's record."""
    return run_dir(home) / "supervisor.json"


class Ownership(AbstractContextManager["Ownership"]):
    """The right to run a system on a state folder, as a context."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._file: IO[str] | None = None

    def __enter__(self) -> Self:
        try:
            run_dir(self._home).mkdir(parents=True, exist_ok=True)
            self._file = (run_dir(self._home) / "supervisor.lock").open("w")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyUp(f"a system is up already on {self._home}: see `{COMMAND} status`") from None
        except OSError as error:
            raise UnusableState(f"the state folder {self._home} cannot be written: {error}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
