"""The process that owns a system: in the foreground for `run`, detached for `up`.

It starts everything, says what happens, and stays until a signal ends it. It restarts nothing by itself: a part that
ends is reported once, and started again only by `up` on a system that is up.

Concurrency: one supervisor per state folder, held by a file lock that the kernel lets go with the process. Signals are
turned into events on the main thread, which does all the work.
"""

import fcntl
import json
import os
import signal
import sys
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Literal, Self

from sluice_local import checks
from sluice_local.errors import AlreadyUp, LocalError, UnusableState
from sluice_local.process import start_ticks
from sluice_local.settings import LocalSettings
from sluice_local.system import Report, System, addresses

_LOOK_S = 0.2
State = Literal["starting", "ready", "failed", "stopping"]


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

    def write(self, settings: LocalSettings) -> None:
        """Replace the file at once."""
        new = settings.run_dir / f"supervisor.{os.getpid()}.new"
        new.write_text(json.dumps(asdict(self)) + "\n")
        new.replace(_record_path(settings))

    @classmethod
    def read(cls, settings: LocalSettings) -> Self | None:
        """Return the record of a supervisor that lives, or None."""
        try:
            record = cls(**json.loads(_record_path(settings).read_text()))
        except FileNotFoundError:
            return None
        return record if start_ticks(record.pid) == record.start_ticks else None


def _record_path(settings: LocalSettings) -> Path:
    return settings.run_dir / "supervisor.json"


class Ownership(AbstractContextManager["Ownership"]):
    """The right to run a system on a state folder, as a context."""

    def __init__(self, settings: LocalSettings) -> None:
        self._settings = settings
        self._file: IO[str] | None = None

    def __enter__(self) -> Self:
        try:
            self._settings.run_dir.mkdir(parents=True, exist_ok=True)
            self._file = (self._settings.run_dir / "supervisor.lock").open("w")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyUp(f"a system is up already on {self._settings.home}: see `make status`") from None
        except OSError as error:
            raise UnusableState(f"the state folder {self._settings.home} cannot be written: {error}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()


class _Wishes:
    """What signals have requested."""

    def __init__(self) -> None:
        self.changed = threading.Event()
        self.end = 0
        """How many signals to end have come."""
        self.converge = False
        self.on_second_end = threading.Event()

    def install(self) -> None:
        """Have the signals write here."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_end)
        signal.signal(signal.SIGUSR1, self._on_converge)

    def _on_end(self, _number: int, _frame: FrameType | None) -> None:
        self.end += 1
        if self.end > 1:
            self.on_second_end.set()
        self.changed.set()

    def _on_converge(self, _number: int, _frame: FrameType | None) -> None:
        self.converge = True
        self.changed.set()


def settings_of_running(settings: LocalSettings) -> LocalSettings:
    """Return the settings that the system on this state folder was started with; they may differ from one's own."""
    try:
        return LocalSettings.model_validate_json(_settings_path(settings).read_text())
    except FileNotFoundError:
        return settings


def _settings_path(settings: LocalSettings) -> Path:
    return settings.run_dir / "settings.json"


def supervise(settings: LocalSettings, report: Report) -> int:
    """Run a system until a signal ends it. Return the exit code: 0 if it was ready before."""
    checks.require_java()
    checks.require_state_folder(settings.home)
    with Ownership(settings):
        wishes = _Wishes()
        wishes.install()
        _settings_path(settings).write_text(settings.model_dump_json(indent=2) + "\n")
        _note(settings, "starting")
        system = System(settings, report)
        try:
            failure = _start(system, settings, wishes, report)
            if failure is None and not wishes.end:
                _watch(system, settings, wishes, report)
        finally:
            _stop(system, wishes, report)
        if failure is not None:
            report(failure)
            _note(settings, "failed", failure)
            return 1
        (settings.run_dir / "supervisor.json").unlink(missing_ok=True)
        return 0


def _note(settings: LocalSettings, state: State, message: str = "", starts: int = 0) -> None:
    pid = os.getpid()
    SupervisorRecord(pid, start_ticks(pid) or 0, state, message, starts).write(settings)


def _start(system: System, settings: LocalSettings, wishes: _Wishes, report: Report) -> str | None:
    """Start all parts on a thread, so that a signal can end the start. Return the reason of a failure."""
    failures: list[str] = []

    def attempt() -> None:
        try:
            system.start()
        except LocalError as error:
            failures.append(str(error))

    began = time.monotonic()
    report(f"starting {len(system.parts)} parts; state in {settings.home}")
    thread = threading.Thread(target=attempt, name="start")
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_S)
        if wishes.end:
            system.abandon_start()
            thread.join()
            return None
    if failures:
        return failures[0]
    report(f"ready after {time.monotonic() - began:.1f} s:\n{addresses(system.parts.values())}")
    _note(settings, "ready", starts=1)
    return None


def _watch(system: System, settings: LocalSettings, wishes: _Wishes, report: Report) -> None:
    reported: set[str] = set()
    starts = 1
    while not wishes.end:
        wishes.changed.wait(_LOOK_S)
        wishes.changed.clear()
        ended = set(system.ended())
        for name in sorted(ended - reported):
            report(f"{system.obituary(name)}\nit is not restarted by itself: `make up` starts what has ended")
        reported = ended
        if wishes.converge:
            wishes.converge = False
            reported = set()
            starts += 1
            _note(settings, "starting", starts=starts - 1)
            _note(settings, "ready", _start_again(system, report), starts)


def _start_again(system: System, report: Report) -> str:
    try:
        system.start()
    except LocalError as error:
        report(str(error))
        return str(error)
    return ""


def _stop(system: System, wishes: _Wishes, report: Report) -> None:
    report("stopping; a second Ctrl-C kills at once")

    def hurry() -> None:
        wishes.on_second_end.wait()
        system.kill_all()

    threading.Thread(target=hurry, name="hurry", daemon=True).start()
    system.close()
    report("stopped")


def say(line: str) -> None:
    """Report to standard output."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)
    sys.stdout.flush()
