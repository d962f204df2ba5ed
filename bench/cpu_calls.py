"""What each kind of call takes of the processors in every process of a system: 8 callers, so many calls of each kind.

`python -m bench.cpu_calls HOST:PORT PROCESSES`, as a process of its own; PROCESSES is JSON, by name the process ids
that count together, each with its descendants. What they take without calls is measured first, when what came before
is over, and taken off. After the calls of a kind it waits for what they leave to be done: commits are through, and then
half a second.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec

from bench import calls as names
from bench.calls import Calls
from bench.figures import CallCpu, CpuTimes
from bench.load import LoadFailedError
from bench.processor_time import Roots, cpu_by_name
from bench.stopwatch import Call

CLIENT = "load generator"
"""The process that makes the calls."""

_CALLERS = 8
_SETTLE_S = 0.5
_REST_S = 70.0
"""After the calls before: what they have prepared and no one has opened is discarded when a minute has passed."""
_STREAMS = 105


class Kind(msgspec.Struct, frozen=True):
    """One kind of call: `count` calls after `prepare`, over when `finish` returns."""

    name: str
    count: int
    call: Call
    prepare: Callable[[], object] = lambda: None
    finish: Callable[[], object] = lambda: None


def kinds(calls: Calls, few: int) -> Iterator[Kind]:
    """In the order to take them: streams are there before they are read and, at last, dropped."""
    reads, transactions, streams = 3000 // few, 1000 // few, max(_STREAMS, 400 // few)
    yield Kind(names.CREATE_STREAM, streams, lambda n: calls.create_stream(f"s{n}"))
    yield Kind(names.GET_URI, reads, calls.uri)
    yield Kind(names.CURRENT_SEGMENTS, reads, calls.current_segments)
    yield Kind(names.CREATE_TXN, transactions, calls.create_transaction)
    yield Kind(names.PING_TXN, transactions, calls.ping_transaction)
    yield Kind(
        names.COMMIT_TXN,
        transactions,
        calls.commit_transaction,
        lambda: calls.write_events(transactions),
        lambda: calls.commits_done(transactions),
    )
    yield Kind(names.SEAL_DELETE, streams, lambda n: calls.drop_stream(f"s{n}"))


class CpuMeter:
    """Differences of processor time, of the processes and of this one."""

    def __init__(self, roots: Roots) -> None:
        self._roots = {**roots, CLIENT: [os.getpid()]}
        self._idle: dict[str, float] = {}
        self._pause = threading.Event()

    def idle(self, seconds: float) -> dict[str, float]:
        """Percent of one core that each takes now; later measurements take that off."""
        self._idle = {}
        took_s, used_s = self._used(lambda: self._pause.wait(seconds))
        self._idle = {name: used / took_s for name, used in used_s.items()}
        return {name: round(share * 100, 2) for name, share in self._idle.items() if name != CLIENT}

    def measure(self, kind: Kind) -> CallCpu:
        kind.prepare()
        self._pause.wait(_SETTLE_S)
        took_s, used_s = self._used(lambda: self._make(kind))
        more_s = {name: used - self._idle.get(name, 0.0) * took_s for name, used in used_s.items()}
        return CallCpu(kind.count, {name: round(max(0.0, s) / kind.count * 1e6) for name, s in more_s.items()})

    def _make(self, kind: Kind) -> None:
        with ThreadPoolExecutor(_CALLERS) as callers:
            list(callers.map(kind.call, range(kind.count)))
        kind.finish()
        self._pause.wait(_SETTLE_S)

    def _used(self, what: Callable[[], object]) -> tuple[float, dict[str, float]]:
        before, began = cpu_by_name(self._roots), time.perf_counter()
        what()
        took_s, after = time.perf_counter() - began, cpu_by_name(self._roots)
        return took_s, {name: after[name] - before[name] for name in before}


def measure(address: str, roots: Roots, quick: bool) -> CpuTimes:
    """Every kind of call, on streams of its own."""
    calls, meter, few = Calls(address), CpuMeter(roots), 4 if quick else 1
    calls.create_scope()
    calls.create_stream("t", 4)
    time.sleep(_REST_S)
    idle = meter.idle(20 / few)
    measured = {kind.name: meter.measure(kind) for kind in kinds(calls, few)}
    calls.close()
    return CpuTimes(measured, idle)


def measure_apart(address: str, roots: Roots, quick: bool) -> CpuTimes:
    """Measure in a fresh process. Raises LoadFailedError."""
    given = msgspec.json.encode(roots).decode()
    command = [sys.executable, "-m", "bench.cpu_calls", address, given, *(["--quick"] if quick else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise LoadFailedError(f"the measurement of CPU time ended with exit code {done.returncode}")
    return msgspec.json.decode(done.stdout, type=CpuTimes)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("address", metavar="HOST:PORT")
    parser.add_argument("processes", metavar="PROCESSES", help='such as {"Kafka": [4711]}')
    parser.add_argument("--quick", action="store_true", help="a quarter of the calls, for a look")
    given = parser.parse_args()
    roots = msgspec.json.decode(given.processes, type=dict[str, list[int]])
    sys.stdout.buffer.write(msgspec.json.encode(measure(given.address, roots, given.quick)))


if __name__ == "__main__":
    main()
