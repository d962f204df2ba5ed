"""How rates of segments are shown."""

from typing import Any

from sluice_cli.units import segment_text, show_size

RATE_COLUMNS = ("segment", ">bytes/s", ">events/s", ">length", "segment store")
PAST_COLUMNS = ("segment", ">mean/s", ">least/s", ">most/s", ">buckets known")


def rate_row(segment: dict[str, Any]) -> tuple[object, ...]:
    return (
        segment_text(segment["id"]),
        _size(segment.get("bytesPerS")),
        segment.get("eventsPerS"),
        _size(segment.get("length")),
        segment.get("store"),
    )


def past_row(segment: dict[str, Any]) -> tuple[object, ...]:
    known = [rate for rate in segment["bytesPerS"] if rate >= 0]
    if not known:
        return segment_text(segment["id"]), "", "", "", 0
    return (
        segment_text(segment["id"]),
        *(_size(rate) for rate in (sum(known) / len(known), min(known), max(known))),
        len(known),
    )


def _size(amount: float | None) -> str:
    return show_size(round(amount)) if amount is not None else ""
