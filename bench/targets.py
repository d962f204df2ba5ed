"""The targets, and the table that says which of them are met. Pure.

Ratios to the real controller are what counts: both are measured on the same machine, one after the other, so whatever
else the machine does touches both. Floors (`floors.py`) are of the same run, too. A target whose figures were requested
and are missing is missed; one that cannot be judged by this run, such as a ratio without the real controller, is not.
"""

from collections.abc import Iterable, Iterator

import msgspec

from bench import calls, floors
from bench.figures import CpuTimes, Figures, Loaded, Measured, Readiness, Report
from bench.idle import KAFKA as IDLE_KAFKA
from bench.idle import SERVICES as IDLE_SERVICES
from bench.idle import SPARK as IDLE_SPARK
from bench.show import KAFKA, SERVICES, SERVICES_AND_KAFKA, STORE, aligned, cell

READY_CALL = "ready, whole system from cold"
RESTART_CALL = "ready, after a start of its own"
JOURNAL_RECORDS = 1_000_000
LOAD_CALL = f"journal of {JOURNAL_RECORDS:,} records, load"
_HEADER = ("call", "floor", "Sluice", "of floor", "real controller", "ratio", "target", "")


class Target(msgspec.Struct, frozen=True):
    """What is to be reached. `met` None: this run has nothing to hold against it. `by` says what was measured."""

    text: str
    met: bool | None = None
    by: str = ""


class Row(msgspec.Struct, frozen=True):
    """One line of the table."""

    call: str
    sluice: str
    peer: str
    ratio: float | None = None
    targets: tuple[Target, ...] = ()
    floor_ms: float | None = None
    of_floor: float | None = None

    @property
    def met(self) -> bool | None:
        """False if a target is missed, None if not all can be judged."""
        verdicts = {target.met for target in self.targets}
        return False if False in verdicts else None if None in verdicts or not verdicts else True


FASTER = {
    calls.CREATE_STREAM: 12.0,
    calls.CURRENT_SEGMENTS_ALL: 2.5,
    calls.SCALE: 5.0,
    calls.SEAL_DELETE: 4.0,
    calls.CREATE_TXN: 4.0,
    calls.PING_TXN: 2.5,
    calls.COMMIT_TXN: 7.0,
    calls.WHOLE_ONE: 2.5,
    calls.WHOLE_EACH: 2.5,
    calls.WHOLE_EMPTY: 4.0,
    calls.COMMITTED_ONE: 3.0,
    calls.COMMITTED_MANY: 3.0,
    calls.CREATE_STREAM_ALL: 6.0,
}
"""How many times faster (p50), or how many times as many per second, than the real controller."""

OF_FLOOR = dict.fromkeys((calls.CREATE_STREAM, calls.WHOLE_ONE, calls.WHOLE_EACH, calls.WHOLE_EMPTY), 1.6)
"""At most so many times the floor (p50)."""

P99_MS = {calls.CREATE_TXN: 20.0, calls.PING_TXN: 20.0}
"""The 99th percentile, at most. That of each lone call is at most the real controller's, besides."""

COMMIT_SHARE = 0.2
"""Committed transactions per second need not be faster if a commit takes at most this share of its CPU time in ours."""

CPU_MS = {calls.CREATE_TXN: 3.2, calls.PING_TXN: 2.1, calls.COMMIT_TXN: 2.1, calls.CREATE_STREAM: 7.0}
"""CPU time of our services and Kafka together per call, at most."""

IDLE_PERCENT = {IDLE_SERVICES: 3.0, IDLE_SPARK: 5.0, IDLE_KAFKA: 6.0}
"""Of one core, at most, without calls."""

IDLE_RECORDS_PER_MIN = 4.0
"""To any topic, at most, without calls."""

READY_S = 5.0
"""From the start of our services until they serve, with Kafka and the data plane running."""

JOURNAL_LOAD_S = 5.0


def rows(report: Report) -> list[Row]:
    """All lines of the table."""
    ours, theirs = _calls_of(report.sluice), _calls_of(report.peer)
    table = [_call(name, report) for name in ours or theirs]
    table += _readiness(_ready(report.sluice), _ready(report.peer))
    if report.journal is not None:
        table.append(_journal(report.journal))
    if report.sluice is not None and report.sluice.cpu is not None:
        table += [_cpu(name, report.sluice.cpu) for name in CPU_MS]
    if report.idle is not None:
        table += [_idle_cpu(name, report.idle.cpu_percent[name]) for name in IDLE_PERCENT]
        table.append(_idle_records(report.idle.records_per_min))
    return table


def missed(table: Iterable[Row]) -> list[str]:
    """A sentence for each target that is missed."""
    return [f"{row.call}: target {t.text}, {t.by}" for row in table for t in row.targets if t.met is False]


def noise(report: Report) -> str:
    """How busy the machine was while each controller was measured."""
    parts = (("Sluice", report.sluice), ("real controller", report.peer))
    known = [f"{name} {part.machine_load:g}" for name, part in parts if part and part.machine_load is not None]
    return ", ".join(known) or "not recorded"


def render(table: Iterable[Row]) -> str:
    """The table as text."""
    return aligned([_HEADER, *(_cells(row) for row in table)])


