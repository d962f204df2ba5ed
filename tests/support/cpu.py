"""What an operation costs a processor: the least of several times, because a machine can only make it more."""

import time
from collections.abc import Callable, Iterable


def least_cpu_s(operations: Iterable[Callable[[], object]]) -> float:
    """The seconds of this thread's CPU time that the cheapest of these operations took; they do the same."""
    return min(map(_cpu_s, operations))


def _cpu_s(operation: Callable[[], object]) -> float:
    began = time.thread_time()
    operation()
    return time.thread_time() - began
