"""The helper process of the gateway: jobs there and back, cancelled, bounded, and what happens when it dies."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from support.lookback_process import DIE, DOUBLE, FAIL, MISS, WAIT, Number
from support.wait import eventually_async

from api_gateway.console import lookback
from api_gateway.console.lookback import MAX_WAITING, LookbackHelper, while_caller_waits
from api_gateway.edge.errors import BadRequestError, OverloadedError, QuotaExceededError
from api_gateway.edge.security.guard import calling
from sluice.lookback.errors import HelperEndedError, JobDefectError, NotFoundError
from sluice.lookback.helper import JOBS_AT_ONCE
from sluice.security.caller import Caller
from sluice.security.resources import Permission

DEADLINE_S = 60.0


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """What happened in helper processes, a line for each thing."""
    file = tmp_path / "notes"
    file.touch()
    return file


def helper_of(notes: Path, idle_s: float = 600) -> LookbackHelper:
    return LookbackHelper("test", (sys.executable, "-m", "support.lookback_process", str(notes)), idle_s)


@pytest.fixture
async def helper(notes: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LookbackHelper]:
    """One that ends by itself, however slow the machine is."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    monkeypatch.setattr(lookback, "ENDS_S", DEADLINE_S)
    helper = helper_of(notes)
    yield helper
    await helper.stop()


def happened(notes: Path, what: str) -> int:
    return sum(line.startswith(what) for line in notes.read_text().splitlines())


async def until(notes: Path, what: str, count: int = 1) -> None:
    await eventually_async(lambda: happened(notes, what) >= count, DEADLINE_S, f"{what} {count} times")


async def test_jobs_come_back_with_their_results_and_errors(helper: LookbackHelper, notes: Path) -> None:
    results = await asyncio.gather(*(helper.run(DOUBLE, Number(value)) for value in range(10)))
    assert [one.value for one in results] == [2 * value for value in range(10)]
    with pytest.raises(NotFoundError, match="there was none") as missed:
        await helper.run(MISS, Number(0))
    assert missed.value.hint == "look elsewhere"
    with pytest.raises(JobDefectError, match="KeyError"):
        await helper.run(FAIL, Number(0))
    assert (await helper.run(DOUBLE, Number(4))).value == 8
    assert happened(notes, "pid") == 1


async def test_a_job_whose_caller_leaves_ends(helper: LookbackHelper, notes: Path) -> None:
    waiting = asyncio.ensure_future(helper.run(WAIT, Number(0, str(notes))))
    await until(notes, "begun")
    waiting.cancel()
    await until(notes, "ended")
    assert (await helper.run(DOUBLE, Number(1))).value == 2


async def test_more_questions_than_may_wait_are_refused_at_once(helper: LookbackHelper, notes: Path) -> None:
    most = JOBS_AT_ONCE + MAX_WAITING
    waiting = [asyncio.ensure_future(helper.run(WAIT, Number(0, str(notes)))) for _ in range(most)]
    await until(notes, "begun", JOBS_AT_ONCE)
    with pytest.raises(OverloadedError, match="under way or wait, no more may"):
        await helper.run(DOUBLE, Number(1))
    assert happened(notes, "begun") == JOBS_AT_ONCE
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert (await helper.run(DOUBLE, Number(1))).value == 2


async def test_one_user_has_a_quarter_of_the_questions_at_most(helper: LookbackHelper, notes: Path) -> None:
    share = (JOBS_AT_ONCE + MAX_WAITING) // 4
    with calling(Caller("reader", lambda _resource: Permission.NONE)):
        waiting = [asyncio.ensure_future(helper.run(WAIT, Number(0, str(notes)))) for _ in range(share)]
        await until(notes, "begun", JOBS_AT_ONCE)
        with pytest.raises(QuotaExceededError):
            await asyncio.wait_for(helper.run(DOUBLE, Number(1)), DEADLINE_S)
    with calling(Caller("other", lambda _resource: Permission.NONE)):
        theirs = asyncio.ensure_future(helper.run(DOUBLE, Number(2)))
    for one in waiting:
        one.cancel()
    assert (await theirs).value == 4
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_helper_that_dies_fails_its_jobs_and_is_started_anew(helper: LookbackHelper, notes: Path) -> None:
    waiting = asyncio.ensure_future(helper.run(WAIT, Number(0, str(notes))))
    await until(notes, "begun")
    with pytest.raises(HelperEndedError, match="ended with status -9"):
        await helper.run(DIE, Number(0))
    with pytest.raises(HelperEndedError, match="ended with status -9"):
        await waiting
    assert (await helper.run(DOUBLE, Number(1))).value == 2
    assert happened(notes, "pid") == 2


async def test_an_idle_helper_ends_and_the_next_job_starts_another(helper: LookbackHelper, notes: Path) -> None:
    brief = helper_of(notes, idle_s=0.01)
    for number in (1, 2):
        assert (await brief.run(DOUBLE, Number(number))).value == 2 * number
        await until(notes, "no more questions", number)
    await brief.stop()
    with pytest.raises(HelperEndedError, match="stopping"):
        await brief.run(DOUBLE, Number(1))


async def test_a_helper_ends_with_the_gateway_though_a_job_goes_on(helper: LookbackHelper, notes: Path) -> None:
    waiting = asyncio.ensure_future(helper.run(WAIT, Number(0, str(notes))))
    await until(notes, "begun")
    await helper.stop()
    with pytest.raises(HelperEndedError):
        await waiting
    assert happened(notes, "no more questions") == 1


async def test_a_helper_that_is_being_started_ends_with_the_gateway(helper: LookbackHelper) -> None:
    answer = asyncio.ensure_future(helper.run(WAIT, Number(0)))
    await asyncio.sleep(0)
    async with asyncio.timeout(DEADLINE_S):
        await helper.stop()
        with pytest.raises(HelperEndedError):
            await answer


async def test_work_for_a_caller_who_leaves_is_cancelled() -> None:
    left, cancelled = asyncio.Event(), asyncio.Event()

    async def receive() -> Any:
        await left.wait()
        return {"type": "http.disconnect"}

    async def work() -> None:
        left.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(BadRequestError):
        await while_caller_waits(Request({"type": "http"}, receive), work())
    assert cancelled.is_set()
