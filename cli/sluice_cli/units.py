"""How users write and read sizes, ages, names and cuts; of times see `sluice.lookback.times`. Pure.

Sizes are bytes, durations ms.
"""

import re

from sluice.lookback.times import MS_PER_UNIT, amount_of
from sluice_cli.errors import UsageError

_BYTES = {"": 1, "B": 1, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_SEGMENT = re.compile(r"(\d+)\.#epoch\.(\d+)")


def size_of(text: str) -> int:
    """Bytes: `1048576`, `100MiB`, `1.5GiB`. Raises InvalidTextError."""
    return amount_of(text, _BYTES, "100MiB")


def show_age(since_ms: int, now_ms: int) -> str:
    """How long ago, in the largest unit that fits twice."""
    left = max(0, now_ms - since_ms)
    for unit in ("D", "H", "M", "S"):
        if left >= 2 * MS_PER_UNIT[unit]:
            return f"{left // MS_PER_UNIT[unit]}{unit.lower()}"
    return f"{left}ms"


def show_size(count: int) -> str:
    """`1.5 GiB`, `17 B`."""
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} B"


def show_duration(ms: int) -> str:
    """The largest unit that says it exactly: `2d`, `90m`, `1500ms`."""
    for unit in ("D", "H", "M", "S"):
        if ms and ms % MS_PER_UNIT[unit] == 0:
            return f"{ms // MS_PER_UNIT[unit]}{unit.lower()}"
    return f"{ms}ms"


def scoped(text: str, what: str = "stream") -> tuple[str, str]:
    """`scope/name` taken apart. Raises UsageError."""
    scope, slash, name = text.partition("/")
    if not (slash and scope and name) or "/" in name:
        raise UsageError(f"{text!r} is no {what}", f"write it as scope/{what}, for example demo/orders")
    return scope, name


def segment_of(text: str) -> int:
    """A segment's id: the number itself, or its name `3.#epoch.1`. Raises UsageError."""
    named = _SEGMENT.fullmatch(text)
    if named:
        return (int(named[2]) << 32) | int(named[1])
    if text.isdecimal():
        return int(text)
    raise UsageError(f"{text!r} is no segment", "write its id (4294967300) or its name (4.#epoch.1)")


def segment_text(id: int) -> str:
    """The name of a segment within its stream: `4.#epoch.1`."""
    return f"{id & 0xFFFFFFFF}.#epoch.{id >> 32}"


def listed(texts: list[str]) -> list[str]:
    """What was given in several options, or in one with commas."""
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def cut_of(texts: list[str]) -> dict[str, int]:
    """`SEGMENT=OFFSET` pairs as the API wants a cut; -1 for a segment not yet reached. Raises UsageError."""
    cut = {}
    for part in listed(texts):
        segment, equals, offset = part.rpartition("=")
        if not equals or not re.fullmatch(r"-1|\d+", offset):
            raise UsageError(f"{part!r} is no part of a cut", "write it as SEGMENT=OFFSET, for example 0=1048576")
        cut[str(segment_of(segment))] = int(offset)
    if not cut:
        raise UsageError("a cut needs at least one segment", "write it as SEGMENT=OFFSET, for example 0=1048576")
    return cut


def ranges_of(texts: list[str]) -> list[list[float]]:
    """`LOW..HIGH` pairs. Raises UsageError."""
    ranges = []
    for part in listed(texts):
        low, dots, high = part.partition("..")
        try:
            ranges.append([float(low), float(high)])
        except ValueError:
            dots = ""
        if not dots:
            raise UsageError(f"{part!r} is no range of keys", "write it as LOW..HIGH, for example 0..0.5")
    return ranges
