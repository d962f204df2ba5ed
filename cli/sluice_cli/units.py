"""How users write and read amounts, times, names and cuts. Pure.

Times are epoch ms inside and UTC outside; amounts are bytes, durations ms.
"""

import re
from datetime import UTC, datetime

from sluice_cli.errors import UsageError

_BYTES = {"": 1, "B": 1, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_TIMES = {"MS": 1, "S": 1000, "M": 60_000, "H": 3_600_000, "D": 86_400_000}
_AMOUNT = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([A-Za-z]*)")
_AGO = re.compile(r"\d+(\.\d+)?\s*[A-Za-z]+")
_EPOCH_MS = re.compile(r"\d{9,}")
_LAST_MS = 253_402_300_799_999
"""The end of the year 9999, after which no time can be shown."""
_SEGMENT = re.compile(r"(\d+)\.#epoch\.(\d+)")


def _amount(text: str, units: dict[str, int], example: str) -> int:
    found = _AMOUNT.fullmatch(text.strip())
    unit = units.get(found[2].upper()) if found else None
    if found is None or unit is None:
        raise UsageError(f"{text!r} is no amount", f"write it like {example}")
    return int(float(found[1]) * unit) if "." in found[1] else int(found[1]) * unit


def size_of(text: str) -> int:
    """Bytes: `1048576`, `100MiB`, `1.5GiB`. Raises UsageError."""
    return _amount(text, _BYTES, "100MiB")


def duration_of(text: str) -> int:
    """Milliseconds: `500ms`, `30s`, `10m`, `2h`, `1d`. Raises UsageError."""
    return _amount(text, _TIMES, "500ms, 30s, 10m, 2h or 1d")


def time_of(text: str, now_ms: int) -> int:
    """Epoch ms: `now`, `-10m` before it, an ISO 8601 time (UTC unless it names a zone), epoch ms. Raises UsageError.

    From 1970 to 9999.
    """
    at_ms = _time_of(text, now_ms)
    if not 0 <= at_ms <= _LAST_MS:
        raise UsageError(f"{text!r} is not between the years 1970 and 9999", "numbers are milliseconds since 1970")
    return at_ms


def moment_of(text: str, now_ms: int) -> int:
    """The same, but not a time to come, of which nothing is known yet. Raises UsageError."""
    at_ms = time_of(text, now_ms)
    if at_ms > now_ms:
        raise UsageError(f"{text!r} is a time to come: it is {show_time(now_ms)} here", "give now, or a time before")
    return at_ms


def since_of(text: str, now_ms: int) -> int:
    """The same; a bare duration, `10m`, is that long ago, too. Raises UsageError."""
    return time_of(f"-{text}" if _AGO.fullmatch(text) else text, now_ms)


def _time_of(text: str, now_ms: int) -> int:
    if text == "now":
        return now_ms
    if text.startswith("-"):
        return now_ms - duration_of(text[1:])
    if _EPOCH_MS.fullmatch(text):
        return int(text) if len(text) <= len(str(_LAST_MS)) else _LAST_MS + 1
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is no time", "write it like 2026-01-31T12:00:00Z, -10m, or in epoch milliseconds"
        ) from None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return round(parsed.timestamp() * 1000)


def show_time(at_ms: int | None) -> str:
    """`2026-01-31 12:00:00.123Z`; empty for no time, the number for one outside the calendar."""
    if at_ms is None:
        return ""
    if not 0 <= at_ms <= _LAST_MS:
        return str(at_ms)
    whole_s, rest_ms = divmod(at_ms, 1000)
    return f"{datetime.fromtimestamp(whole_s, UTC):%Y-%m-%d %H:%M:%S}.{rest_ms:03}Z"


def show_age(since_ms: int, now_ms: int) -> str:
    """How long ago, in the largest unit that fits twice."""
    left = max(0, now_ms - since_ms)
    for unit in ("D", "H", "M", "S"):
        if left >= 2 * _TIMES[unit]:
            return f"{left // _TIMES[unit]}{unit.lower()}"
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
        if ms and ms % _TIMES[unit] == 0:
            return f"{ms // _TIMES[unit]}{unit.lower()}"
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
