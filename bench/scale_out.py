"""`python -m bench.scale_out`: gateways, stream-workflows and txn-managers from one to three and back, under load.

For each step of each service: after how many seconds every instance that runs, and none that does not, had work. With
one, two and three of each: how many calls a second the whole answers, and what a call takes of the processors in all
instances of a service together, with what the model of docs/scaling.md makes of that. While that is measured each
instance stays on one core, the first on the first; what they call, and the callers, run on any. The gateways are
reached through one address; each caller has a connection of its own.
"""

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import linear_regression
from typing import NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bench.balancer import Balancer
from bench.calls import Calls
from bench.prober import Prober, summary
from bench.processor_time import Roots, cpu_by_name
from harness import System, eventually
from sluice.kafka.topics import ABORT, COMMIT, REQUESTS_TRANSACTIONS
from sluice_local.settings import LocalSettings

INSTANCES = 3
SERVICES = ("stream-workflows", "txn-manager", "api-gateway")
GROUPS = {
    "stream-workflows": ["stream-workflows"],
    "txn-manager": [f"txn-manager-{topic.name}" for topic in (REQUESTS_TRANSACTIONS, COMMIT, ABORT)],
}
"""The consumer groups that the instances of a service share."""
_CALLERS = 24
_MOVES_S = 60.0
_SHARE = 0.7
"""Of a core, that an instance may take: the model's u."""
_NOTHING_US = 20
"""Of a call, that is no more than what its measurement may be off."""


class Load(NamedTuple):
    """How many calls were answered in how many seconds, and the seconds that each service's instances worked for it."""

    calls: int
    took_s: float
    cpu_s: Mapping[str, float]

    def call_us(self, service: str, idle: Mapping[str, float]) -> float:
        """Of a call, without what the service takes without calls, in seconds of a second."""
        return max(0.0, self.cpu_s[service] - idle[service] * self.took_s) / self.calls * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--spell-s", type=float, default=15.0, help="seconds of each measurement")
    arguments = parser.parse_args()
    folder = LocalSettings().home / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="scale-out-", dir=folder))
    system = System(home, segment_stores=1, api_gateways=INSTANCES, stream_workflows=INSTANCES, txn_managers=INSTANCES)
    try:
        with system, Balancer(system.grpc_addresses) as balancer:
            _measure(system, balancer.address, arguments.spell_s)
    finally:
        shutil.rmtree(home / "data", ignore_errors=True)
    return 0


def _measure(system: System, address: str, spell_s: float) -> None:
    for service in SERVICES:
        for name in _spare(service):
            system.stop(name)
    _settle(system, dict.fromkeys(GROUPS, 1))
    # Not recorded: fresh processes are slow, those of Java most of all.
    for _name, call in _loads():
        _load(system, address, call, spell_s)
    measured = {1: _throughput(system, address, 1, spell_s)}
    for instances in range(2, INSTANCES + 1):
        for service in SERVICES:
            _change(system, address, service, instances)
        measured[instances] = _throughput(system, address, instances, spell_s)
    for service in SERVICES:
        _change(system, address, service, 1)
    _print_model(measured)


def _change(system: System, address: str, service: str, instances: int) -> None:
    """To so many of a service, under calls at a steady rate."""
    with Prober(address, threads=2) as prober:
        began = time.monotonic()
        changed = [name for name in _spare(service) if system.is_running(name) is not (_number(name) < instances)]
        for name in changed:
            if instances == 1:
                system.stop(name)
            else:
                system.start(name, wait=False)
        if instances > 1:
            for name in changed:
                system.wait_ready(name)
        changed_s = time.monotonic() - began
        _settle(system, {service: instances} if service in GROUPS else {})
        moved_s = time.monotonic() - began
    print(f"{service} to {instances}: {'ready' if instances > 1 else 'ended'} after {changed_s:.1f} s, ", end="")
    print(f"work moved after {moved_s:.1f} s; {summary(prober.between(began, began + moved_s))}", flush=True)


def _spare(service: str) -> list[str]:
    return [f"{service}-{number}" for number in range(1, INSTANCES)]


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])


