"""How the statistics of a stream are shown."""

from typing import Any

from sluice.lookback.times import show_time
from sluice_cli.output import Output

COLUMNS = ("from", ">opened", ">committed", ">aborted", ">mean ms", ">longest ms", "why aborted", "operations")


def window_row(window: dict[str, Any]) -> tuple[object, ...]:
    timed = window["timed"]
    return (
        show_time(window["begin"]).removesuffix(":00.000Z"),
        window["opened"],
        window["committed"],
        sum(window["aborted"].values()),
        round(window["totalMs"] / timed) if timed else None,
        window["longestMs"] if timed else None,
        _counts(window["aborted"]),
        _counts(window["operations"]),
    )


def draw_statistics(out: Output, stream: str, found: dict[str, Any]) -> None:
    """A line for each window, the latest first, and how old the figures are."""
    if found.get("asOf") is None:
        out.text("nothing was counted yet: the statistics are starting, or do not run")
        return
    rows = (window_row(window) for window in found["items"])
    out.table(COLUMNS, rows, empty=f"nothing happened to {stream} for as long as it is counted")
    out.text(f"times are UTC; counted until {show_time(found['asOf'])}, {found['ageS']:.0f} s ago")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
