"""Streams that scale by themselves and keep what they must: everything is real, intervals are short.

Segment stores say that a segment is hot after minutes only; so in all tests but one that is said for them, in the
stream that they say it in. That segments are cold they say by themselves.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import accumulate
from pathlib import Path
from threading import Event
from typing import Any
from uuid import UUID, uuid4

import pytest
from support.auto_scale import auto_scale_event, report_load
from support.controller import Controller, config, controller, cut, info, unique
from support.crew import Crew
from support.kafka import events, fold
from support.segments import append, on_store
from support.spark import Batches
from support.transactions import Transactions
from support.truncations import Dues, beyond_size, beyond_time, consumed, overdue_ms

from harness import System, eventually
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.segment import transaction_segment_name
from sluice.domain.stream import events as ev
from sluice.domain.stream.commands import DecisionKind
from sluice.domain.stream.retention import RetentionReport
from sluice.domain.transaction_ids import halves
from sluice.pravega import SegmentStoreClient
from sluice_client import delete_reader_group, open_client

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

SOON_S = 180.0
READY_S = 300.0
SPLIT_S = 210.0
"""A store reports no load within two minutes of a segment's creation, and then every two minutes."""

UNBOUNDED = 2**63 - 1
TICK_S = 5.0
QUICK = {
    "SLUICE_REPORT_INTERVAL_S": "0.5",
    "SLUICE_WATERMARK_INTERVAL_S": "0.5",
    "SLUICE_MARK_INTERVAL_S": "1",
    "SLUICE_SAMPLE_INTERVAL_S": "1",
    "SLUICE_CHANGE_INTERVAL_S": "0.5",
    "SLUICE_RETENTION_TICK_S": str(TICK_S),
    "SLUICE_RETENTION_PAUSE_S": "0",
    "SLUICE_SCALE_COOLDOWN_S": "3",
    "SLUICE_RETENTION_TRIGGER_S": "1",
}
EXPIRING = {
    "autoScale.cooldown.time.seconds": "0",
    "autoScale.mute.time.seconds": "0",
    "autoScale.cache.cleanUp.interval.seconds": "3",
    "autoScale.cache.expiry.seconds": "8",
}


@pytest.fixture(scope="module")
def spark_system(runs_folder: Path) -> Iterator[System]:
    system = System(
        runs_folder / "scaling-and-retention",
        segment_stores=1,
        retention_sparks=1,
        segment_store_options=EXPIRING,
        start_timeout_s=READY_S,
        partitions=4,
    )
    with pytest.MonkeyPatch.context() as environment:
        for name, value in QUICK.items():
            environment.setenv(name, value)
        with system:
            yield system


@pytest.fixture
def client(spark_system: System) -> Iterator[Controller]:
    with controller(spark_system.grpc_address) as client:
        yield client


@pytest.fixture
def batches(spark_system: System) -> Batches:
    """Those of the test."""
    return Batches(spark_system)


@pytest.fixture
def scope(client: Controller) -> str:
    name = unique("sc")
    assert client.create_scope(name) == "SUCCESS"
    return name


def write(client: Controller, scope: str, count: int) -> int:
    """Append so many pieces of 100 bytes; the length of the segment then."""
    return max(append(client, (scope, "st"), 0, b"x" * 92) for _ in range(count))


def write_plainly(client: Controller, scope: str, stream: str, count: int) -> None:
    on_store(client, (scope, stream), 0, lambda store, name: append_events(store, name, count))


def write_by_transaction(client: Controller, scope: str, stream: str, count: int) -> None:
    transactions = Transactions(client, scope, stream)
    id = transactions.open()
    name = transaction_segment_name(scope, stream, 0, *halves(id))
    on_store(client, (scope, stream), 0, lambda store, _: append_events(store, name, count))
    assert transactions.commit(id) == "SUCCESS"
    transactions.await_state(id, "COMMITTED")


async def append_events(store: SegmentStoreClient, name: str, count: int) -> None:
    await store.append_events(name, uuid4(), [b"event"] * count, count)


