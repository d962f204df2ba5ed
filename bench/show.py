"""How figures are shown to people. Pure."""

from bench.figures import Figures


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
    return f"  {name:<34} {cell(figures):>20}{more}{client}"
