"""`python -m bench.endurance --minutes 30`: a system lives on while services are killed and its journal is trimmed.

Snapshots are made every few seconds and the journal is kept for a minute. In each round transactional writers (the
package `pravega`, unmodified) write to a stream of their own, which is scaled, while every service in turn gets
SIGKILL and is started once more. At the end of a round all that was committed is read: once, in order by key, and
nothing else. Beside it stands how long the journal is. Exit code 1 if a round fails or a partition is never trimmed.
"""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path
from tempfile import mkdtemp

from confluent_kafka import Consumer, TopicPartition
from support.controller import Controller, controller
from support.txn_traffic import TxnTraffic

from bench.peer import until_scope
from harness import System
from sluice.kafka.topics import JOURNAL
from sluice_local.settings import LocalSettings

SERVICES = ("txn-manager-0", "stream-workflows-0", "cluster-manager-0", "api-gateway-0")
SETTINGS = {
    "SLUICE_SNAPSHOT_MIN_RECORDS": "20",
    "SLUICE_SNAPSHOT_INTERVAL_S": "20",
    "SLUICE_SNAPSHOT_LOOK_S": "2",
    "SLUICE_JOURNAL_KEEP": "PT60S",
}
PARTITIONS = 2
WRITERS = 4
_READY_S = 120.0
_READ_S = 300.0


def run(system: System, minutes: float) -> bool:
    """Rounds until so much time has passed; whether every partition that has records was trimmed."""
    ends_at, number = time.monotonic() + minutes * 60, 0
    with controller(system.grpc_address) as gateway:
        while time.monotonic() < ends_at:
            number += 1
            _say(f"round {number}: {_round(system, gateway)}")
            spans = journal_spans(system)
            kept, ever = sum(end - begin for begin, end in spans), sum(end for _, end in spans)
            _say(f"  journal: {kept:,} records of {ever:,} are kept")
    return all(begin for begin, end in journal_spans(system) if end)


def _round(system: System, gateway: Controller) -> str:
    """Kill each service once under load; how many transactions ended how. Raises AssertionError for what is not so."""
    with TxnTraffic(gateway, system.grpc_address, WRITERS) as traffic:
        for name in SERVICES:
            traffic.goes_on()
            system.kill(name)
            system.start(name, deadline_s=_READY_S)
            traffic.scale()
        traffic.goes_on(100)
        return ", ".join(f"{count} {end}" for end, count in asyncio.run(traffic.ends_exactly_once(_READ_S)).items())


def journal_spans(system: System) -> list[tuple[int, int]]:
    """For each partition of the journal the offsets where it begins and ends."""
    consumer = Consumer({"bootstrap.servers": system.kafka_bootstrap, "group.id": "bench-endurance"})
    try:
        partitions = [TopicPartition(JOURNAL.name, p) for p in range(system.settings.partitions)]
        return [consumer.get_watermark_offsets(partition, timeout=30) for partition in partitions]
    finally:
        consumer.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="make endurance", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    arguments = parser.parse_args()
    os.environ.update(SETTINGS)
    folder = LocalSettings().home / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    system = System(Path(mkdtemp(prefix="endurance-", dir=folder)), segment_stores=1, partitions=PARTITIONS)
    try:
        system.up()
        until_scope(system.grpc_address)
        trimmed = run(system, arguments.minutes)
    finally:
        system.down()
    if not trimmed:
        _say("a partition of the journal was never trimmed")
    return 0 if trimmed else 1


def _say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
