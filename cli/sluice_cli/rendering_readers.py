"""How the readers of a group are shown: a row for each segment, by reader, and what is yet to be read."""

from collections.abc import Iterator
from typing import Any

from sluice.lookback.times import show_time
from sluice_cli.output import Output
from sluice_cli.units import segment_text, show_duration, show_size

_COLUMNS = ("reader", "stream", "segment", ">offset")


def draw_readers(out: Output, found: dict[str, Any]) -> None:
    """Readers without a segment have a row, too."""
    out.table(_COLUMNS, _rows(found), empty="no reader is online, and nothing waits for one")
    lag, at_least = found["lag"], "" if found["complete"] else "at least "
    age = lag.get("ms")
    out.fields(
        (
            ("yet to be read", f"{at_least}{show_size(lag['bytes'])}" if "bytes" in lag else "unknown"),
            ("the oldest of it", f"{show_duration(age)} old" if age else ""),
            ("last checkpoint", show_time(found.get("checkpointAt"))),
        )
    )


def _rows(found: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    for reader in found["readers"]:
        if not reader["segments"]:
            yield reader["name"], "", "", ""
        for held in reader["segments"]:
            yield reader["name"], *_held(held)
    for held in found["unassigned"]:
        yield "(waits for a reader)", *_held(held)


def _held(held: dict[str, Any]) -> tuple[object, ...]:
    offset = held["offset"]
    return held["stream"], segment_text(held["segment"]), offset if offset >= 0 else "at its end"
