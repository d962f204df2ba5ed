"""`up`: a system in the background, started from another process than its supervisor.

It talks to the supervisor by signals and reads what that writes to its log and its record. One thread.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from sluice_local import checks
from sluice_local.errors import AlreadyUp, LocalError, PartFailed
from sluice_local.home import COMMAND
from sluice_local.ownership import Ownership, SupervisorRecord
from sluice_local.running import statuses
from sluice_local.settings import LocalSettings, variable_of
from sluice_local.supervisor import passed_on, settings_of_running

_LOOK_S = 0.1
_PAUSE = threading.Event()
"""Never set: waiting for it is waiting for the time limit."""


def up(settings: LocalSettings) -> None:
    """Start a system that outlives this process and wait until it is ready.

    On a system that is up, start again what has ended, with the settings it was started with. One that is being stopped
    has ended before another is started. Raises LocalError if the system is not ready, or if it is up with other
    settings.
    """
    checks.require_folders(settings.home, settings.data_dir)
    log = settings.logs_dir / "supervisor.log"
    record = _unless_stopping(settings.home)
    if record is not None:
        _require_its_settings(settings)
        _converge(settings, record, log)
        return
    with Ownership(settings.home):
        pass
    log.parent.mkdir(parents=True, exist_ok=True)
    offset = log.stat().st_size if log.exists() else 0
    with log.open("ab") as output:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "sluice_local", "supervise"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _follow_start(settings, supervisor, log, offset)
    except KeyboardInterrupt:
        supervisor.terminate()
        supervisor.wait()
        raise


def _unless_stopping(home: Path) -> SupervisorRecord | None:
    """Return the record of a system that is up, or None; wait for the end of one that is being stopped."""
    record = SupervisorRecord.read(home)
    if record is not None and record.state == "stopping":
        print("a system is being stopped: waiting for its end", flush=True)
    while record is not None and record.state == "stopping":
        _PAUSE.wait(_LOOK_S)
        record = SupervisorRecord.read(home)
    return record


def _follow_start(settings: LocalSettings, supervisor: subprocess.Popen[bytes], log: Path, offset: int) -> None:
    while True:
        ended = supervisor.poll() is not None
        offset = _show_from(log, offset)
        if ended:
            raise LocalError(f"the system did not start: see above, or {log}")
        record = SupervisorRecord.read(settings.home)
        if record is not None and record.pid == supervisor.pid and record.state == "ready":
            _show_from(log, offset)
            return
        _PAUSE.wait(_LOOK_S)


def _show_from(log: Path, offset: int) -> int:
    if not log.exists():  # `run` shows everything on its own terminal and writes none
        return 0
    with log.open("rb") as file:
        file.seek(offset)
        text = file.read()
    sys.stdout.write(text.decode(errors="replace"))
    sys.stdout.flush()
    return offset + len(text)


def _require_its_settings(settings: LocalSettings) -> None:
    """Raise AlreadyUp if the environment says something else than what the system was started with."""
    running, passed = settings_of_running(settings)
    requested = sorted(settings.model_fields_set - {"home"})
    fields = [field for field in requested if getattr(settings, field) != getattr(running, field)]
    others = [_difference(field, settings, running) for field in fields]
    others += [name for name, hashed in passed_on(running).items() if passed.get(name) != hashed]
    if others:
        raise AlreadyUp(
            f"a system is up with other settings ({'; '.join(others)}): "
            f"end it with `{COMMAND} down`, which keeps the data, before `{COMMAND} up`"
        )


def _difference(field: str, settings: LocalSettings, running: LocalSettings) -> str:
    """Both values, where they are numbers: addresses may hold a password."""
    here, there = getattr(settings, field), getattr(running, field)
    values = f" is {there:g} there, not {here:g}" if isinstance(here, int | float) else ""
    return f"{variable_of(field)}{values}"


def _converge(settings: LocalSettings, record: SupervisorRecord, log: Path) -> None:
    offset = log.stat().st_size if log.exists() else 0
    starts = record.starts
    if record.state == "ready":
        if all(status.ready for status in statuses(settings.home)):
            print(f"already up: see `{COMMAND} status`")
            return
        print("up, but not all parts are ready: starting again what has ended")
        os.kill(record.pid, signal.SIGUSR1)
    else:
        print(f"another command is at it already ({record.state}): waiting for it")
    while (now := SupervisorRecord.read(settings.home)) is not None and now.starts <= starts:
        offset = _show_from(log, offset)
        _PAUSE.wait(_LOOK_S)
    if now is None:
        raise PartFailed(f"the system ended: see {log}")
    _show_from(log, offset)
    if now.message:
        # The supervisor of `run` says it on its own terminal.
        raise PartFailed(f"not all is ready: see above, or {log}" if log.exists() else now.message)
