"""Times and durations as users write and read them. Pure.

Times are epoch ms inside and UTC outside; durations are ms.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from sluice.lookback.errors import InvalidTextError

MS_PER_UNIT = {"MS": 1, "S": 1000, "M": 60_000, "H": 3_600_000, "D": 86_400_000}
_AMOUNT = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([A-Za-z]*)")
_AGO = re.compile(r"\d+(\.\d+)?\s*[A-Za-z]+")
_EPOCH_MS = re.compile(r"\d{9,}")
_LAST_MS = 253_402_300_799_999
"""The end of the year 9999, after which no time can be shown."""


def amount_of(text: str, units: Mapping[str, int], example: str) -> int:
    """A number and its unit, as the smallest of the units. Raises InvalidTextError."""
    found = _AMOUNT.fullmatch(text.strip())
    unit = units.get(found[2].upper()) if found else None
    if found is None or unit is None:
        raise InvalidTextError(f"{text!r} is no amount", f"write it like {example}")
    return int(float(found[1]) * unit) if "." in found[1] else int(found[1]) * unit


def duration_of(text: str) -> int:
    """Milliseconds: `500ms`, `30s`, `10m`, `2h`, `1d`. Raises InvalidTextError."""
    return amount_of(text, MS_PER_UNIT, "500ms, 30s, 10m, 2h or 1d")


def time_of(text: str, now_ms: int) -> int:
    """Epoch ms: `now`, `-10m` before it, an ISO 8601 time (UTC unless it names a zone), epoch ms.

    From 1970 to 9999. Raises InvalidTextError.
    """
    at_ms = _time_of(text, now_ms)
    if not 0 <= at_ms <= _LAST_MS:
        raise InvalidTextError(
            f"{text!r} is not between the years 1970 and 9999", "numbers are milliseconds since 1970"
        )
    return at_ms


def moment_of(text: str, now_ms: int) -> int:
    """The same, but not a time to come, of which nothing is known yet. Raises InvalidTextError."""
    at_ms = time_of(text, now_ms)
    if at_ms > now_ms:
        raise InvalidTextError(
            f"{text!r} is a time to come: it is {show_time(now_ms)} here", "give now, or a time before"
        )
    return at_ms


def since_of(text: str, now_ms: int) -> int:
    """The same; a bare duration, `10m`, is that long ago, too. Raises InvalidTextError."""
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
        raise InvalidTextError(
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