def head(client: Controller, scope: str, stream: str = "st") -> int:
    request = pb.GetSegmentsRequest(streamInfo=info(scope, stream), timestamp=0)
    return sum(s.offset for s in client.call("getSegments", request).segments)


def recorded(system: System, scope: str, kind: DecisionKind) -> list[str]:
    """The codes of what the journal says was decided."""
    found = events(fold(system.kafka_bootstrap), lambda e: isinstance(e, ev.DecisionRecorded) and e.scope == scope)
    return [event.code for event in found if event.kind is kind]


def went_in_time(system: System, batches: Batches, scope: str, rule: Callable[[list[RetentionReport]], Dues]) -> None:
    """Whatever has to go by the policy is gone two ticks later, if nothing stops it: no reader, no pause.

    And what a batch takes that is under way when something becomes due, and the one that decides.

    A user may count on that from the moment at which it is sampled that there is enough behind it, or a sample is old
    enough, or a report shows that the last group has passed; how soon that is known is a matter of the intervals of
    samples and changes. It holds for every sample there was, not only for the one that the head stays at.
    """
    waits = eventually(
        lambda: overdue_ms(system.kafka_bootstrap, scope, "st", rule), SOON_S, "all is gone that has to go"
    )
    longest_s = batches.longest_s(SOON_S)
    found = f"ms from due until gone: {waits}; the longest batch took at most {longest_s} s"
    print(f"\n{found}")
    assert min(waits) >= 0, found
    assert max(waits) <= 1000 * (2 * TICK_S + 2 * longest_s), found


def by_size(least: int, most: int = UNBOUNDED) -> Any:
    return pb.RetentionPolicy(retentionType=pb.RetentionPolicy.SIZE, retentionParam=least, retentionMax=most)


def create_scaling(client: Controller, scope: str, stream: str, least: int, target: int = 10) -> None:
    policy = pb.ScalingPolicy(
        scaleType=pb.ScalingPolicy.BY_RATE_IN_EVENTS_PER_SEC, targetRate=target, scaleFactor=2, minNumSegments=least
    )
    request = pb.StreamConfig(streamInfo=info(scope, stream), scalingPolicy=policy)
    assert client.status("createStream", request) == "SUCCESS"


