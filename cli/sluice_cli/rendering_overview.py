"""How the overview, a gateway and events of changes are shown. Prints nothing by itself but through `Output`."""

from collections.abc import Iterator
from typing import Any

from sluice.lookback.times import show_time
from sluice_cli.output import Output


def draw_overview(out: Output, found: dict[str, Any]) -> None:
    out.text(found["sentence"])
    counts, workflows = found["counts"], found["workflows"]
    out.fields(
        (
            ("level", found["level"]),
            ("scopes", counts["scopes"]),
            ("streams", counts["streams"]),
            ("segments", counts.get("segments")),
            ("reader groups", counts["groups"]),
            ("tables", counts["tables"]),
            ("transactions", _transactions(counts)),
            ("workflows", ", ".join(f"{workflows[how]} {how}" for how in ("running", "failing", "waiting", "queued"))),
            ("dead letters", found.get("deadLetters")),
            ("overdue leases", found["overdueLeases"]),
            ("hot streams", ", ".join(found["hotStreams"])),
            ("parts", ", ".join(map(_part, found.get("parts", ())))),
            ("problems", "; ".join(found["problems"])),
            ("as of", show_time(found["at"])),
        )
    )


def _part(part: dict[str, Any]) -> str:
    up = part.get("up")
    return part["name"] if up else f"{part['name']} ({'not known' if up is None else 'not well'})"


def draw_hour(out: Output, found: dict[str, Any]) -> None:
    """A line for each minute."""
    columns = ("from", ">changes", ">commits", ">aborts", ">open", ">waiting commits", ">silent containers", ">bytes")
    rows = (
        (
            show_time(one["at"]),
            one["changes"],
            one["commits"],
            one["aborts"],
            one.get("open"),
            one.get("waiting"),
            one["silent"],
            one.get("bytes"),
        )
        for one in found["items"]
    )
    out.table(columns, rows, empty="nothing has happened yet")


def _transactions(counts: dict[str, Any]) -> str | None:
    if "transactionsOpen" not in counts:
        return None
    return f"{counts['transactionsOpen']} open, {counts['transactionsWaiting']} waiting for their commit"


def draw_about(out: Output, found: dict[str, Any]) -> None:
    me = found["me"]
    rights = ", ".join(f"{name} {level}" for name, level in me["rights"].items())
    out.fields(
        (
            ("cluster", found["cluster"]),
            ("version", found["version"]),
            ("page", f"{found['mode']} {found['page']}".strip()),
            ("partitions", found["partitions"]),
            ("containers", found["containers"]),
            ("you are", me.get("principal") or ("not logged in" if me["authentication"] else "not authenticated")),
            ("your rights", rights),
            ("its clock", show_time(found["now"])),
        )
    )


def lines_of_event(event: dict[str, Any]) -> Iterator[str]:
    """A line for each thing that changed."""
    if event["event"] == "many":
        yield "too much changed to name it"
    for item in event.get("items", ()):
        version = f" version {item['version']}" if "version" in item else ""
        yield f"{show_time(item['at'])}  {item['aggregate']}{version}: {', '.join(item['types'])}"
