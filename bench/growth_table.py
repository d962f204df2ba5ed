"""What `bench.growth` measures, as a table by number of streams, and the targets that it is held against. Pure."""

from collections.abc import Iterator, Sequence

import msgspec

from bench.figures import Figures
from bench.show import aligned, cell

MEMORY_MIB = 1024
"""Of each service, at most, whatever the number of streams."""

READY_S = {100_000: 3.0, 1_000_000: 15.0}
"""Until each service is ready, at most, at so many streams."""

SLOWER = 1.2
"""The p50 of a call with most streams, at most, as a multiple of that with fewest."""


class Started(msgspec.Struct, frozen=True):
    """A service that was started on a running system: seconds until ready, of the clock and of the processor.

    MiB of memory when it was ready, and the most until then.
    """

    seconds: float
    cpu_s: float
    rss_mib: int
    peak_mib: int


class Snapshots(msgspec.Struct, frozen=True):
    """The first ones of all partitions, one after the other, each made by two runs: seconds in all; MiB in all."""

    seconds: float
    mib: float


class Grown(msgspec.Struct, frozen=True):
    """One number of streams: records of the journal and their size, the services by name, the calls by name."""

    streams: int
    records: int
    journal_mib: float
    snapshots: Snapshots
    services: dict[str, Started]
    calls: dict[str, Figures]
    machine_load: float


def table(grown: Sequence[Grown]) -> str:
    """A column for each number of streams; the last one says how many times as much most streams take as fewest."""
    lines = [["streams", *(f"{one.streams:,}" for one in grown), "ratio"]]
    lines.append(["records", *(f"{one.records:,}" for one in grown), ""])
    lines.append(["journal, MiB", *(f"{one.journal_mib:,}" for one in grown), ""])
    lines.append(["snapshots, MiB", *(f"{one.snapshots.mib:,}" for one in grown), ""])
    lines.append(["snapshots, all made and confirmed, s", *(f"{one.snapshots.seconds:.1f}" for one in grown), ""])
    for name in grown[0].services:
        found = [one.services[name] for one in grown]
        lines.append([f"{name}: ready after, s", *(f"{s.seconds:.1f}" for s in found), ""])
        lines.append([f"{name}: CPU until then, s", *(f"{s.cpu_s:.1f}" for s in found), ""])
        lines.append([f"{name}: memory, peak, MiB", *(f"{s.rss_mib:,} ({s.peak_mib:,})" for s in found), ""])
    for name in grown[0].calls:
        ratio = _ratio(grown, name)
        lines.append([name, *(cell(one.calls.get(name)) for one in grown), f"{ratio:.2f}" if ratio else ""])
    lines.append(["load of the machine", *(f"{one.machine_load:g}" for one in grown), ""])
    return aligned(lines)


def per_stream(grown: Sequence[Grown]) -> dict[str, tuple[float, float]]:
    """KiB of memory and microseconds of CPU at start for each further stream, by service."""
    few, most = grown[0], grown[-1]
    more = most.streams - few.streams
    return {
        name: (
            (most.services[name].rss_mib - few.services[name].rss_mib) * 1024 / more,
            (most.services[name].cpu_s - few.services[name].cpu_s) * 1e6 / more,
        )
        for name in (few.services if more else ())
    }


def misses(grown: Sequence[Grown]) -> list[str]:
    """A sentence for each target that is missed."""
    return [miss for one in grown for miss in _service_misses(one)] + list(_call_misses(grown))


def _service_misses(one: Grown) -> Iterator[str]:
    ready_s = READY_S.get(one.streams)
    for name, started in one.services.items():
        if started.peak_mib > MEMORY_MIB:
            yield f"{name} at {one.streams:,} streams: {started.peak_mib:,} MiB, target {MEMORY_MIB:,}"
        if ready_s is not None and started.seconds > ready_s:
            yield f"{name} at {one.streams:,} streams: ready after {started.seconds:.1f} s, target {ready_s:g}"


def _call_misses(grown: Sequence[Grown]) -> Iterator[str]:
    for one in grown:
        for name, figures in one.calls.items():
            if figures.failed:
                yield f"{name} at {one.streams:,} streams: {figures.failed}"
    for name in grown[0].calls:
        ratio = _ratio(grown, name)
        if ratio is not None and ratio > SLOWER:
            yield f"{name}: {ratio:.2f} times as long at {grown[-1].streams:,} streams, target {SLOWER:g}"


def _ratio(grown: Sequence[Grown], name: str) -> float | None:
    """None where there is only one size, or a measurement has failed."""
    first, last = (one.calls.get(name, Figures()).p50_ms for one in (grown[0], grown[-1]))
    return last / first if first and last is not None and len(grown) > 1 else None
