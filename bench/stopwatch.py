"""How calls are timed: one after the other, or by many callers at once for a fixed time.

Each caller at once is a thread that makes its next call as soon as the last one has returned; gRPC's own work is done
outside of Python's lock. A call that is answered UNIMPLEMENTED, or that fails, ends its measurement and not the run.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import grpc

from bench.figures import Figures, Span, quantile
from bench.processor_time import machine_s

Call = Callable[[int], object]
"""One call; its number makes names unique and spreads reads."""

SLOW_FACTOR = 5
"""A call is slow if it takes more than so many times the median."""

CALLERS = 32
WARM_UP_CALLS = 5

_REST_LOOK_S = 3.0
_REST_CORES = 0.25
"""Of all processors. A system without calls takes a tenth of one, a store with work left half of one or more."""


class UnexpectedReplyError(Exception):
    """The call was answered with another status than it should."""


def one_by_one(call: Call, count: int) -> Figures:
    """Time `count` calls, after a few that do not count."""

    def timed(number: int) -> float:
        began = time.perf_counter()
        call(number)
        return time.perf_counter() - began

    return own_times(timed, count)


def own_times(call: Callable[[int], float], count: int) -> Figures:
    """The same of calls that say themselves how many seconds of them count."""
    began, times = [], []
    for number in range(count + WARM_UP_CALLS):
        began.append(time.time() * 1000)
        times.append(call(number))
    ended = [*began[1:], time.time() * 1000]
    figures = quantiles(times[WARM_UP_CALLS:])
    spans = zip(times, map(Span, began, ended), strict=True)
    slow = SLOW_FACTOR * (figures.p50_ms or 0.0)
    figures.slow = [span for took_s, span in list(spans)[WARM_UP_CALLS:] if took_s * 1000 > slow]
    return figures


def quantiles(times_s: Sequence[float]) -> Figures:
    """The figures of calls that took so many seconds each."""
    counted = [seconds * 1000 for seconds in times_s]
    return Figures(len(counted), round(quantile(counted, 0.5), 2), round(quantile(counted, 0.99), 2))


def at_once(call: Call, seconds: float, warm_up_s: float) -> Figures:
    """Count the calls that end within `seconds`, once the callers have been at it for `warm_up_s`."""
    crowd = _Crowd(call)
    threads = [threading.Thread(target=crowd.call_until_stopped, args=(caller,)) for caller in range(CALLERS)]
    for thread in threads:
        thread.start()
    crowd.ended.wait(warm_up_s)
    done, cpu, began = crowd.done(), time.process_time(), time.perf_counter()
    crowd.ended.wait(seconds)
    done, cpu, took = crowd.done() - done, time.process_time() - cpu, time.perf_counter() - began
    crowd.ended.set()
    for thread in threads:
        thread.join()
    if crowd.errors:
        raise crowd.errors[0]
    return Figures(done, per_s=round(done / took, 1), client_cpu=round(cpu / took, 2))


class _Crowd:
    """The callers of one measurement. Each counts for itself; the first that fails ends all of them."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._counts = [0] * CALLERS
        self.errors: list[Exception] = []
        self.ended = threading.Event()

    def done(self) -> int:
        return sum(self._counts)

    def call_until_stopped(self, caller: int) -> None:
        try:
            while not self.ended.is_set():
                self._call(self._counts[caller] * CALLERS + caller)
                self._counts[caller] += 1
        except Exception as error:  # noqa: BLE001 - raised again by `measure`
            self.errors.append(error)
            self.ended.set()


def outcome(measure: Callable[[], Figures]) -> Figures:
    """The figures, or what stood in the way."""
    try:
        return measure()
    except grpc.RpcError as error:
        code, details = _status(error)
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return Figures(not_yet=True)
        return Figures(failed=f"{code.name}: {details}"[:200])
    except UnexpectedReplyError as error:
        return Figures(failed=str(error)[:200])


def _status(error: grpc.RpcError) -> tuple[grpc.StatusCode, str]:
    """What the stubs raise is a call too, which gRPC's own types do not say."""
    call: Any = error
    return call.code(), call.details() or ""


def until_at_rest(limit_s: float) -> bool:
    """Return when the machine rests, or after so long; whether it does.

    A segment store moves to its long-term storage what the calls before have left, for a minute and more after a load.
    The more calls a controller got done in that load, the more of this would fall into what is measured next.
    """
    pause, end = threading.Event(), time.monotonic() + limit_s
    while time.monotonic() < end:
        before, began = machine_s(), time.monotonic()
        pause.wait(_REST_LOOK_S)
        if machine_s() - before < _REST_CORES * (time.monotonic() - began):
            return True
    return False


def until(done: Callable[[], bool], limit_s: float = 60.0, pause_s: float = 0.002) -> None:
    """Ask again and again until it is so. Raises UnexpectedReplyError if it is not in time."""
    pause = threading.Event()
    end = time.monotonic() + limit_s
    while not done():
        if time.monotonic() > end:
            raise UnexpectedReplyError(f"still not done after {limit_s:g} s")
        pause.wait(pause_s)
