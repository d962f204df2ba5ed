"""The process that owns a system: in the foreground for `run`, detached for `up`.

It starts everything, says what happens, and stays until a signal ends it. It restarts nothing by itself: a part that
ends is reported once, and started again only by `up` on a system that is up.

Concurrency: one supervisor per state folder, held by a file lock that the kernel lets go with the process. Signals are
turned into events on the main thread, which does all the work.
"""

import json
import os
import re
import signal
import sys
import threading
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import FrameType

from sluice_local import checks, security, services
from sluice_local.errors import LocalError
from sluice_local.home import COMMAND
from sluice_local.ownership import Ownership, State, SupervisorRecord
from sluice_local.part import StopRank
from sluice_local.process import start_ticks
from sluice_local.running import settings_path, write_parts
from sluice_local.settings import LocalSettings, variable_of
from sluice_local.system import Report, System, addresses

_LOOK_S = 0.2
_OF_CLIENTS = re.compile(r"SLUICE_(API|CONTROLLER|CA|USER|PASSWORD|PASSWORD_FILE|INGEST_\w+)")
"""What the command line and `sluice ingest` go by, and no service."""


class _Wishes:
    """What signals have requested."""

    def __init__(self) -> None:
        self.changed = threading.Event()
        self.end: list[int] = []
        """The signals to end that have come."""
        self.converge = False
        self.stop_services = False
        self.on_second_end = threading.Event()

    def install(self) -> None:
        """Have the signals write here."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_end)
        signal.signal(signal.SIGUSR1, self._on_converge)
        signal.signal(signal.SIGUSR2, self._on_stop_services)

    def _on_end(self, number: int, _frame: FrameType | None) -> None:
        self.end.append(number)
        if len(self.end) > 1:
            self.on_second_end.set()
        self.changed.set()

    def _on_converge(self, _number: int, _frame: FrameType | None) -> None:
        self.converge = True
        self.changed.set()

    def _on_stop_services(self, _number: int, _frame: FrameType | None) -> None:
        self.stop_services = True
        self.changed.set()


def passed_on(settings: LocalSettings) -> dict[str, str]:
    """What services take from the environment besides what their parts say: the variables, each with a hash."""
    ours = {variable_of(field) for field in LocalSettings.model_fields}
    said = ours.union(*(part.environment for part in services.parts(settings)))
    given = {name for name in os.environ if name.startswith("SLUICE_") and not _OF_CLIENTS.fullmatch(name)}
    return {name: sha256(os.environ[name].encode()).hexdigest() for name in sorted(given - said)}


def settings_of_running(settings: LocalSettings) -> tuple[LocalSettings, dict[str, str]]:
    """Return what the system on this state folder was started with, and passed on; one's own may differ."""
    stored, hashes = (path.read_text() for path in _paths(settings))
    return LocalSettings.model_validate_json(stored), json.loads(hashes)


def _paths(settings: LocalSettings) -> tuple[Path, Path]:
    return settings_path(settings.home), settings.run_dir / "passed-on.json"


def store(settings: LocalSettings) -> None:
    """For this user alone: addresses may hold passwords."""
    stored = settings.model_dump_json(indent=2), json.dumps(passed_on(settings), indent=2)
    for path, content in zip(_paths(settings), stored, strict=True):
        path.touch(mode=0o600)
        path.chmod(0o600)
        path.write_text(content + "\n")


def supervise(settings: LocalSettings, report: Report) -> int:
    """Run a system until a signal ends it. Return the exit code: 0 if it was ready before."""
    checks.require_java()
    checks.require_folders(settings.home, settings.data_dir)
    with Ownership(settings.home):
        wishes = _Wishes()
        wishes.install()
        store(settings)
        system = System(settings, report)
        write_parts(settings.home, system.parts.values())
        _note(settings, "starting")
        try:
            failure = _start(system, settings, wishes, report)
            if not failure and not wishes.end:
                _watch(system, settings, wishes, report)
        finally:
            with suppress(OSError):
                # The disk may be full.
                _note(settings, "stopping")
            _stop(system, wishes, report)
        if failure:
            report(failure)
        return 1 if failure else 0


def _note(settings: LocalSettings, state: State, message: str = "", starts: int = 0) -> None:
    pid = os.getpid()
    SupervisorRecord(pid, start_ticks(pid) or 0, state, message, starts).write(settings.home)


def _start(system: System, settings: LocalSettings, wishes: _Wishes, report: Report) -> str:
    """Start all parts. Return the reason of a failure, empty if there is none or a signal came."""
    began = time.monotonic()
    report(f"starting {len(system.parts)} parts; state in {settings.home}")
    failure = _start_missing(system, wishes)
    if not failure and not wishes.end:
        connecting = security.how_to_connect(settings)
        report(f"ready after {time.monotonic() - began:.1f} s:\n{addresses(system.parts.values())}{connecting}")
        _note(settings, "ready", starts=1)
    return failure


def _start_missing(system: System, wishes: _Wishes) -> str:
    """Start what does not run, on a thread, so that a signal can end that. Return the reason of a failure."""
    failures: list[str] = []

    def attempt() -> None:
        try:
            system.start(wait_for_late=False)
        except LocalError as error:
            failures.append(str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the start has failed
            failures.append(f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=attempt, name="start")
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_S)
        if wishes.end:
            system.abandon_start()
            thread.join()
            return ""
    return "".join(failures)


def _watch(system: System, settings: LocalSettings, wishes: _Wishes, report: Report) -> None:
    reported: set[str] = set()
    starts = 1
    while not wishes.end:
        wishes.changed.wait(_LOOK_S)
        wishes.changed.clear()
        ended = set(system.ended())
        for name in sorted(ended - reported):
            report(f"{system.obituary(name)}\nit is not restarted by itself: `{COMMAND} up` starts what has ended")
        reported = ended
        if wishes.stop_services:
            wishes.stop_services = False
            report("stopping the services; all else goes on")
            system.stop_all(StopRank.SERVICE)
        if wishes.converge:
            wishes.converge = False
            reported = set()
            starts += 1
            _note(settings, "starting", starts=starts - 1)
            if failure := _start_missing(system, wishes):
                report(failure)
            _note(settings, "ready", failure, starts)


def _stop(system: System, wishes: _Wishes, report: Report) -> None:
    report("stopping; a second Ctrl-C kills at once" if signal.SIGINT in wishes.end else "stopping")

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
