"""`python -m bench.scale_out`: gateways, stream-workflows and txn-managers from one to three and back, under load.

For each step of each service: after how many seconds every instance that runs, and none that does not, had work; and
what the whole does with one and with three of each. The gateways are reached through one address; each caller has a
connection of its own.
"""

import argparse
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bench.balancer import Balancer
from bench.calls import Calls
from bench.prober import Prober, summary
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
        _per_s(address, call, spell_s)
    _throughput(address, "1 of each", spell_s)
    for service in SERVICES:
        _change(system, address, service, INSTANCES)
    _throughput(address, "3 of each", spell_s)
    for service in SERVICES:
        _change(system, address, service, 1)
    _throughput(address, "1 again", spell_s)


def _change(system: System, address: str, service: str, instances: int) -> None:
    """From one to three of a service, or back, under calls at a steady rate."""
    with Prober(address, threads=2) as prober:
        began = time.monotonic()
        for name in _spare(service):
            if instances == 1:
                system.stop(name)
            else:
                system.start(name, wait=False)
        if instances > 1:
            for name in _spare(service):
                system.wait_ready(name)
        changed_s = time.monotonic() - began
        _settle(system, {service: instances} if service in GROUPS else {})
        moved_s = time.monotonic() - began
    print(f"{service} to {instances}: {'ready' if instances > 1 else 'ended'} after {changed_s:.1f} s, ", end="")
    print(f"work moved after {moved_s:.1f} s; {summary(prober.between(began, began + moved_s))}", flush=True)


def _spare(service: str) -> list[str]:
    return [f"{service}-{number}" for number in range(1, INSTANCES)]


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


def _throughput(address: str, title: str, spell_s: float) -> None:
    for name, call in _loads():
        print(f"{title:10} {name:20} {_per_s(address, call, spell_s):7.0f}/s", flush=True)


def _loads() -> list[tuple[str, Callable[[Calls, int], object]]]:
    return [
        ("getCurrentSegments", lambda calls, _number: calls.current_segments(0)),
        ("createStream", lambda calls, number: calls.create_stream(f"c{number}")),
        ("open and commit", lambda calls, _number: calls.open_and_commit("t")),
    ]


def _per_s(address: str, call: Callable[[Calls, int], object], spell_s: float) -> float:
    """Calls per second of so many callers, each with a scope, a stream and a connection of its own."""
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
    began = time.monotonic()
    stopped.wait(spell_s)
    stopped.set()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return sum(counts) / (time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
