"""`python -m bench.scale_out`: gateways, stream-workflows and txn-managers from one to three and back, under load.

For each step: after how many seconds every instance that runs, and none that does not, had work; and what the whole
does with that many instances. The gateways are reached through one address; each caller has a connection of its own.
"""

import argparse
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bench.balancer import Balancer
from bench.calls import Calls
from bench.prober import Prober, summary
from harness import System, eventually
from sluice_local.settings import LocalSettings

MOST = 3
CONSUMERS = ("stream-workflows", "txn-manager")
_CALLERS = 24
_MOVES_S = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--spell-s", type=float, default=15.0, help="seconds of each measurement")
    arguments = parser.parse_args()
    folder = LocalSettings().home / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="scale-out-", dir=folder))
    system = System(home, segment_stores=1, api_gateways=MOST, stream_workflows=MOST, txn_managers=MOST)
    try:
        with system, Balancer(system.grpc_addresses) as balancer:
            _measure(system, balancer.address, arguments.spell_s)
    finally:
        shutil.rmtree(home / "data", ignore_errors=True)
    return 0


def _measure(system: System, address: str, spell_s: float) -> None:
    spare = [f"{service}-{n}" for n in range(1, MOST) for service in (*CONSUMERS, "api-gateway")]
    for name in spare:
        system.stop(name)
    _settle(system, 1)
    with Prober(address, threads=2) as prober:
        _throughput(address, "1 of each", spell_s)
        began = time.monotonic()
        for name in spare:
            system.start(name, wait=False)
        for name in spare:
            system.wait_ready(name)
        ready_s = time.monotonic() - began
        print(f"three of each: ready after {ready_s:.1f} s, work shared after {_settle(system, MOST, began):.1f} s")
        _throughput(address, "3 of each", spell_s)
        began = time.monotonic()
        for name in spare:
            system.stop(name)
        print(f"one of each again: ended after {time.monotonic() - began:.1f} s, ", end="")
        print(f"work moved after {_settle(system, 1, began):.1f} s")
        _throughput(address, "1 again", spell_s)
        print(f"calls meanwhile: {summary(prober.probes)}")


def _settle(system: System, instances: int, began: float | None = None) -> float:
    """Wait until so many members of each consumer group have partitions, and nobody else has."""
    since = time.monotonic() if began is None else began
    admin = AdminClient({"bootstrap.servers": system.kafka_bootstrap})

    def shared() -> bool:
        try:
            groups = [found.result() for found in admin.describe_consumer_groups(list(CONSUMERS)).values()]
        except KafkaException:
            return False
        owners = [[m for m in group.members if m.assignment and m.assignment.topic_partitions] for group in groups]
        return all(len({m.client_id for m in members}) == instances for members in owners)

    eventually(shared, _MOVES_S, f"the work is shared by {instances}")
    return time.monotonic() - since


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
        except Exception as error:  # noqa: BLE001 - told below
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
