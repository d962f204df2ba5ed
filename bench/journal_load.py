"""How long a service takes to load a journal of a million records: from the start of its follower until all is folded.

The journal is made by the real decisions: one scope lives through them on a small scale, and what it appended is
written again for a thousand scopes, interleaved, with keys, headers and sizes as a service writes them. Some records
are void, as those of a proposer that lost a race are. Writing is done by this process, loading by fresh ones.
"""

import argparse
import itertools
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import uvloop
from confluent_kafka import Producer

from bench import secured
from bench.figures import Loaded
from bench.load import LoadFailedError
from harness import System
from sluice.domain.commands import Command
from sluice.domain.config import RetentionPolicy, RetentionType, ScalingPolicy, StreamConfig
from sluice.domain.decision import Context, Decision
from sluice.domain.ids import StreamId
from sluice.domain.model import DomainModel, JournalEntry, JournalRecord, encode_record
from sluice.domain.registry import DECIDE
from sluice.domain.scope.commands import CreateScope
from sluice.domain.stream.commands import CreateStream, UpdateStream
from sluice.domain.stream.decide import finish_create
from sluice.engine.fold import GuardedReader, Outcome, PartitionView
from sluice.engine.journal import Journal
from sluice.engine.record import Source, record_kind
from sluice.kafka.connections import KafkaConnections
from sluice.kafka.headers import cloud_event_headers
from sluice.kafka.topics import JOURNAL, REQUESTS_STREAMS, ensure_topics
from sluice.settings import ServiceSettings
from sluice.telemetry.metrics import JOURNAL_VOID

SCOPES, STREAMS, UPDATES = 1_000, 100, 7
"""A thousand scopes of a hundred streams, each created with two records and changed by seven."""

_INTERLEAVED = 50
_VOID_EVERY = 50
_LOADS = 3
_TEMPLATE = "scope-00000"
_REQUEST = "a1b2c3d4e5"
_AT_MS = 1_700_000_000_000
_SOURCE = f"{REQUESTS_STREAMS.name}@{'0a' * 16}"
_FIRST_OFFSET = 7_000_000_000
_OFFSETS = re.compile(rb"\b7000[0-9]{6}\b")
"""How offsets of requests look in the story; each record that is written gets one of its own."""


class Line(msgspec.Struct, frozen=True):
    """One record as it is written: its key, value and the type its headers tell."""

    key: str
    value: bytes
    kind: str


class Story:
    """One scope and its streams, from the first decision on."""

    def __init__(self) -> None:
        self._view = PartitionView(DomainModel())
        self._ids = itertools.count()
        self._offsets = itertools.count(_FIRST_OFFSET)
        self.lines: list[Line] = []
        self.void = 0

    def tell(self, streams: int, updates: int) -> None:
        """Live through everything, with the requests in the order that services would meet them in."""
        self._decide(CreateScope(scope=_TEMPLATE), self._request())
        for number in range(streams):
            self._create(f"stream-{number:04d}", number % 4 + 1)
        for round_ in range(updates):
            for number in range(streams):
                config = StreamConfig(
                    scaling=ScalingPolicy(min_segments=number % 4 + 1),
                    retention=RetentionPolicy(RetentionType.TIME, 3_600_000 * (round_ + 1), 2**63 - 1),
                    tags=(f"round-{round_}",),
                )
                update = UpdateStream(scope=_TEMPLATE, stream=f"stream-{number:04d}", config=config)
                self._decide(update, self._request())

    def _create(self, name: str, segments: int) -> None:
        config = StreamConfig(scaling=ScalingPolicy(min_segments=segments))
        request = self._request()
        self._decide(CreateStream(scope=_TEMPLATE, stream=name, config=config), request)
        finished = finish_create(self._guarded(), StreamId(_TEMPLATE, name))
        self._append(f"{_TEMPLATE}/{name}", request, finished, None)

    def _decide(self, command: Command, request: str) -> None:
        decision = DECIDE[type(command)](self._guarded(), command, Context(_AT_MS, request, caught_up=True))
        source = Source(_SOURCE, 0, next(self._offsets))
        self._append(command.key, request, decision, source)

    def _guarded(self) -> GuardedReader:
        self._reader = GuardedReader(self._view)
        return self._reader

    def _append(self, key: str, request: str, decision: Decision, source: Source | None) -> None:
        for event in decision.events:
            self._reader.get(event.aggregate)
        replied = request if decision.reply is not None else None
        entry = JournalEntry(self._reader.seen, decision.events, replied, decision.reply, source)
        record = JournalRecord(
            id=f"{_TEMPLATE}-{next(self._ids):x}",
            at=_AT_MS,
            by="stream-workflows/stream-workflows-0",
            entries=(entry,),
            floors={source.topic: source.position} if source is not None else {},
        )
        line = Line(key, encode_record(record), record_kind(record))
        self.lines.append(line)
        if self._view.fold(record, len(self.lines), _AT_MS) != [Outcome.COUNTED]:
            raise AssertionError(f"a record of the story does not count: {record}")
        if len(self.lines) % _VOID_EVERY == 0:
            self.lines.append(line)
            self.void += 1

    def _request(self) -> str:
        return f"{_REQUEST}-{_TEMPLATE}-{next(self._ids):x}"


