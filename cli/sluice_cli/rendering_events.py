"""How some events of a stream are shown: a row for each, on one line."""

from typing import Any

from sluice_cli.output import Output
from sluice_cli.units import segment_text


def draw_events(out: Output, found: dict[str, Any]) -> None:
    """By segments, and what was not read, with the reason."""
    rows = ((segment_text(one["segment"]), one["offset"], one["data"]["size"], _line(one)) for one in found["items"])
    out.table(("segment", ">offset", ">bytes", "event"), rows, empty="no events there")
    for one in found["segments"]:
        if "problem" in one:
            out.text(f"segment {segment_text(one['id'])}: {one['problem']}")
    if found["moreSegments"]:
        out.text(f"{found['moreSegments']} more segments were not looked at: choose with --segment or --key")


def _line(event: dict[str, Any]) -> str:
    """What is no text stays in base64."""
    text: str = event["data"]["value"]
    return text.replace("\n", "\\n")