def _settle(system: System, instances: Mapping[str, int]) -> None:
    """Wait until so many members of the services' consumer groups have partitions, and no others have."""
    admin = AdminClient({"bootstrap.servers": system.kafka_bootstrap})

    def owners() -> list[tuple[int, int]]:
        groups = {group: wanted for service, wanted in instances.items() for group in GROUPS[service]}
        if not groups:
            return []
        described = admin.describe_consumer_groups(list(groups))
        return [
            (wanted, len({m.client_id for m in described[group].result().members if m.assignment.topic_partitions}))
            for group, wanted in groups.items()
        ]

    def shared() -> bool:
        try:
            return all(wanted == found for wanted, found in owners())
        except KafkaException:
            return False

    eventually(shared, _MOVES_S, f"the work is shared by {instances}")


def _pin(system: System) -> None:
    """Instances of a service get a core each as long as there is one."""
    cores = sorted(os.sched_getaffinity(0))
    for name in [name for service in SERVICES for name in (f"{service}-0", *_spare(service))]:
        if system.is_running(name):
            # Threads begin where the one that starts them is.
            for thread in Path(f"/proc/{system.pid(name)}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {cores[_number(name) % len(cores)]})


Measured = Mapping[str, Mapping[str, float]]
"""Microseconds of a call, by load and service."""


def _throughput(system: System, address: str, instances: int, spell_s: float) -> Measured:
    _pin(system)
    before = cpu_by_name(_roots(system))
    threading.Event().wait(spell_s)
    after = cpu_by_name(_roots(system))
    idle = {service: (after[service] - before[service]) / spell_s for service in after}
    found = {}
    for name, call in _loads():
        load = _load(system, address, call, spell_s)
        found[name] = {service: load.call_us(service, idle) for service in load.cpu_s}
        shown = ", ".join(f"{service} {us:.0f}" for service, us in found[name].items())
        print(f"{instances} of each: {name}: {load.calls / load.took_s:.0f}/s; us of CPU a call: {shown}", flush=True)
    return found


def _print_model(measured: Mapping[int, Measured]) -> None:
    """The line w + n r f through what was measured, how far off it is, and what the instances could serve."""
    for name in measured[1]:
        for service in SERVICES:
            cost_us = {instances: found[name][service] for instances, found in measured.items()}
            if min(cost_us.values()) < _NOTHING_US:
                continue
            following_us, serving_us = linear_regression(list(cost_us), list(cost_us.values()))
            off_us = max(abs(serving_us + following_us * n - us) for n, us in cost_us.items())
            served = ", ".join(f"{_SHARE * 1e6 * n / us:.0f}" for n, us in cost_us.items())
            print(
                f"{name}: {service}: w {serving_us:.0f} us, r f {following_us:.0f} us, at most {off_us:.0f} us off; "
                f"1, 2, 3 instances serve {served}/s at {_SHARE:.0%} of a core each",
                flush=True,
            )


def _roots(system: System) -> Roots:
    """The processes of each service that run, and the broker's."""
    names = [name for name in system.names if system.is_running(name)]
    roots = {service: [system.pid(name) for name in names if name.startswith(service)] for service in SERVICES}
    return {**roots, "kafka": [system.pid("kafka")]}


def _loads() -> list[tuple[str, Callable[[Calls, int], object]]]:
    return [
        ("getCurrentSegments", lambda calls, _number: calls.current_segments(0)),
        ("createStream", lambda calls, number: calls.create_stream(f"c{number}")),
        ("open and commit", lambda calls, _number: calls.open_and_commit("t")),
    ]


def _load(system: System, address: str, call: Callable[[Calls, int], object], spell_s: float) -> Load:
    """So many callers for a while, each with a scope, a stream and a connection of its own."""
    stopped, counts = threading.Event(), [0] * _CALLERS
    errors: list[Exception] = []

    def run(caller: int) -> None:
        try:
            calls = Calls(address)
            calls.create_scope()
            calls.create_stream("t")
            calls.create_stream("s60")
            ready.wait()
            while not stopped.is_set():
                call(calls, counts[caller])
                counts[caller] += 1
        except Exception as error:  # noqa: BLE001 - raised below
            errors.append(error)

    ready = threading.Barrier(_CALLERS + 1)
    threads = [threading.Thread(target=run, args=(caller,)) for caller in range(_CALLERS)]
    for thread in threads:
        thread.start()
    ready.wait()
    began, before = time.monotonic(), cpu_by_name(_roots(system))
    stopped.wait(spell_s)
    stopped.set()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    after, took_s = cpu_by_name(_roots(system)), time.monotonic() - began
    return Load(sum(counts), took_s, {name: after[name] - before[name] for name in after})


if __name__ == "__main__":
    sys.exit(main())
