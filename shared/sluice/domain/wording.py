"""How durations, amounts and lists read in the reasons of decisions."""

from collections.abc import Sequence

_DURATIONS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1000, "second"))
_AMOUNTS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_NAMED = 5


def duration(ms: int) -> str:
    """In the largest unit that gives at least two of it, or exactly one."""
    for length, unit in _DURATIONS:
        if ms >= 2 * length or ms == length:
            count = ms // length
            return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return f"{ms} ms"


def amount(count: int) -> str:
    for size, unit in _AMOUNTS:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def some(items: Sequence[object]) -> str:
    """The first few of them, and how many more there are."""
    named = ", ".join(str(item) for item in items[:_NAMED])
    return named if len(items) <= _NAMED else f"{named} and {len(items) - _NAMED} more"
