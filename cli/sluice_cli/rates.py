"""Rates of segments: asked until they are known, or for as long as that may take."""

import time
from typing import Any

from sluice_cli.session import Session

WAIT_S = 60.0
LOOK_S = 1.0


def measured(session: Session, path: str) -> Any:
    """The rates when all of them are known, or as far as they are after a while: a first call knows none."""
    end = time.monotonic() + WAIT_S
    with session.out.progress("measuring", None):
        while not (found := session.rest.get(path))["complete"] and found["segments"] and time.monotonic() < end:
            time.sleep(LOOK_S)
    return found


def show_past(session: Session, path: str, begin: str | None, end: str | None, bucket: str | None) -> None:
    """Print the mean, the least and the most of each segment; as JSON every bucket."""
    from sluice.lookback.times import duration_of
    from sluice_cli.rendering_rates import PAST_COLUMNS, past_row

    length = duration_of(bucket) if bucket is not None else None
    found = session.rest.get(path, **{"from": begin}, to=end, bucket=length)
    empty = "nothing was sampled: that is done where there is a retention policy"
    session.show(found, lambda out, f: out.table(PAST_COLUMNS, map(past_row, f["segments"]), empty=empty))
