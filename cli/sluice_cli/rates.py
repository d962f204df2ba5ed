"""Rates of segments: measured until they are known, or for as long as that may take; and how they are shown."""

import time
from typing import Any

from sluice_cli.api import path_of
from sluice_cli.session import Session
from sluice_cli.units import segment_text, show_size

WAIT_S = 60.0
LOOK_S = 1.0

LOADS_WAIT_S = 10.0
"""Of a segment whose store does not answer nothing is known however long one waits."""

LOAD_COLUMNS = ("stream", ">bytes/s", ">events/s", ">size", "segments known", ">groups", "slowest group", ">behind")
RATE_COLUMNS = ("segment", ">bytes/s", ">events/s", ">length", "segment store")
_PAST_COLUMNS = ("segment", ">mean/s", ">least/s", ">most/s", ">buckets known")


def measured(session: Session, path: str) -> Any:
    """The rates when all of them are known, or as far as they are after a while: a first call knows none."""
    end = time.monotonic() + WAIT_S
    with session.out.progress("measuring", None):
        while not (found := session.rest.get(path))["complete"] and found["segments"] and time.monotonic() < end:
            time.sleep(LOOK_S)
    return found


def measured_loads(session: Session, streams: list[str]) -> Any:
    """The loads when the rates of all are known, or as far as they are after a while."""
    end = time.monotonic() + LOADS_WAIT_S
    with session.out.progress("measuring", None):
        while True:
            found = session.rest.get(path_of("streams", "loads"), name=streams)
            if all(one["complete"] for one in found["items"]) or time.monotonic() >= end:
                return found
            time.sleep(LOOK_S)


def load_row(load: dict[str, Any]) -> tuple[object, ...]:
    slowest = load.get("slowest")
    return (
        f"{load['scope']}/{load['name']}",
        _size(load.get("bytesPerS")),
        load.get("eventsPerS"),
        _size(load.get("bytes")),
        "all" if load["complete"] else "some",
        load.get("groups"),
        slowest["name"] if slowest is not None else "",
        _size(slowest["bytes"]) if slowest is not None else "",
    )


def show_past(session: Session, path: str, begin: str | None, end: str | None, bucket: str | None) -> None:
    """Print the mean, the least and the most of each segment; as JSON every bucket."""
    from sluice.lookback.times import duration_of

    length = duration_of(bucket) if bucket is not None else None
    found = session.rest.get(path, **{"from": begin}, to=end, bucket=length)
    empty = "nothing was sampled: that is done where there is a policy, for scaling or for retention"
    session.show(found, lambda out, f: out.table(_PAST_COLUMNS, map(_past_row, f["segments"]), empty=empty))


def rate_row(segment: dict[str, Any]) -> tuple[object, ...]:
    return (
        segment_text(segment["id"]),
        _size(segment.get("bytesPerS")),
        segment.get("eventsPerS"),
        _size(segment.get("length")),
        segment.get("store"),
    )


def _past_row(segment: dict[str, Any]) -> tuple[object, ...]:
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
