"""`python -m bench.growth`: what a system of so many streams takes, and how quick it is: 1,000, 10,000 and more.

The journal is written first, by the real decisions (see `bench.journal_load`), into a Kafka of its own; the services
start on it. The streams of the journal have no segments, so only reads and lists use those. What creates and commits
does that on streams of its own. For each number of streams: snapshots of all partitions, with calls beside them; calls
one after the other; then the memory of each service, what its start from the snapshots takes and how long. At last
it says by how much each call is slower than with the fewest streams.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from bench import secured
from bench.calls import Calls
from bench.figures import Figures
from bench.growth_table import Grown, Snapshots, Started, misses, per_stream, table
from bench.journal_load import Story, fill
from bench.load import LoadFailedError
from bench.peer import until_scope
from bench.processor_time import cpu_s, memory_mib
from bench.stopwatch import UnexpectedReplyError, one_by_one, outcome, own_times
from harness import System
from sluice.controller_api import controller_pb2 as pb
from sluice.engine.snapshots import snapshots_of
from sluice.kafka.snapshots import KafkaSnapshotStore
from sluice.kafka.topics import JOURNAL
from sluice.settings import ServiceSettings
from sluice_local.settings import LocalSettings

SIZES = (1_000, 10_000, 100_000, 1_000_000)
SCOPE_STREAMS = 500
"""In one scope of the journal; so a list of a scope is the same work at each size."""

SERVICES = ("api-gateway-0", "stream-workflows-0", "txn-manager-0", "cluster-manager-0")
READ, LIST_PAGE, LIST_SCOPE = "getCurrentSegments", "listStreamsInScope, a page", "listStreamsInScope, a whole scope"
CREATE, TRANSACTION = "createStream, 1 segment", "open to COMMITTED, event in 1 of 4"
BESIDE = ", while snapshots are made"
_SNAPSHOT_SETTINGS = {"SLUICE_SNAPSHOT_MIN_RECORDS": "1", "SLUICE_SNAPSHOT_LOOK_S": "1"}
"""So each partition gets its first snapshot at once, however few records it has, and no second one for an hour."""

_DEADLINE_S = 60.0
_START_S = 900.0
_MIB = 1024 * 1024

Say = Callable[[str], None]


class GrownCalls:
    """Calls on what the journal says."""

    def __init__(self, address: str, streams: int) -> None:
        self._stub = secured.stub(secured.channel(address))
        self._scopes = streams // SCOPE_STREAMS

    def read(self, number: int) -> None:
        """Another stream of another scope each time."""
        stream = number * 7919 % SCOPE_STREAMS
        info = pb.StreamInfo(scope=self._scope(number), stream=f"stream-{stream:04d}")
        if len(self._stub.getCurrentSegments(info, timeout=_DEADLINE_S).segmentRanges) != stream % 4 + 1:
            raise UnexpectedReplyError(f"{info.scope}/{info.stream} has other segments")

    def list_page(self, number: int) -> None:
        self._page(self._scope(number), "")

    def list_scope(self, number: int) -> None:
        """Every stream of a scope, page by page, and its mark stream."""
        scope, token, found = self._scope(number), "", 0
        while True:
            page = self._page(scope, token)
            if not page.streams:
                break
            token, found = page.continuationToken.token, found + len(page.streams)
        if found != 2 * SCOPE_STREAMS:
            raise UnexpectedReplyError(f"{found} streams in {scope}")

    def _page(self, scope: str, token: str) -> pb.StreamsInScopeResponse:
        question = pb.StreamsInScopeRequest(
            scope=pb.ScopeInfo(scope=scope), continuationToken=pb.ContinuationToken(token=token)
        )
        return self._stub.listStreamsInScope(question, timeout=_DEADLINE_S)

    def _scope(self, number: int) -> str:
        return f"scope-{number * 104_729 % self._scopes + 1:05d}"


def measure(home: Path, streams: int, few: int, say: Say) -> Grown:
    """One size, on a system of its own, whose data are gone afterwards."""
    system = System(home, segment_stores=1, start_timeout_s=_START_S)
    secured.become_admin(system.settings)
    try:
        system.start("kafka")
        story = Story()
        story.tell(SCOPE_STREAMS, 0)
        records, _void = fill(system.kafka_bootstrap, system.settings.partitions, story, streams // SCOPE_STREAMS)
        size = _journal_mib(system)
        say(f"{streams:,} streams: {records:,} records, {size:,} MiB")
        system.up()
        until_scope(system.grpc_address, _START_S)
        began = time.monotonic()
        beside = {f"{name}{BESIDE}": figures for name, figures in _calls(system, streams, few, say, BESIDE)}
        snapshots = _until_snapshots(system, began)
        say(f"  snapshots: {snapshots.seconds:.1f} s, {snapshots.mib:,} MiB")
        calls = dict(_calls(system, streams, few, say))
        started = {name: _restart(system, name, say) for name in SERVICES}
        return Grown(streams, records, size, snapshots, started, {**calls, **beside}, round(os.getloadavg()[0], 1))
    finally:
        system.down()


def _journal_mib(system: System) -> float:
    """What the journal's partitions take on the broker's disk, compressed."""
    folders = (f for f in system.settings.data_dir.rglob(f"{JOURNAL.name}-*") if f.is_dir())
    return round(sum(file.stat().st_size for folder in folders for file in folder.glob("*.log")) / _MIB, 1)


def _until_snapshots(system: System, began: float) -> Snapshots:
    """Return when each partition has a snapshot that a second run has confirmed."""
    client = ServiceSettings(kafka_bootstrap=system.kafka_bootstrap, instance="bench-growth").kafka_client()
    store = KafkaSnapshotStore(client)
    while True:
        notes = asyncio.run(store.notes(range(system.settings.partitions)))
        confirmed = [[s.manifest for s in snapshots_of(of)[0] if s.is_confirmed] for of in notes.values()]
        took_s = time.monotonic() - began
        if all(confirmed):
            return Snapshots(round(took_s, 1), round(sum(one[-1].bytes for one in confirmed) / _MIB, 1))
        if took_s > _START_S:
            raise LoadFailedError(f"snapshots of {sum(map(bool, confirmed))} partitions after {took_s:.0f} s")
        time.sleep(1)


def _calls(system: System, streams: int, few: int, say: Say, when: str = "") -> Iterator[tuple[str, Figures]]:
    grown, calls = GrownCalls(system.grpc_address, streams), Calls(system.grpc_address)
    calls.create_scope()
    calls.create_stream("t", 4)
    takes: list[tuple[str, Callable[[], Figures]]] = [
        (READ, lambda: one_by_one(grown.read, 1000 // few)),
        (LIST_PAGE, lambda: one_by_one(grown.list_page, 200 // few)),
        (LIST_SCOPE, lambda: one_by_one(grown.list_scope, 50 // few)),
        (CREATE, lambda: one_by_one(lambda number: calls.create_stream(f"s{number}"), 200 // few)),
        (TRANSACTION, lambda: own_times(lambda _: calls.whole_transaction(1), 100 // few)),
    ]
    try:
        for name, take in takes:
            figures = outcome(take)
            say(f"  {name}{when}: {figures.failed or f'{figures.p50_ms} / {figures.p99_ms} ms'}")
            yield name, figures
    finally:
        calls.close()


def _restart(system: System, name: str, say: Say) -> Started:
    """End the service and start it alone; until it is ready."""
    system.stop(name)
    began = os.times().elapsed
    system.start(name, deadline_s=_START_S)
    seconds, pid = os.times().elapsed - began, system.pid(name)
    started = Started(round(seconds, 2), round(cpu_s(pid), 2), *memory_mib(pid))
    say(f"  {name}: ready after {seconds:.1f} s, {started.cpu_s} s of CPU, {started.rss_mib} MiB")
    return started


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--streams", type=int, nargs="+", default=list(SIZES), help=f"multiples of {SCOPE_STREAMS}")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all figures there, too")
    parser.add_argument("--quick", action="store_true", help="a fifth of the calls, for a look")
    arguments = parser.parse_args()
    if any(streams <= 0 or streams % SCOPE_STREAMS for streams in arguments.streams):
        parser.error(f"--streams: multiples of {SCOPE_STREAMS}")
    grown = _measure_all(sorted(arguments.streams), 5 if arguments.quick else 1)
    if arguments.json is not None:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(grown)) + b"\n")
    print(f"\n{table(grown)}\n")
    for name, (kib, us) in per_stream(grown).items():
        print(f"{name}: each further stream {kib:.1f} KiB of memory and {us:.0f} µs of CPU at start")
    missed = misses(grown)
    for miss in missed:
        print(f"MISSED  {miss}")
    return 1 if missed else 0


def _measure_all(sizes: Sequence[int], few: int) -> list[Grown]:
    os.environ.update(_SNAPSHOT_SETTINGS)
    folder = LocalSettings().home / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    run = Path(tempfile.mkdtemp(prefix="growth-", dir=folder))
    try:
        return [measure(run / str(streams), streams, few, _say) for streams in sizes]
    finally:
        shutil.rmtree(run, ignore_errors=True)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
