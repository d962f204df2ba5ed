"""How figures are shown to people. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from bench import floors
from bench.figures import CpuTimes, Figures, Idle, SlowCalls

SERVICES = ("api-gateway", "stream-workflows", "txn-manager", "cluster-manager", "retention-spark")
KAFKA = "Kafka"
STORE = "store and bookie"
SERVICES_AND_KAFKA = (*SERVICES, KAFKA)
_SUM = "services + Kafka"


def cell(figures: Figures | None) -> str:
    """The figures in a few characters."""
    if figures is None:
        return "-"
    if figures.not_yet:
        return "not yet"
    if figures.failed:
        return "failed"
    if figures.per_s is not None:
        return f"{figures.per_s:,.0f}/s"
    return f"{figures.p50_ms:.1f} / {figures.p99_ms:.1f} ms"


def line(name: str, figures: Figures) -> str:
    """One call with everything that is known about it."""
    more = f"   {figures.failed}" if figures.failed else f"   ({figures.count} calls)" if figures.count else ""
    client = f", load generator {figures.client_cpu:.0%} of a core" if figures.client_cpu is not None else ""
    return f"  {name:<42} {cell(figures):>20}{more}{client}"


def cpu_table(cpu: CpuTimes) -> str:
    """Microseconds per call and process, services and Kafka together as a sum, and what each takes without calls."""
    names = list(next(iter(cpu.calls.values())).us)
    has_services = any(name in SERVICES for name in names)
    lines = [["CPU time per call, µs", *names, *([_SUM] if has_services else [])]]
    for call, times in cpu.calls.items():
        total = [f"{times.sum_us(SERVICES_AND_KAFKA):,.0f}"] if has_services else []
        lines.append([f"{call} ({times.calls})", *(f"{times.us[name]:,.0f}" for name in names), *total])
    idle = cpu.idle_percent
    total = [f"{sum(idle.get(name, 0.0) for name in SERVICES_AND_KAFKA):.1f}%"] if has_services else []
    lines.append(["without calls, % of a core", *(f"{idle[n]:.1f}%" if n in idle else "" for n in names), *total])
    return aligned(lines)


def idle_table(idle: Idle) -> str:
    """What an idle system takes of the processor, and writes."""
    lines = [[f"idle for {idle.seconds:g} s, load {idle.machine_load:g}", "% of a core"]]
    lines += [[name, f"{percent:.1f}%"] for name, percent in idle.cpu_percent.items()]
    lines += [["", "records/min"], *([topic, f"{rate:g}"] for topic, rate in idle.records_per_min.items())]
    return aligned(lines)


def parts_table(parts: Mapping[str, Figures]) -> str:
    """What the parts of calls cost bare."""
    lines = [["bare, p50 / p99", "", "what it is"]]
    lines += [[part, cell(parts.get(part)), text] for part, text in floors.PARTS.items()]
    return aligned(lines, words_last=True)


def floors_table(parts: Mapping[str, Figures]) -> str:
    """The sum that each call cannot go below, with its figures."""
    costs = {call: floors.floor_ms(call, parts) for call in floors.FLOORS}
    lines = [["floor", "ms", "its parts, ms"]]
    lines += [[call, f"{ms:.1f}", floors.in_words(call, parts)] for call, ms in costs.items() if ms is not None]
    return aligned(lines, words_last=True)


def slow_table(slow: Iterable[SlowCalls]) -> str:
    """How many lone calls took more than five times the median, and where the longest pause of each was."""
    lines = [["slower than 5 × p50", "share", "longest, ms", "where"]]
    for one in slow:
        where = ", ".join(f"{count} {place}" for place, count in one.where.items())
        lines.append([one.call, f"{one.share:.1%}", f"{one.longest_ms:.0f}", where])
    return aligned(lines, words_last=True)


def aligned(lines: Iterable[Sequence[str]], *, words_last: bool = False) -> str:
    """Lines of cells as text: the first column to the left, the others to the right, but for a last one of words."""
    rows = list(lines)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    left = {0, len(widths) - 1} if words_last else {0}
    return "\n".join(_padded(row, widths, left) for row in rows)


def _padded(row: Sequence[str], widths: Sequence[int], left: Collection[int]) -> str:
    sized = enumerate(zip(row, widths, strict=True))
    return "  ".join(text.ljust(width) if n in left else text.rjust(width) for n, (text, width) in sized).rstrip()
