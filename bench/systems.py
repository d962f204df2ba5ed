"""The two systems under measurement: Sluice, then Pravega's own controller on the same segment store.

They never run at the same time, so that neither takes the processor from the other, and Kafka is stopped for the one
that does not use it. Each is measured once it is warm: the second would otherwise find a segment store that the first
has warmed for it. The start of the whole system is watched from a thread of its own.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import bare, cpu_calls, secured, show, slow_calls
from bench.figures import CpuTimes, Measured, Readiness
from bench.load import measure_warm
from bench.peer import PeerController, until_scope
from bench.processor_time import Roots
from harness import System
from sluice.settings import ServiceSettings

SERVICES = ("cluster-manager-0", "stream-workflows-0", "txn-manager-0", "api-gateway-0")
_NOT_FOR_PEER = ("retention-spark-0", "redis", "kafka")
_LOOK_S = 0.05

Say = Callable[[str], None]


@contextmanager
def private_system(home: Path, spark: bool) -> Iterator[tuple[System, float]]:
    """A system with one segment store, and the seconds from Kafka's readiness to that of the last service.

    None of the calls has work for retention-spark; it runs beside them only if `spark`.
    """
    system = System(home, segment_stores=1, retention_sparks=int(spark))
    secured.become_admin(system.settings)
    watch = _StartWatch(system)
    try:
        watch.start()
        system.up()
        yield system, watch.seconds_after_kafka()
    finally:
        watch.stop()
        system.down()


def measure_sluice(system: System, after_kafka_s: float, quick: bool, say: Say) -> Measured:
    """Measure the running system: calls, their parts bare, the start of its services alone, at last CPU time."""
    say(f"Sluice at {system.grpc_address}, logs in {system.settings.logs_dir}")
    until_scope(system.grpc_address)
    calls = measure_warm(system.grpc_address, quick)
    load = _machine_load()
    client = ServiceSettings(kafka_bootstrap=system.kafka_bootstrap, instance="bench").kafka_client()
    slow = slow_calls.summarise(calls, slow_calls.read_all(client, system.settings.partitions))
    say("  the parts of calls, bare")
    parts = bare.measure_apart(
        system.grpc_address,
        system.kafka_bootstrap,
        system.segment_store_addresses[0],
        system.settings.partitions,
        system.settings.container_count,
        quick,
    )
    readiness = Readiness(round(_restart(system), 2), round(after_kafka_s, 2))
    return Measured(calls, readiness, load, parts, slow, _cpu(system, {show.KAFKA: [system.pid("kafka")]}, quick, say))


def measure_peer(system: System, quick: bool, say: Say) -> Measured:
    """Put Pravega's own controller in the place of our services and measure it."""
    for name in (*reversed(SERVICES), *_NOT_FOR_PEER):
        if name in system.names:
            system.stop(name)
    with PeerController(system.settings) as peer:
        say(f"Pravega's controller at {peer.address}, log {peer.log}")
        took_s = peer.start()
        calls = measure_warm(peer.address, quick)
        load = _machine_load()
        # For a look ours is enough.
        cpu = None if quick else _cpu(system, {"real controller": [peer.pid]}, quick, say)
        return Measured(calls, Readiness(round(took_s, 2)), load, cpu=cpu)


def _restart(system: System) -> float:
    """Stop the services and start them; the seconds until they serve."""
    for name in SERVICES:
        system.stop(name)
    began = time.monotonic()
    for name in SERVICES:
        system.start(name, wait=False)
    for name in SERVICES:
        system.wait_ready(name)
    until_scope(system.grpc_address)
    return time.monotonic() - began


def _cpu(system: System, roots: Roots, quick: bool, say: Say) -> CpuTimes:
    """CPU time per call of the services that run, of these processes, and of what has the segments."""
    say("  CPU time per call")
    parts = [(name, f"{name}-0") for name in show.SERVICES]
    ours = {name: [system.pid(part)] for name, part in parts if part in system.names and system.is_running(part)}
    others = {show.STORE: [system.pid("segment-store-0"), system.pid("bookie")], "ZooKeeper": [system.pid("zookeeper")]}
    return cpu_calls.measure_apart(system.grpc_address, {**ours, **roots, **others}, quick)


def _machine_load() -> float:
    return round(os.getloadavg()[0], 1)


class _StartWatch:
    """Notes when each part was ready for the first time."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._ready_at: dict[str, float] = {}
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._watch, args=(name,)) for name in ("kafka", *SERVICES)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def seconds_after_kafka(self) -> float:
        for thread in self._threads:
            thread.join()
        return max(self._ready_at[name] for name in SERVICES) - self._ready_at["kafka"]

    def _watch(self, name: str) -> None:
        while not self._ended.is_set():
            if self._system.is_ready(name):
                self._ready_at[name] = time.monotonic()
                return
            self._ended.wait(_LOOK_S)
