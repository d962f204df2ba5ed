"""What the parts of calls cost bare, on a running system whose services have no part in them, but for an empty call.

`python -m bench.bare GRPC KAFKA STORE --partitions N --containers N`, as a process of its own, measures each part of
`floors.py` and writes them as one JSON object. The Kafka round trip is that of the services' own journal class, with
its producer and follower, on a topic of its own that no one else follows; a request's way is that of their producer and
their member of a consumer group, likewise. The calls on the store are those of the services' own client. The empty call
is the gateway's health. One after the other, so that all parts meet the same machine.
"""

import argparse
import asyncio
import secrets
import subprocess
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import uvloop
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bench import floors, secured
from bench.figures import Figures
from bench.load import LoadFailedError
from bench.stopwatch import WARM_UP_CALLS, quantiles
from sluice.addresses import host_and_port
from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.host import Host
from sluice.domain.model import DomainModel
from sluice.domain.scope.commands import CreateScope
from sluice.domain.scope.decide import decide_create_scope
from sluice.domain.segment import segment_id, segment_name, transaction_segment_name
from sluice.engine.journal import Journal
from sluice.engine.offsets import RequestFacts
from sluice.engine.ports import Log, Message, RequestSource
from sluice.engine.record import RequestPosition
from sluice.engine.step import all_done
from sluice.kafka.log import KafkaLog
from sluice.kafka.producer import KafkaProducer, RecordProducer
from sluice.kafka.request_source import KafkaRequestSource
from sluice.kafka.topics import JOURNAL
from sluice.kafka_config import clients
from sluice.pravega.client import SegmentStoreClient
from sluice.pravega.store import SegmentStore
from sluice.settings import ServiceSettings

_TOPIC, _REQUESTS = "bench.floor", "bench.requests"
_EVENT = b"e" * 100
_KAFKA_ROUNDS, _STORE_ROUNDS = 200, 40
_GROUP = "bench-floor"
_DEADLINE_S = 10.0


