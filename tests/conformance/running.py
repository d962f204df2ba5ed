"""Several cases at a time against one target.

A thread of its own has the event loop; tests wait for the outcome of their case in theirs. All cases that are to
run are begun at once and take turns, because most of a case is waiting for the work of other processes.
"""

import asyncio
import time
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import nullcontext
from itertools import count
from uuid import uuid4

from support.loops import LoopInThread

from conformance.answers import agrees, text_of
from conformance.case import PEER, Case, Step
from conformance.run import Run
from conformance.target import Target

_AT_A_TIME = 6
_CASE_DEADLINE_S = 300.0
_PAUSE_S = 0.05


class Runner:
    """Runs cases against the controller at `address` and `rest_url`; closed, it stops what still runs."""

    def __init__(self, target: str, address: str, rest_url: str) -> None:
        self._loop = LoopInThread(f"conformance-{target}")
        self._name, self._address, self._rest_url = target, address, rest_url
        self._run_id = uuid4().hex[:8]
        self._numbers = count()
        self._outcomes: dict[str, Future[None]] = {}
        self._turns = asyncio.Semaphore(_AT_A_TIME)
        self._alone = asyncio.Lock()
        self._loop.start()
        self._target = self._loop.run(self._connect())

    async def _connect(self) -> Target:
        return Target(self._name, self._address, self._rest_url)

    def begin(self, cases: Iterable[Case]) -> None:
        for case in cases:
            self._outcomes[case.name] = self._loop.begin(self._take_turn(case))

    def check(self, case: Case) -> None:
        """Wait for the outcome of a case that was begun; raise if it is not the expected one."""
        self._outcomes[case.name].result()

    def close(self) -> None:
        for outcome in self._outcomes.values():
            outcome.cancel()
        self._loop.run(self._target.close())
        self._loop.stop()

    async def _take_turn(self, case: Case) -> None:
        alone = self._alone if case.alone and self._name == PEER else nullcontext()
        async with alone, self._turns, asyncio.timeout(_CASE_DEADLINE_S):
            await self._play(case, Run(self._target, f"{self._run_id}-{next(self._numbers):06x}-"))

    async def _play(self, case: Case, run: Run) -> None:
        done: list[str] = []
        for number, step in enumerate(case.steps, start=1):
            actual, expected = await _answer(step, run), step.expected[run.target.name]
            if not agrees(expected, actual):
                story = "".join(done)
                raise AssertionError(
                    f"{run.target.name}, step {number}, {step.title}:\n  expected {text_of(expected)}\n"
                    f"  answered {actual!r}\nbefore it:\n{story or '  nothing'}"
                )
            done.append(f"  {number}. {step.title} -> {actual!r}\n")


async def _answer(step: Step, run: Run) -> object:
    end = time.monotonic() + step.within_s
    expected = step.expected[run.target.name]
    while True:
        actual = await step.act(run)
        if agrees(expected, actual) or time.monotonic() >= end:
            return actual
        await asyncio.sleep(_PAUSE_S)
