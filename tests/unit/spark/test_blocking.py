"""Calls that block, from the event loop."""

import threading

import pytest

from retention_spark.blocking import within
from sluice.exceptions import EndedError


async def test_a_call_that_takes_too_long_ends_the_process() -> None:
    hanging = threading.Event()
    with pytest.raises(EndedError, match="the session: not done within"):
        await within(0.05, "the session", hanging.wait, 60.0)
    hanging.set()


async def test_a_call_in_time_returns_or_raises() -> None:
    assert await within(60.0, "the session", int, "7") == 7
    with pytest.raises(ValueError, match="invalid literal"):
        await within(60.0, "the session", int, "seven")