def measure_apart(
    grpc_address: str, kafka: str, store: str, partitions: int, containers: int, quick: bool
) -> dict[str, Figures]:
    """Measure all parts in a fresh process. Addresses are host:port. Raises LoadFailedError."""
    counts = ["--partitions", str(partitions), "--containers", str(containers)]
    command = [sys.executable, "-m", "bench.bare", grpc_address, kafka, store, *counts, *(["--quick"] if quick else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise LoadFailedError(f"the measurement of bare parts ended with exit code {done.returncode}")
    return msgspec.json.decode(done.stdout, type=dict[str, Figures])


async def over_kafka(bootstrap: str, partitions: int, count: int) -> dict[str, list[float]]:
    """Seconds of each request's way and of each round trip, see `ways` and `round_trips`, on new topics."""
    client = ServiceSettings(kafka_bootstrap=bootstrap, instance=_GROUP).kafka_client()
    topics = [NewTopic(name, partitions, 1, config=JOURNAL.config()) for name in (_TOPIC, _REQUESTS)]
    # By a name: an AdminClient that goes takes its answers along.
    admin = AdminClient(clients.admin(client))
    for made in admin.create_topics(topics).values():
        made.result(30)
    producer = KafkaProducer(client, partitions)
    producer.start()
    source = KafkaRequestSource(client, _REQUESTS, _GROUP, ServiceSettings().kafka_session_timeout_s)
    times = {
        floors.REQUEST: await ways(producer, source, partitions, count),
        floors.KAFKA: await round_trips(KafkaLog(client, producer, partitions, _TOPIC), count),
    }
    await asyncio.to_thread(producer.stop)
    return times


class _Arrivals:
    """See SourceListener. Counts what has come, and commits nothing."""

    def __init__(self) -> None:
        self.owned = 0
        self.count = 0
        self._changed = asyncio.Event()

    async def until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            self._changed.clear()
            await self._changed.wait()

    def assigned(self, partitions: list[int]) -> None:
        self.owned += len(partitions)
        self._changed.set()

    def revoked(self, partitions: list[int]) -> None:
        self.owned -= len(partitions)

    lost = revoked

    def received(self, batch: Sequence[Message]) -> None:
        self.count += len(batch)
        self._changed.set()

    def positions(self) -> Mapping[int, RequestPosition]:
        return {}


async def ways(producer: RecordProducer, source: RequestSource, partitions: int, count: int) -> list[float]:
    """Seconds from sending a record until a member that owns all partitions has it, in different partitions."""
    arrivals = _Arrivals()
    source.start(arrivals)
    await arrivals.until(lambda: arrivals.owned == partitions)

    async def one(number: int) -> None:
        _ = producer.send(source.topic, f"scope-{number}", _EVENT, [])
        await arrivals.until(lambda: arrivals.count > number)

    times = [await _seconds(one(number)) for number in range(count)]
    await source.stop()
    return times


def empty_calls(address: str, count: int) -> list[float]:
    """Seconds of each empty call on the gateway at host:port."""
    check = health_pb2_grpc.HealthStub(secured.channel(address)).Check

    def one() -> float:
        began = time.perf_counter()
        check(health_pb2.HealthCheckRequest(), timeout=_DEADLINE_S)
        return time.perf_counter() - began

    return [one() for _ in range(count)]


async def round_trips(log: Log, count: int) -> list[float]:
    """Seconds from a proposal until this process has folded its record, each time, in different partitions."""
    journal = Journal(log, DomainModel(), "bench/bench")
    journal.start()
    await journal.loaded.wait()
    times = [await _seconds(_record(journal, f"scope-{number}")) for number in range(count)]
    await journal.stop()
    return times


async def _record(journal: Journal, scope: str) -> None:
    def decide(reader: Reader, context: Context) -> Decision:
        return decide_create_scope(reader, CreateScope(scope=scope), context)

    await journal.propose(scope, decide, RequestFacts(scope))


class StoreRounds:
    """Calls on segments of streams of its own, a new stream each time; `times` are seconds by part."""

    def __init__(self, store: SegmentStore) -> None:
        self.times: dict[str, list[float]] = {}
        self._store = store
        self._scope = f"floor{secrets.token_hex(4)}"
        self._streams = 0

    async def round(self) -> None:
        """Every part once."""
        await self._timed(floors.CREATE, self._create(self._stream_segments(1)))
        pair = self._stream_segments(2)
        await self._timed(floors.CREATE_2, self._create(pair))
        targets = self._stream_segments(4)
        await self._timed(floors.CREATE_4, self._create(targets))
        written = await self._transaction(events=True)
        await self._timed(floors.LENGTH_4, all_done(map(self._store.segment_info, written)))
        await self._timed(floors.LENGTH, self._store.segment_info(written[0]))
        await self._timed(floors.MERGE_4, self._merge(targets, written))
        await self._timed(floors.MERGE, self._merge(targets[:1], await self._transaction(events=True)))
        one, *empty = await self._transaction(events=False)
        await self._store.append(one, uuid.uuid4(), _EVENT)
        await self._timed(floors.MERGE_SEAL_3, all_done((self._merge(targets[:1], [one]), self._seal(empty))))
        await self._timed(floors.MERGE_EMPTY_4, self._merge(targets, await self._transaction(events=False)))
        await self._timed(floors.SEAL_4, self._seal(await self._transaction(events=False)))
        # Not a segment that was merged into just now: the store may still have that to do in its long-term storage.
        await self._store.append(pair[0], uuid.uuid4(), _EVENT)
        await self._timed(floors.SEAL, self._seal(pair[:1]))
        await self._timed(floors.DELETE, self._store.delete_segment(pair[0]))

    async def _timed(self, part: str, call: Awaitable[object]) -> None:
        self.times.setdefault(part, []).append(await _seconds(call))

    def _stream_segments(self, count: int) -> list[str]:
        self._streams += 1
        return [segment_name(self._scope, f"s{self._streams}", segment_id(0, number)) for number in range(count)]

    async def _transaction(self, events: bool) -> list[str]:
        """The four segments of a new transaction on the stream of this round, with an event in each or empty."""
        low = secrets.randbits(62)
        names = [transaction_segment_name(self._scope, f"s{self._streams}", n, 0, low) for n in range(4)]
        await self._create(names)
        if events:
            await all_done(self._store.append(name, uuid.uuid4(), _EVENT) for name in names)
        return names

    async def _create(self, names: Iterable[str]) -> None:
        await all_done(self._store.create_segment(name, 0, 0) for name in names)

    async def _merge(self, targets: Iterable[str], sources: Iterable[str]) -> None:
        await all_done(self._store.merge_batch(t, [s]) for t, s in zip(targets, sources, strict=False))

    async def _seal(self, names: Iterable[str]) -> None:
        await all_done(map(self._store.seal_segment, names))


async def _seconds(call: Awaitable[Any]) -> float:
    began = time.perf_counter()
    await call
    return time.perf_counter() - began


async def measure(
    grpc_address: str, kafka: str, store: str, partitions: int, containers: int, quick: bool
) -> dict[str, Figures]:
    """Every part, by its name."""
    few = 4 if quick else 1
    rounds = _KAFKA_ROUNDS // few + WARM_UP_CALLS
    times = {floors.GRPC: empty_calls(grpc_address, rounds)} | await over_kafka(kafka, partitions, rounds)
    tls = ServiceSettings().store_client_tls()
    client = SegmentStoreClient(_only(Host(*host_and_port(store))), containers, tokens=secured.tokens(), tls=tls)
    store_rounds = StoreRounds(client)
    for _ in range(_STORE_ROUNDS // few + WARM_UP_CALLS):
        await store_rounds.round()
    await client.close()
    times |= store_rounds.times
    return {part: quantiles(times[part][WARM_UP_CALLS:]) for part in floors.PARTS}


def _only(host: Host) -> Callable[[int], Host]:
    return lambda _container: host


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("grpc", metavar="GRPC", help="host:port of the gateway")
    parser.add_argument("kafka", metavar="KAFKA", help="host:port")
    parser.add_argument("store", metavar="STORE", help="host:port of the only segment store")
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--containers", type=int, required=True)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    parts = uvloop.run(measure(given.grpc, given.kafka, given.store, given.partitions, given.containers, given.quick))
    sys.stdout.buffer.write(msgspec.json.encode(parts))


if __name__ == "__main__":
    main()
