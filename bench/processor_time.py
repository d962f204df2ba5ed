"""What a process and everything it started have used of the processors; Linux, from /proc."""

import os
from pathlib import Path


def cpu_s(root: int) -> float:
    """The seconds on the processors that the process and its descendants have used so far."""
    stats = [_stat(file) for file in Path("/proc").glob("[0-9]*/stat")]
    family = {root}
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
