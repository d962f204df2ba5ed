"""What tests see of processes from the outside."""

from pathlib import Path


def stands_still(pid: int) -> bool:
    """Whether all threads of a process are stopped: the signal reaches one after the other."""
    stats = [stat.read_text() for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)
