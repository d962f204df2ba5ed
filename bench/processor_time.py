"""What processes and everything they started have used of the processors; Linux, from /proc.

The kernel gives it in ticks of 10 ms, so what is read before and after has to be many of those apart.
"""

import os
from collections.abc import Mapping
from pathlib import Path

Roots = Mapping[str, list[int]]
"""By name, the processes that count together, each with its descendants."""


def machine_s() -> float:
    """The seconds that all processors together have worked so far, whoever for."""
    user, nice, system, _idle, _waits, *more = map(int, Path("/proc/stat").read_text().partition("\n")[0].split()[1:9])
    return (user + nice + system + sum(more)) / os.sysconf("SC_CLK_TCK")


def cpu_s(root: int) -> float:
    """The seconds on the processors that the process and its descendants have used so far."""
    return cpu_by_name({"": [root]})[""]


def cpu_by_name(roots: Roots) -> dict[str, float]:
    """The same for each name, from one look at all processes."""
    stats = [_stat(file) for file in Path("/proc").glob("[0-9]*/stat")]
    return {name: _family_s(set(pids), stats) for name, pids in roots.items()}


def _family_s(family: set[int], stats: list[tuple[int, int, int]]) -> float:
    # Children come after their parents, but numbers begin anew one day.
    while more := {pid for pid, parent, _ in stats if parent in family} - family:
        family |= more
    return sum(ticks for pid, _, ticks in stats if pid in family) / os.sysconf("SC_CLK_TCK")


def _stat(file: Path) -> tuple[int, int, int]:
    """A process, its parent, and the ticks that it and its children that have ended used."""
    try:
        fields = file.read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return -1, -1, 0
    return int(file.parent.name), int(fields[1]), sum(map(int, fields[11:15]))


def memory_mib(root: int) -> tuple[int, int]:
    """MiB of memory that the process has resident now, and the most it had; its descendants not included."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{root}/status").read_text().splitlines())
    now, most = (int(fields[name].split()[0]) // 1024 for name in ("VmRSS", "VmHWM"))
    return now, most
