"""How decisions are shown, and what another policy would have done beside what happened."""

from itertools import zip_longest
from typing import Any

from sluice.lookback.times import show_time
from sluice_cli.output import Output
from sluice_cli.units import segment_text, show_size

DECISION_COLUMNS = ("at", "stream", "kind", "decision", "reason", "carried out", "request")


def decision_row(decision: dict[str, Any]) -> tuple[object, ...]:
    carried_out = decision.get("carriedOut")
    return (
        show_time(decision.get("at")),
        decision.get("stream"),
        decision.get("kind"),
        decision.get("code"),
        decision.get("reason"),
        "" if carried_out is None else "yes" if carried_out else "no",
        decision.get("request"),
    )


def draw_reported(out: Output, found: dict[str, Any]) -> None:
    """Loads of segments, then what retention has to choose from."""
    columns = ("segment", "load", "since", "last report")
    rows = (
        (segment_text(one["segment"]), one["load"], show_time(one["since"]), show_time(one["reportedAt"]))
        for one in found["loads"]
    )
    out.table(columns, rows, empty="no segment is hot or cold")
    cuts = found["retentionSet"]
    times = cuts["at"]
    reach = f"{len(times)} cuts, from {show_time(times[0])} to {show_time(times[-1])}" if times else "no cuts"
    sizes = f"{show_size(cuts['bytes'][0])} to {show_size(cuts['bytes'][-1])}" if times else ""
    none = "none in 7 days" if found["complete"] else f"none since {show_time(found['searchedTo'])}"
    out.fields(
        (
            ("last report on load", show_time(found.get("loadReportedAt")) or none),
            ("last report on retention", show_time(found.get("retentionReportedAt")) or none),
            ("retention set", reach),
            ("bytes behind the head", sizes),
        )
    )


def draw_what_if(out: Output, found: dict[str, Any], policy: str) -> None:
    """What happened on the left, what would have on the right, second by second; then how far that holds."""
    happened, would = found["happened"], [one for one in found["would"] if not one.get("passing")]
    rows: list[tuple[object, ...]] = []
    for second in sorted({one["at"] // 1000 for one in (*happened, *would)}):
        left = [_words(one) for one in happened if one["at"] // 1000 == second]
        right = [_words(one) for one in would if one["at"] // 1000 == second]
        rows += [(show_time(second * 1000), here, there) for here, there in zip_longest(left, right, fillvalue="")]
    out.table(("at", "what happened", f"with {policy}"), rows, empty="nothing was decided, and nothing would have been")
    kept, difference = found.get("kept"), found.get("firstDifference")
    out.fields(
        (
            ("first difference", show_time(difference) if difference is not None else "none"),
            ("kept at the end", _kept(kept) if kept and kept["at"] else ""),
            ("kept at most", _most_kept(kept) if kept and kept["at"] else ""),
        )
    )
    for note in found["notes"]:
        out.text(f"- {note}")


def _words(one: dict[str, Any]) -> str:
    segments = f" ({one['segments']} segments)" if "segments" in one and one.get("acts") else ""
    return f"{one['code']}: {one['reason']}{segments}"


def _kept(kept: dict[str, Any]) -> str:
    return f"{show_size(kept['happened'][-1])}; {show_size(kept['would'][-1])} instead"


def _most_kept(kept: dict[str, Any]) -> str:
    return f"{show_size(max(kept['happened']))}; {show_size(max(kept['would']))} instead"
