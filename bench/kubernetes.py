"""`make k8s-test`: what clients notice while pods are scaled, rolled, deleted and drained on the node of `make k8s-up`.

An unmodified client, the package `pravega`, writes and reads a stream through the gateway's Service, and calls are made
at a steady rate. After each step all that was acknowledged so far must be read, once and in order by key. It prints a
table: how long each step took, and the longest silence of writer, reader and calls. Exit code 1 if anything was lost.

Runs in the node's network, where pods and Services have their names and addresses. `python -m bench.kubernetes kubelet
drain` takes the steps with such a word in their names.
"""

import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Self

import httpx
from support.controller import controller, unique
from support.pravega import check_exactly_once
from support.reader import ReaderProcess
from support.writer import WriterProcess

from bench.pod_chart import executors_decide, looked_over, taken_over
from bench.pod_resources import stream_by_kubectl
from bench.pod_scaling import gateway_follows_load, workflows_follow_lag
from bench.pods import deleted, drained, kubectl, kubelet_killed, pods, rolled_out, scaled
from bench.prober import Prober
from harness import eventually

SERVICES = ("api-gateway", "stream-workflows", "txn-manager", "cluster-manager")
OTHERS = ("retention-spark",)
STORES = ("segment-store", "bookie", "kafka", "redis", "zookeeper")
_CAUGHT_UP_S = 180.0
_COLUMNS = (
    "step",
    "took, s",
    "writer silent",
    "reader silent",
    "longest call",
    "calls failed",
    "lost, doubled",
    "page",
)
_LOOK_S = 0.25
_ANSWERS_S = 5.0


class TimedWriter(WriterProcess):
    """Keeps when it was acknowledged something."""

    def __init__(self, address: str, scope: str, stream: str, name: str) -> None:
        self.times: list[float] = []
        super().__init__(address, scope, stream, name)

    def receive(self, line: str) -> None:
        super().receive(line)
        self.times.append(time.monotonic())


class TimedReader(ReaderProcess):
    """Keeps when it got something."""

    def __init__(self, address: str, scope: str, stream: str) -> None:
        self.times: list[float] = []
        super().__init__(address, scope, stream)

    def receive(self, line: str) -> None:
        super().receive(line)
        self.times.append(time.monotonic())


class Overview:
    """What the page says is wrong, asked all the time. As a context it asks inside."""

    def __init__(self, address: str) -> None:
        self._url = f"http://{address}/sluice/v1/overview"
        self._said: list[tuple[float, str]] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def between(self, began: float, ended: float) -> list[str]:
        """The problems that it named meanwhile, and for how long."""
        times: dict[str, list[float]] = {}
        for at, problem in list(self._said):
            if began <= at < ended:
                times.setdefault(problem, []).append(at)
        return [f"{problem} ({found[-1] - found[0]:.1f} s)" for problem, found in times.items()]

    def _ask(self) -> None:
        while not self._stopped.wait(_LOOK_S):
            try:
                problems = httpx.get(self._url, timeout=_ANSWERS_S, trust_env=False).json()["problems"]
            except (httpx.TransportError, ValueError, KeyError):
                continue
            self._said += [(time.monotonic(), problem) for problem in problems]


