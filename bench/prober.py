"""Calls at a steady rate while something is done to the services: how long they take, and which fail.

A call that fails with a status on which Pravega's clients try again is tried again as they do, and counts as retried;
its time is that of all its attempts. Anything else that is not the right answer is a failure.
Rules: controller-grpc-api 9.2 and 10.2.
"""

import threading
import time
from collections.abc import Callable
from itertools import count
from types import TracebackType
from typing import Self

import grpc
import msgspec

from bench.calls import Calls
from bench.figures import quantile
from bench.stopwatch import UnexpectedReplyError

_FINAL = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.UNIMPLEMENTED,
}
_DELAYS_S = (0.001, 0.01, 0.1, 1, 10)


class Probe(msgspec.Struct):
    """One call: when it was due on the monotonic clock, the seconds it took from then, how often it was tried."""

    call: str
    due: float
    seconds: float
    attempts: int
    failure: str = ""


class Prober:
    """Calls of each kind in turn from so many threads, each at `per_s` calls a second. As a context it runs inside."""

    def __init__(self, address: str, threads: int = 4, per_s: float = 5) -> None:
        self.probes: list[Probe] = []
        self._stopped = threading.Event()
        self._every_s = 1 / per_s
        self._numbers = count()
        self._callers = [Calls(address) for _ in range(threads)]
        self._threads = [threading.Thread(target=self._run, args=(calls,)) for calls in self._callers]

    def __enter__(self) -> Self:
        for calls in self._callers:
            calls.create_scope()
            calls.create_stream("t", 2)
            for number in range(105):
                if number >= 60:
                    calls.create_stream(f"s{number}")
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def between(self, began: float, ended: float) -> list[Probe]:
        """What was due in a span of the monotonic clock."""
        return [probe for probe in list(self.probes) if began <= probe.due < ended]

    def _run(self, calls: Calls) -> None:
        kinds: tuple[tuple[str, Callable[[int], object]], ...] = (
            ("getCurrentSegments", calls.current_segments),
            ("createStream", lambda number: calls.create_stream(f"p{number}")),
            ("getURI", calls.uri),
            ("open and commit", lambda _number: calls.open_and_commit("t")),
        )
        due = time.monotonic()
        while not self._stopped.wait(max(0.0, due - time.monotonic())):
            number = next(self._numbers)
            name, call = kinds[number % len(kinds)]
            self.probes.append(_made(name, call, number, due))
            due += self._every_s


def _made(name: str, call: Callable[[int], object], number: int, due: float) -> Probe:
    failure = ""
    for attempt, delay in enumerate((*_DELAYS_S, None), start=1):
        try:
            call(number)
        except grpc.RpcError as error:
            code = error.code()
            failure = f"{code.name}: {error.details()}"
            if code in _FINAL or delay is None:
                break
            time.sleep(delay)
        except UnexpectedReplyError as error:
            # What an attempt before this one began, this one finds done.
            failure = "" if attempt > 1 and name == "createStream" and str(error).endswith("status 2") else str(error)
            break
        else:
            failure = ""
            break
    return Probe(name, due, time.monotonic() - due, attempt, failure)


def summary(probes: list[Probe]) -> str:
    """One line for people."""
    if not probes:
        return "no calls"
    times = [probe.seconds * 1000 for probe in probes]
    retried = sum(probe.attempts > 1 for probe in probes)
    failed = [probe for probe in probes if probe.failure]
    line = (
        f"{len(probes):6} calls  p50 {quantile(times, 0.5):7.1f} ms  p99 {quantile(times, 0.99):8.1f} ms  "
        f"max {max(times):8.1f} ms  retried {retried}  failed {len(failed)}"
    )
    return "\n".join([line, *(f"    FAILED {probe.call}: {probe.failure}" for probe in failed[:5])])
