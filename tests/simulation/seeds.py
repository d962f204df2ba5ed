"""Many seeds, one after the other."""

import gc
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import inf

RunSeed = Callable[[int], object]
"""Runs one seed; raises Violation."""


@contextmanager
def quiet() -> Iterator[None]:
    """What services have to say is not heard, and not put together."""
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