class Clients:
    """Who writes, reads and calls; `restarts` counts the writers and readers that panicked and were replaced."""

    def __init__(self, address: str, prober: Prober, overview: Overview) -> None:
        self._address, self._prober, self._overview, self._stream = address, prober, overview, "events"
        self._scope = unique("k8s")
        with controller(address) as gateway:
            assert gateway.create_scope(self._scope) == "SUCCESS"
            assert gateway.create_stream(self._scope, self._stream, 4) == "SUCCESS"
        self._writers = [self._new_writer(0)]
        self._reader = self._new_reader()
        self.restarts = 0

    def close(self) -> None:
        for client in (*self._writers, self._reader):
            client.close()

    def acknowledged(self) -> dict[str, int]:
        """By writer how many of its events are known to be stored."""
        return {writer.name: writer.acknowledged for writer in self._writers}

    def write_on(self, since: float) -> None:
        """Return when something has been acknowledged after this time."""
        eventually(lambda: self._has_written(since), _CAUGHT_UP_S, "events are written")

    def read_anew(self) -> None:
        """From the start, in a new group: all that is stored."""
        self._reader.close()
        self._reader = self._new_reader()

    def row(self, title: str, began: float, ended: float) -> str:
        """A line of the table, once all that was acknowledged is read. Raises AssertionError for what was not."""
        self.write_on(ended)
        acknowledged = self.acknowledged()
        eventually(lambda: self._has_read(acknowledged), _CAUGHT_UP_S, f"{title}: all of {acknowledged} is read")
        check_exactly_once(self._read(acknowledged), acknowledged)
        eventually(lambda: self._prober.between(ended, time.monotonic()), _CAUGHT_UP_S, f"{title}: calls are answered")
        until = time.monotonic()
        # Those that have ended: what hangs for longer than the step belongs to the next one.
        calls = [probe for probe in list(self._prober.probes) if began <= probe.due + probe.seconds < until]
        failed = [probe for probe in calls if probe.failure]
        for probe in failed:
            print(f"  {title}: {probe.call}: {probe.failure}", file=sys.stderr)
        cells = (
            title,
            f"{ended - began:.1f}",
            f"{_silence([at for w in self._writers for at in w.times], began, until):.1f}",
            f"{_silence(self._reader.times, began, until):.1f}",
            f"{max((probe.seconds for probe in calls), default=0.0):.1f}",
            f"{len(failed)} of {len(calls)}",
            "none",
            "; ".join(self._overview.between(began, until)),
        )
        return f"| {' | '.join(cells)} |"

    def _new_writer(self, number: int) -> TimedWriter:
        return TimedWriter(self._address, self._scope, self._stream, f"w{number}")

    def _new_reader(self) -> TimedReader:
        return TimedReader(self._address, self._scope, self._stream)

    def _has_written(self, since: float) -> bool:
        writer = self._writers[-1]
        if not writer.running:
            self.restarts += 1
            self._writers.append(self._new_writer(len(self._writers)))
        return bool(writer.times) and writer.times[-1] > since

    def _has_read(self, acknowledged: dict[str, int]) -> bool:
        if not self._reader.running:
            self.restarts += 1
            self.read_anew()
        return len(self._read(acknowledged)) >= sum(acknowledged.values())

    def _read(self, acknowledged: dict[str, int]) -> list[str]:
        """What was read of that."""
        named = ((event, event.partition(":")) for event in list(self._reader.events))
        return [event for event, (writer, _, number) in named if int(number) < acknowledged.get(writer, 0)]


def _silence(times: list[float], began: float, ended: float) -> float:
    """The longest time in between without one."""
    inside = [began, *(t for t in list(times) if began < t < ended), ended]
    return max(later - earlier for earlier, later in pairwise(inside))


def steps(address: str) -> list[tuple[str, Callable[[], None]]]:
    """What is done, and how; all but the drain begins and ends with one pod of each, of stores with as many."""
    found: list[tuple[str, Callable[[], None]]] = []
    for service in SERVICES:
        found += [(f"{service} scaled {a} → {b}", partial(scaled, service, b)) for a, b in ((1, 3), (3, 1))]
    found += [(f"{service} rolled out anew", partial(rolled_out, service)) for service in (*SERVICES, *OTHERS)]
    found += [(f"{app}'s pod deleted", partial(deleted, app)) for app in (*SERVICES, *OTHERS)]
    found += [
        ("a stream by kubectl", partial(stream_by_kubectl, address)),
        ("the kubelet killed", kubelet_killed),
        ("a drain, two gateways", partial(drained, "api-gateway")),
        ("the gateway's autoscaler", partial(gateway_follows_load, address)),
        ("KEDA's query", partial(workflows_follow_lag, address)),
    ]
    several = [app for app in STORES if len(pods(app)) > 1]
    found += [(f"one of {app}'s pods deleted", partial(deleted, app, 1)) for app in several]
    # At last: clients may end meanwhile.
    found += [(f"{app}'s pod deleted", partial(deleted, app)) for app in STORES]
    found += [
        ("Helm's chart takes over", taken_over),
        ("Spark's executors decide, with the chart", executors_decide),
        ("a stream by kubectl, with the chart", partial(stream_by_kubectl, address)),
        ("verify and a back-up, with the chart", looked_over),
    ]
    return found


def main() -> int:
    host = kubectl("get", "service", "api-gateway", "--output=jsonpath={.spec.clusterIP}")
    address = f"{host}:9090"
    wanted = sys.argv[1:]
    with Prober(address, per_s=2) as prober, Overview(f"{host}:10080") as overview:
        clients = Clients(address, prober, overview)
        try:
            clients.write_on(time.monotonic())
            print(f"| {' | '.join(_COLUMNS)} |")
            print(f"{'|---' * len(_COLUMNS)}|", flush=True)
            for title, step in steps(address):
                if wanted and not any(part in title for part in wanted):
                    continue
                began = time.monotonic()
                step()
                print(clients.row(title, began, time.monotonic()), flush=True)
            clients.read_anew()
            print(clients.row("all is read from the start", time.monotonic(), time.monotonic()))
            count = sum(clients.acknowledged().values())
            print(f"{count} events; writers and readers that panicked and were replaced: {clients.restarts}")
        finally:
            clients.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
