"""Many seeds, one after the other."""

import gc
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Protocol, TypeVar

from simulation.faults import Faults
from simulation.lives import run
from simulation.violation import Violation
from support.effort import JUDGED


class Run(Protocol):
    """All that a run does follows from its seed."""

    @property
    def faults(self) -> Faults: ...

    async def go(self) -> None:
        """Raises Violation."""


R = TypeVar("R", bound=Run)

RunSeed = Callable[[int], object]
"""Runs one seed; raises Violation."""


@contextmanager
def quiet() -> Iterator[None]:
    """What services log is neither written nor put together."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def run_seeds(run_seed: RunSeed, seeds: Iterable[int], until_s: float = inf) -> int:
    """Run them, to the end or until a time of the monotonic clock; how many. Raises Violation."""
    done = 0
    gc.collect()
    gc.disable()
    try:
        with quiet():
            for seed in seeds:
                run_seed(seed)
                done += 1
                if done % 50 == 0:
                    gc.collect()
                if time.monotonic() >= until_s:
                    break
    finally:
        gc.enable()
    return done


def run_for(run_seed: RunSeed, seeds: Sequence[int], seconds: float) -> int:
    """Run them for no longer than this, or all where changes are judged; how many. Raises Violation."""
    if not JUDGED:
        return run_seeds(run_seed, seeds, time.monotonic() + seconds)
    done = run_seeds(run_seed, seeds)
    assert done == len(seeds)
    return done


def run_one(make: Callable[[int], R], seed: int, test: str) -> R:
    """The run of a seed, which has ended. Raises Violation, with a text that says how to run it again."""
    simulated: list[R] = []

    async def go() -> None:
        simulated.append(make(seed))
        await simulated[0].go()

    try:
        run(go())
    except Exception as error:
        log = "\n  ".join(simulated[0].faults.log) if simulated else ""
        raise Violation(f"seed {seed}: {error!r}\n  {log}\nrun it again: SIM_SEED={seed} pytest {test}") from error
    return simulated[0]