def _call(name: str, report: Report) -> Row:
    ours, theirs = _calls_of(report.sluice).get(name), _calls_of(report.peer).get(name)
    ratio = _ratio(ours, theirs)
    floor_ms = floors.floor_ms(name, report.sluice.parts) if report.sluice is not None else None
    of_floor = ours.p50_ms / floor_ms if ours is not None and ours.p50_ms and floor_ms else None
    targets = []
    if name in FASTER:
        targets.append(_faster(name, report, ratio))
    if name in OF_FLOOR:
        targets.append(_of_floor(name, ours, of_floor, wanted=floor_ms is not None))
    targets += _tail(name, ours, theirs)
    return Row(name, cell(ours), cell(theirs), ratio, tuple(targets), floor_ms, of_floor)


def _faster(name: str, report: Report, ratio: float | None) -> Target:
    least, text = FASTER[name], f"≥ {FASTER[name]:g}×"
    share = None
    if name in (calls.COMMITTED_ONE, calls.COMMITTED_MANY):
        text += f" or ≤ {COMMIT_SHARE:.0%} of CPU"
        share = commit_share(report.sluice.cpu) if report.sluice is not None else None
    too = f", {share:.0%} of the CPU time of a commit ours" if share is not None else ""
    if share is not None and share <= COMMIT_SHARE:
        return Target(text, True)
    if report.sluice is None or report.peer is None:
        return Target(text)
    if ratio is None:
        ours, theirs = cell(report.sluice.calls.get(name)), cell(report.peer.calls.get(name))
        return Target(text, False, f"no figures (Sluice: {ours}, real controller: {theirs}){too}")
    return Target(text, ratio >= least, f"measured {ratio:.2f}×, {least / ratio - 1:.0%} too slow{too}")


def _of_floor(name: str, ours: Figures | None, of_floor: float | None, wanted: bool) -> Target:
    text = f"≤ {OF_FLOOR[name]:g} floor"
    if of_floor is not None:
        return Target(text, of_floor <= OF_FLOOR[name], f"measured {of_floor:.2f} times the floor")
    return Target(text, False, f"no figures (Sluice: {cell(ours)})") if wanted else Target(text)


def _tail(name: str, ours: Figures | None, theirs: Figures | None) -> Iterator[Target]:
    """What fails has missed its other targets already."""
    if ours is None or ours.p99_ms is None:
        return
    measured = f"measured {ours.p99_ms:.1f} ms"
    if theirs is not None and theirs.p99_ms is not None:
        yield Target("p99 ≤ its", ours.p99_ms <= theirs.p99_ms, f"{measured}, the real controller {theirs.p99_ms:.1f}")
    if name in P99_MS:
        yield Target(f"p99 ≤ {P99_MS[name]:g} ms", ours.p99_ms <= P99_MS[name], measured)


def commit_share(cpu: CpuTimes | None) -> float | None:
    """Which part of a commit's CPU time is that of our services; the rest is Kafka's, the store's and the bookie's."""
    commit = cpu.calls.get(calls.COMMIT_TXN) if cpu is not None else None
    total = commit.sum_us([*SERVICES, KAFKA, STORE]) if commit is not None else 0.0
    return commit.sum_us(SERVICES) / total if commit is not None and total else None


def _cpu(name: str, cpu: CpuTimes) -> Row:
    times = cpu.calls.get(name)
    call, text = f"CPU, services + Kafka: {name}", f"≤ {CPU_MS[name]:g} ms"
    if times is None:
        return Row(call, "-", "-", targets=(Target(text, False, "no figures"),))
    used_ms = times.sum_us(SERVICES_AND_KAFKA) / 1000
    return Row(
        call, f"{used_ms:.1f} ms", "-", targets=(Target(text, used_ms <= CPU_MS[name], f"measured {used_ms:.1f} ms"),)
    )


def _idle_cpu(name: str, percent: float) -> Row:
    most = IDLE_PERCENT[name]
    target = Target(f"≤ {most:g}% of a core", percent <= most, f"measured {percent:.1f}%")
    return Row(f"idle: {name}", f"{percent:.1f}%", "-", targets=(target,))


def _idle_records(per_min: dict[str, float]) -> Row:
    over = {topic: rate for topic, rate in per_min.items() if rate > IDLE_RECORDS_PER_MIN}
    by = "measured " + ", ".join(f"{topic} {rate:g}" for topic, rate in over.items())
    target = Target(f"≤ {IDLE_RECORDS_PER_MIN:g}/min", not over, by)
    return Row("idle: records to a topic", f"{max(per_min.values(), default=0.0):g}/min", "-", targets=(target,))


def _calls_of(measured: Measured | None) -> dict[str, Figures]:
    return measured.calls if measured is not None else {}


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
    return Row(name, text, "-", targets=(Target(f"≤ {limit_s:g} s", seconds <= limit_s, by),))


def _cells(row: Row) -> tuple[str, ...]:
    floor = f"{row.floor_ms:.1f} ms" if row.floor_ms is not None else "-"
    of_floor = f"{row.of_floor:.1f}" if row.of_floor is not None else "-"
    ratio = f"{row.ratio:.2f}×" if row.ratio is not None else "-"
    target = ", ".join(target.text for target in row.targets)
    verdict = {None: "", True: "met", False: "MISSED"}[row.met]
    return (row.call, floor, row.sluice, of_floor, row.peer, ratio, target, verdict)
