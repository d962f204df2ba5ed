"""A function for workers that fails once: for the event with the number in `FAILS_AT`, unless `FAILED` is there."""

import os
from pathlib import Path

from at_least_once.events import Event
from at_least_once.functions import Result, upper_case


def fails_once(data: bytes) -> Result:
    marker = Path(os.environ["FAILED"])
    if Event.decode(data).sequence == int(os.environ["FAILS_AT"]) and not marker.exists():
        marker.touch()
        raise ValueError("bad luck")
    return upper_case(data)
