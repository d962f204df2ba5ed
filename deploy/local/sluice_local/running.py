"""A system that runs, as another process sees it: what its parts are, whether they are ready, and how to end it.

It goes by what the supervisor wrote into `run` when it started the parts, not by the settings of the environment, which
may have changed or become invalid since. Only the standard library is used, so that it works without an environment.
Each command is a process of its own with one thread.
"""

import json
import os
import shutil
import signal
import textwrap
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from sluice_local.errors import AlreadyUp, NotUp
from sluice_local.home import COMMAND, logs_dir, run_dir
from sluice_local.ownership import Ownership, SupervisorRecord
from sluice_local.part import Part, StopRank
from sluice_local.probes import Look, Probe
from sluice_local.process import ProcessRecord, log_tail

_LOOK_S = 0.1
_NO_SPACE = "no space left on device"
_FULL_BYTES = 64 * 2**20
_LINE, _MIN_STATE = 120, 40
"""How long a line of the table is, and what a state has of it in any case."""
"""Kafka and BookKeeper allocate files in larger pieces than that."""
_TRUE = ("1", "true", "yes", "on", "t", "y")
"""As the settings read a truth value."""
_PAUSE = threading.Event()
"""Never set: waiting for it is waiting for the time limit."""


@dataclass(frozen=True, slots=True)
class KnownPart:
    """What `run/parts.json` says of a part."""

    name: str
    address: str
    log: str
    folder: str
    probe: Probe
    may_be_late: bool
    is_service: bool

    @classmethod
    def of(cls, described: dict[str, Any]) -> Self:
        """Return the part that was written down as JSON."""
        return cls(**{**described, "probe": Probe.of(described["probe"])})


def write_parts(home: Path, parts: Iterable[Part]) -> None:
    """Write to `run/parts.json` what other processes need to know of the parts; replace the file at once."""
    known = [
        KnownPart(
            part.name,
            part.address,
            str(part.log),
            str(part.folder),
            part.probe,
            part.may_be_late,
            part.stop_rank is StopRank.SERVICE,
        )
        for part in parts
    ]
    path = _parts_path(home)
    new = path.with_suffix(f".{os.getpid()}.new")
    new.write_text(json.dumps([asdict(part) for part in known], indent=2) + "\n")
    new.replace(path)


def _parts_path(home: Path) -> Path:
    return run_dir(home) / "parts.json"


def settings_path(home: Path) -> Path:
    """Return the file with the settings that the system was started with."""
    return run_dir(home) / "settings.json"


def process_record_path(home: Path, name: str) -> Path:
    """Return the file that tells about the process of a part."""
    return run_dir(home) / f"{name}.json"


@dataclass(frozen=True, slots=True)
class Status:
    """What is known about one part at this moment."""

    part: KnownPart
    pid: int | None
    ready: bool
    reason: str


def statuses(home: Path) -> Iterator[Status]:
    """Ask every part whether it is ready."""
    return (_status(home, part) for part in _known_parts(home))


def _known_parts(home: Path) -> list[KnownPart]:
    return [KnownPart.of(part) for part in json.loads(_parts_path(home).read_text())]


def _status(home: Path, part: KnownPart) -> Status:
    record = ProcessRecord.read(process_record_path(home, part.name))
    if record is None:
        return Status(part, None, False, "not started")
    if not record.is_alive():
        return Status(part, None, False, f"ended{_no_space_in(part.log)}")
    ready, remark = part.probe.look()
    return Status(part, record.pid, ready, remark or "ready")


def _no_space_in(log: str) -> str:
    """What to add to the end of a part whose last words are that the disk was full."""
    return f": {_NO_SPACE}" if _NO_SPACE in log_tail(Path(log), lines=100, limit_bytes=65_536).lower() else ""


def _disks(home: Path, parts: Iterable[KnownPart]) -> Mapping[Path, Look]:
    """Whether each disk that the system writes to has room, by the first folder on it: data may be linked elsewhere."""
    folders = [home, logs_dir(home), *(Path(part.folder) for part in parts)]
    by_disk: dict[int, Path] = {}
    for folder in filter(Path.exists, folders):
        by_disk.setdefault(folder.stat().st_dev, folder)
    return {folder: _room(folder) for folder in by_disk.values()}


def _room(folder: Path) -> Look:
    free = shutil.disk_usage(folder).free
    text = f"{free // 2**20:,} MiB are free"
    return Look(False, f"{_NO_SPACE}: {text}") if free < _FULL_BYTES else Look(True, text)


def _other_kind(home: Path) -> str:
    """What to say to one who wants a secured system to be shown, where this is none."""
    wanted = os.environ.get("SECURE", "").lower() in _TRUE
    if not wanted or json.loads(settings_path(home).read_text())["secure"]:
        return ""
    return f"\nThis system is not secured: end it with `{COMMAND} down`, then start one with SECURE=1."


def status_table(home: Path) -> tuple[str, bool]:
    """Return the table for people, and whether all parts are ready and the disks have room.

    Raises NotUp if there is no system.
    """
    supervisor = SupervisorRecord.read(home)
    if supervisor is None:
        raise _not_up(home)
    found = list(statuses(home))
    rows = [("part", "pid", "address", "state")]
    rows += [(one.part.name, str(one.pid or "-"), one.part.address, one.reason) for one in found]
    rows.append(("supervisor", str(supervisor.pid), "-", supervisor.state))
    disks = _disks(home, (one.part for one in found))
    rows += [("disk", "-", str(folder), disk.remark) for folder, disk in disks.items()]
    ready = all(one.ready for one in disks.values()) and all(one.ready for one in found)
    return f"{_table(rows)}\nThe log of each part: {logs_dir(home)}/PART.log{_other_kind(home)}", ready


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows whose last cell goes on below itself where it does not fit into the line."""
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    begin = sum(width + 2 for width in widths)
    lines = []
    for *cells, last in rows:
        first, *more = textwrap.wrap(last, max(_LINE - begin, _MIN_STATE)) or [""]
        lines.append("".join(f"{cell:{width}}  " for cell, width in zip(cells, widths, strict=True)) + first)
        lines += [" " * begin + part for part in more]
    return "\n".join(line.rstrip() for line in lines)


def down(home: Path) -> bool:
    """End a system and wait for the end; return whether there was one."""
    record = SupervisorRecord.read(home)
    if record is None:
        return False
    os.kill(record.pid, signal.SIGTERM)
    while SupervisorRecord.read(home) is not None:
        _PAUSE.wait(_LOOK_S)
    return True


def stop_services(home: Path) -> None:
    """Have a system stop its services and nothing else, and wait for their end. Raises NotUp if there is none."""
    if (record := SupervisorRecord.read(home)) is None:
        raise _not_up(home)
    services = [process_record_path(home, part.name) for part in _known_parts(home) if part.is_service]
    os.kill(record.pid, signal.SIGUSR2)
    while any(path.exists() for path in services):
        _PAUSE.wait(_LOOK_S)
        if SupervisorRecord.read(home) is None:
            return


def _not_up(home: Path) -> NotUp:
    return NotUp(f"no system is up on {home}: start one with `{COMMAND} up`")


def clean(home: Path) -> bool:
    """Remove the state folder, and a link to it; return whether there was one.

    Raises AlreadyUp while a system is up on it.
    """
    if not home.exists():
        return False
    try:
        with Ownership(home):
            shutil.rmtree(home.resolve())
        if home.is_symlink():
            home.unlink()
    except AlreadyUp:
        raise AlreadyUp(f"a system is up on {home}: stop it first, with `{COMMAND} down`") from None
    return True