def lines_of(story: Story, scopes: int) -> Iterator[Line]:
    """The story of every scope, with those of a few interleaved."""
    template, offsets = _TEMPLATE.encode(), itertools.count()
    for first in range(1, scopes + 1, _INTERLEAVED):
        names = [f"scope-{number:05d}" for number in range(first, min(first + _INTERLEAVED, scopes + 1))]
        for line in story.lines:
            for name in names:
                key = line.key.replace(_TEMPLATE, name)
                value = _OFFSETS.sub(b"%d" % next(offsets), line.value.replace(template, name.encode()))
                yield Line(key, value, line.kind)


def fill(bootstrap: str, partitions: int, story: Story, scopes: int) -> tuple[int, int]:
    """Write the journal of so many scopes; return the numbers of records and of void ones among them."""
    client = ServiceSettings(kafka_bootstrap=bootstrap, instance="bench").kafka_client()
    ensure_topics(client, partitions, 1)
    producer = Producer(
        {
            **client,
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
            "linger.ms": 5,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 200_000,
        }
    )
    count = 0
    for line in lines_of(story, scopes):
        headers = cloud_event_headers(line.kind, f"{count:x}", "stream-workflows/stream-workflows-0", _AT_MS, line.key)
        while True:
            try:
                producer.produce(JOURNAL.name, key=line.key, value=line.value, headers=headers)
                break
            except BufferError:
                producer.poll(0.05)
        count += 1
        if count % 1000 == 0:
            producer.poll(0)
    if producer.flush(60):
        raise LoadFailedError("Kafka did not take all records of the journal")
    return count, story.void * scopes


async def load(bootstrap: str, partitions: int) -> Loaded:
    """Follow the journal from its start, in this process, until it is loaded."""
    client = ServiceSettings(kafka_bootstrap=bootstrap, instance="bench").kafka_client()
    journal = Journal(KafkaConnections(client, partitions, 6.0).log, DomainModel(), "bench/bench")
    began, cpu = time.perf_counter(), time.process_time()
    journal.start()
    await journal.loaded.wait()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    if journal.failure is not None:
        raise LoadFailedError(journal.failure)
    records = sum(view.next_offset for view in journal.views())
    await journal.stop()
    return Loaded(records, _void(), round(seconds, 2), round(cpu_seconds, 2), _peak_mib())


def _void() -> int:
    return int(sum(s.value for m in JOURNAL_VOID.collect() for s in m.samples if s.name.endswith("_total")))


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def measure(home: Path, quick: bool, say: Callable[[str], None]) -> Loaded:
    """Fill a journal in a private Kafka and load it a few times in fresh processes; the fastest load counts.

    What others do on the machine can make a load slower, but not faster.
    """
    nothing = "not-used:0"
    system = System(
        home,
        segment_stores=0,
        api_gateways=0,
        stream_workflows=0,
        cluster_managers=0,
        txn_managers=0,
        zookeeper=nothing,
        redis_url=f"redis://{nothing}",
    )
    secured.become_admin(system.settings)
    with system:
        began = time.monotonic()
        partitions = system.settings.partitions
        story = Story()
        story.tell(STREAMS, UPDATES)
        records, void = fill(system.kafka_bootstrap, partitions, story, SCOPES // 10 if quick else SCOPES)
        say(f"  {records:,} records written in {time.monotonic() - began:.1f} s, {void:,} of them void")
        loads = []
        for _ in range(_LOADS):
            loads.append(load_apart(system.kafka_bootstrap, partitions))
            if (loads[-1].records, loads[-1].void) != (records, void):
                raise LoadFailedError(f"not what was written was loaded: {loads[-1]}")
            say(f"  loaded in {loads[-1].seconds} s, {loads[-1].cpu_seconds} s of CPU, {loads[-1].peak_mib} MiB")
        return min(loads, key=lambda load: load.seconds)


def load_apart(bootstrap: str, partitions: int) -> Loaded:
    """Load the journal in a fresh process. Raises LoadFailedError."""
    command = [sys.executable, "-m", "bench.journal_load", bootstrap, str(partitions)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise LoadFailedError(f"the loading process ended with exit code {done.returncode}")
    return msgspec.json.decode(done.stdout, type=Loaded)


def main() -> None:
    parser = argparse.ArgumentParser(description="Load the journal of a Kafka once and say how long that took.")
    parser.add_argument("bootstrap", metavar="HOST:PORT")
    parser.add_argument("partitions", type=int)
    arguments = parser.parse_args()
    loaded = uvloop.run(load(arguments.bootstrap, arguments.partitions))
    sys.stdout.buffer.write(msgspec.json.encode(loaded))


if __name__ == "__main__":
    main()
