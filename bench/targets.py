"""The targets, and the table that says which of them are met. Pure.

Ratios are what counts: both controllers are measured on the same machine, one after the other, so whatever else the
machine does touches both. A target whose figures were requested and are missing is missed.
"""

from collections.abc import Callable, Iterable

import msgspec

from bench import calls
from bench.figures import Figures, Loaded, Measured, Readiness, Report
from bench.show import cell

READY_CALL = "ready, whole system from cold"
RESTART_CALL = "ready, after a start of its own"
JOURNAL_RECORDS = 1_000_000
LOAD_CALL = f"journal of {JOURNAL_RECORDS:,} records, load"
_HEADER = ("call", "Sluice", "real controller", "ratio", "target", "")


class Row(msgspec.Struct, frozen=True):
    """One line of the table. `met` None: there is no target, or nothing to hold against it."""

    call: str
    sluice: str
    peer: str
    ratio: float | None = None
    target: str = ""
    met: bool | None = None
    by: str = ""


FASTER = {
    calls.CREATE_STREAM: 5.0,
    calls.CURRENT_SEGMENTS_ALL: 1.5,
    calls.SCALE: 4.0,
    calls.SEAL_DELETE: 4.0,
    calls.CREATE_TXN: 1.5,
    calls.PING_TXN: 3.0,
    calls.WHOLE_TXN: 5.0,
    calls.COMMITTED_ONE: 3.0,
    calls.COMMITTED_MANY: 3.0,
}
"""How many times faster (p50), or how many times as many per second, than the real controller."""

READY_S = 5.0
"""From the start of our services until they serve, with Kafka and the data plane running."""

JOURNAL_LOAD_S = 5.0


def rows(report: Report) -> list[Row]:
    """All lines of the table."""
    ours = report.sluice.calls if report.sluice else {}
    theirs = report.peer.calls if report.peer else {}
    both = report.sluice is not None and report.peer is not None
    table = [_call(name, ours.get(name), theirs.get(name), both) for name in ours or theirs]
    table += _readiness(_ready(report.sluice), _ready(report.peer))
    if report.journal is not None:
        table.append(_journal(report.journal))
    return table


def missed(table: Iterable[Row]) -> list[str]:
    """A sentence for each target that is missed."""
    return [f"{row.call}: target {row.target}, {row.by}" for row in table if row.met is False]


def noise(report: Report) -> str:
    """How busy the machine was while each controller was measured."""
    parts = (("Sluice", report.sluice), ("real controller", report.peer))
    known = [f"{name} {part.machine_load:g}" for name, part in parts if part and part.machine_load is not None]
    return ", ".join(known) or "not noted"


def render(table: Iterable[Row]) -> str:
    """The table as text."""
    lines = [_HEADER, *(_cells(row) for row in table)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADER))]
    return "\n".join(_aligned(line, widths) for line in lines)


def _call(name: str, ours: Figures | None, theirs: Figures | None, both: bool) -> Row:
    ratio = _ratio(ours, theirs)
    wanted = FASTER.get(name)
    if wanted is None:
        return Row(name, cell(ours), cell(theirs), ratio)
    target = f"≥ {wanted:g}×"
    if not both:
        return Row(name, cell(ours), cell(theirs), ratio, target)
    if ratio is None:
        by = f"no figures (Sluice: {cell(ours)}, real controller: {cell(theirs)})"
        return Row(name, cell(ours), cell(theirs), ratio, target, False, by)
    by = f"measured {ratio:.2f}×, {wanted / ratio - 1:.0%} too slow"
    return Row(name, cell(ours), cell(theirs), ratio, target, ratio >= wanted, by)


def _ratio(ours: Figures | None, theirs: Figures | None) -> float | None:
    """How many times better ours is."""
    if ours is None or theirs is None:
        return None
    if ours.p50_ms and theirs.p50_ms:
        return theirs.p50_ms / ours.p50_ms
    if ours.per_s and theirs.per_s:
        return ours.per_s / theirs.per_s
    return None


def _readiness(ours: Readiness | None, theirs: Readiness | None) -> list[Row]:
    table = []
    if ours is not None and ours.after_kafka_s is not None:
        # Most of it is the wait for the segment stores, which start at the same time; so no target.
        table.append(Row(READY_CALL, f"{ours.after_kafka_s:.1f} s after Kafka", "-"))
    if ours is not None:
        row = _limit(RESTART_CALL, _seconds(ours), ours.from_start_s, READY_S)
        ratio = theirs.from_start_s / ours.from_start_s if theirs is not None else None
        table.append(msgspec.structs.replace(row, peer=_seconds(theirs), ratio=ratio))
    elif theirs is not None:
        table.append(Row(RESTART_CALL, "-", _seconds(theirs)))
    return table


def _ready(measured: Measured | None) -> Readiness | None:
    return measured.readiness if measured is not None else None


def _seconds(readiness: Readiness | None) -> str:
    return f"{readiness.from_start_s:.1f} s" if readiness is not None else "-"


def _journal(loaded: Loaded) -> Row:
    """A shorter journal, of a quick run, says nothing about the target."""
    if loaded.records < JOURNAL_RECORDS:
        return Row(f"journal of {loaded.records:,} records, load", f"{loaded.seconds:.1f} s", "-")
    return _limit(LOAD_CALL, f"{loaded.seconds:.1f} s", loaded.seconds, JOURNAL_LOAD_S)


def _limit(name: str, text: str, seconds: float, limit_s: float) -> Row:
    by = f"measured {seconds:.1f} s, {seconds / limit_s - 1:.0%} too long"
    return Row(name, text, "-", None, f"≤ {limit_s:g} s", seconds <= limit_s, by)


def _cells(row: Row) -> tuple[str, ...]:
    ratio = f"{row.ratio:.2f}×" if row.ratio is not None else "-"
    verdict = {None: "", True: "met", False: "MISSED"}[row.met]
    return (row.call, row.sluice, row.peer, ratio, row.target, verdict)


def _aligned(line: tuple[str, ...], widths: list[int]) -> str:
    first, *middle = zip(line, widths, strict=True)
    align: Callable[[tuple[str, int]], str] = lambda pair: pair[0].rjust(pair[1])  # noqa: E731
    return "  ".join([first[0].ljust(first[1]), *map(align, middle)]).rstrip()
