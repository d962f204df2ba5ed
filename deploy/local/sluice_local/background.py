"""A system in the background: `up`, `down` and `status` from another process than the supervisor.

They talk to the supervisor by signals and read what it writes to its log and its record. Each command is a process of
its own with one thread.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sluice_local import checks
from sluice_local.errors import AlreadyUp, LocalError, NotUp, PartFailed
from sluice_local.parts import parts_of
from sluice_local.process import ProcessRecord
from sluice_local.settings import LocalSettings, variable_of
from sluice_local.supervisor import Ownership, SupervisorRecord, settings_of_running
from sluice_local.system import record_path

_LOOK_S = 0.1
_PAUSE = threading.Event()
"""Never set: waiting for it is waiting for the time limit."""


def up(settings: LocalSettings) -> None:
    """Start a system that outlives this process and wait until it is ready.

    On a system that is up, start again what has ended, with the settings it was started with. Raises LocalError if the
    system is not ready, or if it is up with other settings.
    """
    checks.require_state_folder(settings.home)
    log = settings.logs_dir / "supervisor.log"
    record = SupervisorRecord.read(settings)
    if record is not None:
        _require_its_settings(settings)
        _converge(settings, record, log)
        return
    with Ownership(settings):
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


def _follow_start(settings: LocalSettings, supervisor: subprocess.Popen[bytes], log: Path, offset: int) -> None:
    while True:
        ended = supervisor.poll() is not None
        offset = _show_from(log, offset)
        if ended:
            raise LocalError(f"the system did not start: see above, or {log}")
        record = SupervisorRecord.read(settings)
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
    running = settings_of_running(settings)
    requested = sorted(settings.model_fields_set - {"home"})
    others = [field for field in requested if getattr(settings, field) != getattr(running, field)]
    if others:
        raise AlreadyUp(
            f"a system is up with other settings ({'; '.join(_difference(f, settings, running) for f in others)}): "
            "end it with `make down`, which keeps the data, before `make up`"
        )


def _difference(field: str, settings: LocalSettings, running: LocalSettings) -> str:
    """Both values, where they are numbers: addresses may hold a password."""
    here, there = getattr(settings, field), getattr(running, field)
    values = f" is {there:g} there, not {here:g}" if isinstance(here, int | float) else ""
    return f"{variable_of(field)}{values}"


def _converge(settings: LocalSettings, record: SupervisorRecord, log: Path) -> None:
    offset = log.stat().st_size if log.exists() else 0
    starts = 0
    if record.state == "ready":
        if all(status.ready for status in statuses(settings)):
            print("already up: see `make status`")
            return
        print("up, but not all parts are ready: starting again what has ended")
        starts = record.starts
        os.kill(record.pid, signal.SIGUSR1)
    else:
        print(f"another command is at it already ({record.state}): waiting for it")
    while (now := SupervisorRecord.read(settings)) is not None and now.starts <= starts:
        offset = _show_from(log, offset)
        _PAUSE.wait(_LOOK_S)
    if now is None:
        raise PartFailed(f"the system ended: see {log}")
    if now.message:
        raise PartFailed(now.message)
    _show_from(log, offset)
    unready = [status for status in statuses(settings) if not status.ready]
    if unready:
        raise PartFailed(
            "\n".join(f"{status.name} is not ready: {status.reason}; log {status.log}" for status in unready)
        )


def down(settings: LocalSettings) -> bool:
    """End a system and wait for the end; return whether there was one."""
    record = SupervisorRecord.read(settings)
    if record is None:
        return False
    os.kill(record.pid, signal.SIGTERM)
    while SupervisorRecord.read(settings) is not None:
        _PAUSE.wait(_LOOK_S)
    return True


@dataclass(frozen=True, slots=True)
class Status:
    """What is known about one part at this moment."""

    name: str
    pid: int | None
    ready: bool
    reason: str
    address: str
    log: Path


def statuses(settings: LocalSettings) -> Iterator[Status]:
    """Ask every part whether it is ready."""
    for part in parts_of(settings_of_running(settings)):
        record = ProcessRecord.read(record_path(settings, part.name))
        if record is None:
            yield Status(part.name, None, False, "not started", part.address, part.log)
        elif not record.is_alive():
            yield Status(part.name, None, False, "ended", part.address, part.log)
        else:
            reason = part.probe()
            yield Status(part.name, record.pid, reason is None, reason or "ready", part.address, part.log)


def status_table(settings: LocalSettings) -> tuple[str, bool]:
    """Return the table for people, and whether all parts are ready; raise NotUp if there is no system."""
    supervisor = SupervisorRecord.read(settings)
    if supervisor is None:
        raise NotUp(f"no system is up on {settings.home}: start one with `make up` or `make run`")
    found = list(statuses(settings))
    rows = [("part", "pid", "state", "address", "log")]
    rows += [(one.name, str(one.pid or "-"), one.reason, one.address, str(one.log)) for one in found]
    rows.append(("supervisor", str(supervisor.pid), supervisor.state, "-", str(settings.logs_dir / "supervisor.log")))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines), all(one.ready for one in found)