def say_hot(client: Controller, scope: str, stream: str) -> None:
    """Report on behalf of the store that the first segment of the stream is hot."""
    report_load(client, auto_scale_event(scope, stream, 0, at=time.time_ns() // 1_000_000))


def growth(system: System, scope: str, stream: str) -> list[int]:
    """By how many segments the stream has grown after each of its scales."""
    about = (scope, stream)
    found = events(
        fold(system.kafka_bootstrap), lambda e: isinstance(e, ev.StreamEvent) and (e.scope, e.stream) == about
    )
    replaced = [e.replacement for e in found if isinstance(e, ev.StreamScaleStarted)]
    return list(accumulate(len(r.creates) - len(r.seals) for r in replaced))


def split_under_load(client: Controller, ended: Event) -> None:
    """Write to a stream plainly and to one by transactions until both are split, or nobody waits for it any more."""
    streams, scope = {"plain": write_plainly, "transactions": write_by_transaction}, unique("sc")
    assert client.create_scope(scope) == "SUCCESS"
    for stream in streams:
        create_scaling(client, scope, stream, 1, target=1)
    # Transactions are prepared from the second open on. So those that are committed are of segments of 10 to 30 s.
    for _ in range(4):
        transactions = Transactions(client, scope, "transactions")
        transactions.abort(transactions.open())
    written_at = time.monotonic()

    def are_split() -> bool:
        """Write seven times the target to what has one segment still; five times are too much for it."""
        nonlocal written_at
        left = [stream for stream in streams if len(client.segments(scope, stream)) == 1]
        elapsed_s = time.monotonic() - written_at
        if elapsed_s >= 10:
            written_at += elapsed_s
            for stream in left:
                streams[stream](client, scope, stream, round(7 * elapsed_s))
        return not left or ended.is_set()

    eventually(are_split, SPLIT_S, "both streams split")


@pytest.fixture(scope="module", autouse=True)
def splitting(spark_system: System) -> Iterator[Future[None]]:
    """Under way beside all tests: a store takes minutes until it reports a load."""
    ended = Event()
    with controller(spark_system.grpc_address) as client, ThreadPoolExecutor(1) as beside:
        yield beside.submit(split_under_load, client, ended)
        ended.set()


def test_a_stream_splits_under_load_and_merges_back_to_its_minimum(
    spark_system: System, client: Controller, scope: str
) -> None:
    create_scaling(client, scope, "st", 2)

    def is_split() -> bool:
        """Say once more that the segment is hot: the store, which sees no load, may have said otherwise since."""
        say_hot(client, scope, "st")
        return len(client.segments(scope, "st")) == 3

    eventually(is_split, SOON_S, "the stream splits")
    eventually(lambda: len(client.segments(scope, "st")) == 2, SOON_S, "the stream merges when nothing is written")
    eventually(
        lambda: recorded(spark_system, scope, DecisionKind.SCALE)[-1] == "at-minimum", SOON_S, "it goes no further"
    )
    assert len(client.segments(scope, "st")) == 2 and min(growth(spark_system, scope, "st")) >= 0
    codes = recorded(spark_system, scope, DecisionKind.SCALE)
    assert codes[0] == "split" and "merge" in codes


def test_watermarks_go_once_the_head_has_passed_them(client: Controller, scope: str) -> None:
    patient = config(scope, "st", retentionPolicy=by_size(100), timestampAggregationTimeout=600_000)
    assert client.status("createStream", patient) == "SUCCESS"
    times = iter(range(1, 1000))

    def grows() -> bool:
        """Another hundred bytes and another watermark at their end."""
        at, written = next(times), write(client, scope, 1)
        position = pb.TimestampFromWriter(writer="w", timestamp=at, position=cut(scope, "st", {0: written}))
        assert client.call("noteTimestampFromWriter", position).result == pb.TimestampResponse.SUCCESS
        return head(client, scope, "_MARKst") > 0

    eventually(grows, SOON_S, "the mark stream is truncated, too")
    assert head(client, scope) > 0


def test_retention_by_size_keeps_its_minimum(
    spark_system: System, batches: Batches, client: Controller, scope: str
) -> None:
    assert client.status("createStream", config(scope, "st", retentionPolicy=by_size(500))) == "SUCCESS"
    written = write(client, scope, 5)
    eventually(lambda: recorded(spark_system, scope, DecisionKind.RETENTION), SOON_S, "a decision")
    assert head(client, scope) == 0

    def is_truncated() -> bool:
        """Write another hundred bytes: only where a sample lies far enough behind the end may a stream be cut."""
        nonlocal written
        written = write(client, scope, 1)
        return head(client, scope) > 0

    eventually(is_truncated, SOON_S, "the stream is truncated")
    assert head(client, scope) <= written - 500
    eventually(
        lambda: "beyond-minimum" in recorded(spark_system, scope, DecisionKind.RETENTION),
        SOON_S,
        "why is noted beside it",
    )
    went_in_time(spark_system, batches, scope, partial(beyond_size, minimum=500))


def test_retention_by_time_drops_what_is_older(
    spark_system: System, batches: Batches, client: Controller, scope: str
) -> None:
    policy = pb.RetentionPolicy(retentionType=pb.RetentionPolicy.TIME, retentionParam=4000, retentionMax=UNBOUNDED)
    assert client.status("createStream", config(scope, "st", retentionPolicy=policy)) == "SUCCESS"
    written = write(client, scope, 5)
    eventually(lambda: head(client, scope) == written, SOON_S, "all of it is older at last")
    went_in_time(spark_system, batches, scope, partial(beyond_time, minimum_ms=4000))


def test_two_reader_groups_hold_what_they_have_yet_to_read(
    spark_system: System, batches: Batches, client: Controller, scope: str
) -> None:
    assert client.status("createStream", config(scope, "st", retentionPolicy=by_size(100))) == "SUCCESS"
    ids = {name: str(uuid4()) for name in ("fast", "slow")}
    for name, id in ids.items():
        assert create_group(client, scope, name, id) == "SUCCESS"
    written = write(client, scope, 10)
    # Of a group that has not said where it is nothing is waited for, so the slow one says it first.
    release(client, scope, "slow", ids["slow"], 300)
    release(client, scope, "fast", ids["fast"], 900)
    eventually(lambda: head(client, scope) == 300, SOON_S, "what both have read is gone")
    held = eventually(
        lambda: "held-by-readers" in recorded(spark_system, scope, DecisionKind.RETENTION),
        SOON_S,
        "the slow one holds the rest",
    )
    assert held and head(client, scope) == 300 < written
    release(client, scope, "slow", ids["slow"], 800)
    eventually(lambda: head(client, scope) == 800, SOON_S, "what both have read by now is gone")
    went_in_time(spark_system, batches, scope, consumed)


def test_retention_keeps_what_the_group_of_workers_has_not_processed(
    spark_system: System, client: Controller, scope: str, tmp_path: Path
) -> None:
    assert client.status("createStream", config(scope, "stream1", retentionPolicy=by_size(100))) == "SUCCESS"
    settings = {"scope": scope, "heartbeat_s": "0.2", "checkpoint_s": "0.5", "segments": "1"}
    with Crew(tmp_path, {**settings, "controller": spark_system.grpc_address}) as crew:

        def generate(first: int) -> None:
            """Over some samples."""
            options = ("--source", "g", "--first", str(first), "--count", "100", "--rate", "30")
            assert crew.start("generator", *options).wait() == 0

        worker = crew.start("app")
        worker.says("is online", SOON_S)
        assert worker.stop() == 0
        generate(0)
        held = partial(recorded, spark_system, scope, DecisionKind.RETENTION)
        eventually(lambda: held()[-1:] == ["held-by-readers"], SOON_S, "the group holds all")
        assert head(client, scope, "stream1") == 0
        worker = crew.start("app")
        assert crew.start("sink", "--expect", "100", "--quiet").wait() == 0
        eventually(lambda: head(client, scope, "stream1"), SOON_S, "what was processed is cut")
        worker.kill()
        processed = length(client, scope)
        generate(100)
        assert head(client, scope, "stream1") <= processed
        asyncio.run(delete_group(spark_system, scope))
        eventually(lambda: head(client, scope, "stream1") > processed, SOON_S, "nobody holds anything any more")


async def delete_group(system: System, scope: str) -> None:
    async with open_client(system.grpc_address) as client:
        assert await delete_reader_group(client, scope, "workers")


def length(client: Controller, scope: str) -> int:
    """Where the only segment of `stream1` ends."""
    return on_store(client, (scope, "stream1"), 0, length_of)


async def length_of(store: SegmentStoreClient, name: str) -> int:
    return (await store.segment_info(name)).length


def test_transactions_have_a_stream_split_as_plain_events_do(splitting: Future[None]) -> None:
    splitting.result(SPLIT_S + SOON_S)


def create_group(client: Controller, scope: str, name: str, id: str) -> str:
    request = pb.ReaderGroupConfiguration(
        scope=scope,
        readerGroupName=name,
        retentionType=1,
        maxOutstandingCheckpointRequest=3,
        startingStreamCuts=[cut(scope, "st", {})],
        endingStreamCuts=[cut(scope, "st", {})],
        readerGroupId=id,
    )
    return client.status("createReaderGroup", request)


def release(client: Controller, scope: str, name: str, id: str, offset: int) -> None:
    """A reader group has read everything before an offset."""
    request = pb.SubscriberStreamCut(
        subscriber=f"{scope}/{name}",
        generation=0,
        streamCut=cut(scope, "st", {0: offset}),
        readerGroupId=str(UUID(id)),
    )
    updated = client.call("updateSubscriberStreamCut", request)
    assert updated.status == pb.UpdateSubscriberStatus.SUCCESS
