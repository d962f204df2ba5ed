"""Waiting for a future, but not for ever."""

import asyncio

import pytest

from sluice.engine.deadline import at_most


async def test_a_future_that_is_done_in_time_gives_its_result_or_its_error() -> None:
    loop = asyncio.get_running_loop()
    good, bad = loop.create_future(), loop.create_future()
    loop.call_later(0.9, good.set_result, 7)
    loop.call_later(0.9, bad.set_exception, ValueError("bad"))
    assert await at_most(1, good) == 7
    with pytest.raises(ValueError, match="bad"):
        await at_most(1, bad)


async def test_a_future_that_takes_too_long_is_a_time_out() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(TimeoutError):
        await at_most(1, loop.create_future())
    assert loop.time() == began + 1


async def test_a_caller_that_is_cancelled_leaves_no_timer_behind() -> None:
    loop = asyncio.get_running_loop()
    waiting = loop.create_future()
    caller = asyncio.create_task(at_most(1, waiting))
    await asyncio.sleep(0.5)
    caller.cancel()
    await asyncio.sleep(1)
    assert waiting.cancelled() and caller.cancelled()
