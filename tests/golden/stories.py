"""What happens in the golden journals: each kind of event, and each workflow's whole life, also when it is hindered."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace
from simulation.txn.clients import event_of
from support.histories import replaced

from golden.stage import Stage
from sluice.domain.cluster.commands import DrainStore, Heartbeat, RebalanceContainers, UndrainStore
from sluice.domain.cluster.decide import decide_assignment, decide_departures, decide_heartbeat
from sluice.domain.cluster.state import CLUSTER
from sluice.domain.config import (
    GroupRetention,
    ReaderGroupConfig,
    RetentionPolicy,
    RetentionType,
    ScaleType,
    ScalingPolicy,
    StreamConfig,
    TableConfig,
)
from sluice.domain.decision import Context, Decision, Reader, Reply
from sluice.domain.host import Host
from sluice.domain.ids import StreamId
from sluice.domain.names import REQUEST_STREAM, SYSTEM_SCOPE
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup, UpdateReaderGroup
from sluice.domain.scope.commands import CreateScope, DeleteScope, DeleteScopeRecursive
from sluice.domain.segment import epoch_of, number_of
from sluice.domain.stream import commands as st
from sluice.domain.stream.history import CHUNK_EPOCHS
from sluice.domain.stream.retention import record_announced
from sluice.domain.stream.state import Stream
from sluice.domain.stream.traffic import record_forwarded
from sluice.domain.stream.upper_bound import Watermark
from sluice.domain.stream.watermark import forget_writers, record_emitted
from sluice.domain.table.commands import CreateTable, DeleteTable
from sluice.domain.transaction import commands as txn
from sluice.domain.transaction.batch import Commits
from sluice.domain.transaction.index import transactions_of
from sluice.domain.workflow import RetryWorkflow

SHOP = "shop"
ORDERS, LONG, GONE = (StreamId(SHOP, name) for name in ("orders", "long", "gone"))
GROUP_ID = "6d1f7e5c-0a52-4c3e-9b0e-2f6a0c9d4e11"
LEASE_MS = 10_000
_POLICY = RetentionPolicy(RetentionType.SIZE, 100, 10_000)
FIXED = StreamConfig(scaling=ScalingPolicy(min_segments=2))


def stream_of(stage: Stage, id: StreamId) -> Stream:
    state = stage.state(id.aggregate)
    assert isinstance(state, Stream)
    return state


def _segment(id: StreamId, segment: int) -> str:
    return f"{id.scope}/{id.name}/{number_of(segment)}.#epoch.{epoch_of(segment)}"


async def scale(stage: Stage, id: StreamId, which: int, *, is_merge: bool) -> None:
    ranges = replaced(stream_of(stage, id).active_segments(), which, is_merge)
    await stage.do(st.ScaleStream(*id, *ranges, stage.now_ms()), "STARTED")


async def scopes(stage: Stage) -> None:
    """Scopes come and go: empty, with all that is in them, and one whose deletion is cancelled."""
    for name in (SHOP, "empty", "full", "kept"):
        await stage.do(CreateScope(name))
    await stage.replied(stage.post(CreateScope(SHOP), principal="alice"))
    await stage.do(DeleteScope("empty"))
    await stage.do(DeleteScope("empty"), "SCOPE_NOT_FOUND")
    await stage.do(st.CreateStream("full", "a", StreamConfig(tags=("red", "blue"))))
    await stage.do(CreateTable("full", "t", TableConfig(1, 8)))
    await stage.do(DeleteScope("full"), "SCOPE_NOT_EMPTY")
    await stage.do(DeleteScopeRecursive("full"))
    deletion = stage.post(DeleteScope("kept"))
    await stage.until(lambda: stage.workflow("scope:kept") is not None)
    await stage.cancel("scope:kept")
    assert (await stage.replied(deletion)).reason == "cancelled"


async def streams(stage: Stage) -> None:
    """Streams are created, changed, truncated, sealed, deleted and made anew; some of it with hindrances."""
    config = StreamConfig(ScalingPolicy(ScaleType.EVENTS, 1000, 2, 2), tags=("eu",), timestamp_aggregation_timeout_ms=5)
    await stage.do(st.CreateStream(*ORDERS, config))
    await stage.do(st.CreateStream("nowhere", "a", config), "SCOPE_NOT_FOUND")
    await scale(stage, ORDERS, 0, is_merge=False)
    await scale(stage, ORDERS, 1, is_merge=True)
    await stage.do(st.UpdateStream(*ORDERS, StreamConfig(config.scaling, _POLICY, ("eu", "new"))))
    for segment in stream_of(stage, ORDERS).active_segments():
        stage.store.segments[_segment(ORDERS, segment.id)].data += b"x" * 64
    cut = {segment.id: 48 for segment in stream_of(stage, ORDERS).active_segments()}
    await stage.do(st.TruncateStream(*ORDERS, cut))
    await stage.do(st.TruncateStream(*ORDERS, cut, RetentionPolicy(RetentionType.TIME, 1, 2)), "FAILURE")
    await _hindered(stage)
    await stage.do(st.CreateStream(*GONE, FIXED))
    await stage.do(st.UpdateStream(*GONE, StreamConfig(ScalingPolicy(min_segments=3))))
    await stage.do(st.DeleteStream(*GONE), "STREAM_NOT_SEALED")
    await stage.do(st.SealStream(*GONE))
    await stage.do(st.DeleteStream(*GONE))
    await stage.do(st.CreateStream(*GONE, FIXED))


async def _hindered(stage: Stage) -> None:
    """A creation is retried, another one cancelled, and so is a scale."""
    with stage.refusing("CreateSegment"):
        retried = stage.post(st.CreateStream(SHOP, "retried", FIXED))
        await stage.stuck(f"stream:{SHOP}/retried")
        await stage.replied(stage.post(RetryWorkflow(f"stream:{SHOP}/retried")))
        cancelled = stage.post(st.CreateStream(SHOP, "cancelled", FIXED))
        await stage.stuck(f"stream:{SHOP}/cancelled")
        await stage.cancel(f"stream:{SHOP}/cancelled")
        scaled = stage.post(st.ScaleStream(*ORDERS, *replaced(stream_of(stage, ORDERS).active_segments(), 0, False), 1))
        await stage.stuck(ORDERS.aggregate)
        await stage.cancel(ORDERS.aggregate)
    assert (await stage.replied(cancelled)).reason == "cancelled"
    assert [(await stage.replied(r)).status for r in (retried, scaled)] == ["SUCCESS", "STARTED"]


async def long_history(stage: Stage) -> None:
    """A stream of more epochs than are stored one by one, truncated behind them."""
    await stage.do(st.CreateStream(*LONG, StreamConfig()))
    for number in range(CHUNK_EPOCHS + 2):
        await scale(stage, LONG, 0, is_merge=number % 2 == 1)
    await stage.do(st.TruncateStream(*LONG, {s.id: 0 for s in stream_of(stage, LONG).active_segments()}))


async def progress(stage: Stage) -> None:
    """Writers, reader groups and policies say how far they are; what is forwarded and decided from that is recorded."""
    orders = stream_of(stage, ORDERS)
    cut = {segment.id: 50 for segment in orders.active_segments()}
    for writer in ("a", "b", "c"):
        await stage.do(st.NoteWriterTime(*ORDERS, writer, 1000, cut))
    await stage.do(st.NoteWriterTime(*ORDERS, "a", 999, cut), "INVALID_TIME")
    await stage.do(st.RemoveWriter(*ORDERS, "b"))
    emitted = Watermark(1000, 1000, {})
    created, now = orders.creation_id, stage.now_ms()
    await stage.decide(ORDERS.aggregate, lambda r, _: record_emitted(r, ORDERS, created, emitted, now))
    gone = {"b": stream_of(stage, ORDERS).writers["b"]}
    await stage.decide(ORDERS.aggregate, lambda r, _: forget_writers(r, ORDERS, gone))
    await stage.decide(ORDERS.aggregate, lambda r, _: record_announced(r, ORDERS, created, _POLICY))
    internal = StreamId(SYSTEM_SCOPE, REQUEST_STREAM)
    await stage.until(lambda: stage.state(internal.aggregate) and not stage.workflow(internal.aggregate))
    life = stream_of(stage, internal).creation_id
    await stage.decide(internal.aggregate, lambda r, _: record_forwarded(r, internal, life, 0, 412))
    stage.post(st.RecordDecision(*ORDERS, created, st.DecisionKind.SCALE, "quiet", "no more than before", now))
    numbers = {"rate_events_per_s": 4000}
    stage.post(
        st.RecordDecision(*ORDERS, created, st.DecisionKind.SCALE, "hot", "twice", now + 1, True, "scale-1", numbers)
    )
    await stage.until(lambda: stream_of(stage, ORDERS).actions)


async def groups_and_tables(stage: Stage) -> None:
    """A reader group that holds a stream back, one that reads only, and key-value tables."""
    cut = {segment.id: 60 for segment in stream_of(stage, ORDERS).active_segments()}
    config = ReaderGroupConfig(
        GROUP_ID, {str(ORDERS): {}}, {str(ORDERS): cut}, GroupRetention.MANUAL, 1000, 10_000, 1, generation=0
    )
    await stage.do(CreateReaderGroup(SHOP, "billing", config))
    subscriber = f"{SHOP}/billing"
    await stage.do(st.UpdateSubscriberCut(*ORDERS, subscriber, GROUP_ID, 0, cut))
    both = ReaderGroupConfig(GROUP_ID, {str(ORDERS): {}, str(LONG): {}}, retention=GroupRetention.AUTOMATIC)
    await stage.do(UpdateReaderGroup(SHOP, "billing", both))
    reads = ReaderGroupConfig("1f0c2f34-8a51-4d8e-b0a9-5b7a1f0f7a02", {str(LONG): {}})
    await stage.do(CreateReaderGroup(SHOP, "reports", reads))
    await stage.do(UpdateReaderGroup(SHOP, "reports", replace(reads, refresh_ms=500)))
    missing = ReaderGroupConfig("c2a7b0de-12a4-4be5-8d0f-0d5a1b6e9c33", {f"{SHOP}/none": {}}, retention=both.retention)
    await stage.do(CreateReaderGroup(SHOP, "undone", missing), "FAILURE")
    await stage.do(DeleteReaderGroup(SHOP, "billing"))
    await stage.do(CreateTable(SHOP, "prices", TableConfig(2, 16, 8, rollover_size_bytes=1 << 20)))
    with stage.refusing("CreateTableSegment"):
        cancelled = stage.post(CreateTable(SHOP, "never", TableConfig(1, 4)))
        await stage.stuck(f"table:{SHOP}/never")
        await stage.cancel(f"table:{SHOP}/never")
    assert (await stage.replied(cancelled)).reason == "cancelled"
    await stage.do(CreateTable(SHOP, "rates", TableConfig(1, 4)))
    await stage.do(DeleteTable(SHOP, "rates"))


async def cluster(stage: Stage) -> None:
    """Instances come and go, containers are given to segment stores, and some of these do not answer."""
    hosts = [Host("10.0.0.1", 12345), Host("10.0.0.2", 12345)]
    for number in range(2):
        await stage.decide(CLUSTER, _beat(stage, number))
    # Both decide on the same version: one entry is stale, and is decided anew.
    await asyncio.gather(
        stage.decide(CLUSTER, _beat(stage, 2)), stage.decide(CLUSTER, _beat(stage, 3), stage.transactions)
    )
    await stage.decide(CLUSTER, lambda r, c: decide_assignment(r, 4, hosts[:1], {}, 0, c))
    await stage.decide(CLUSTER, lambda r, c: decide_assignment(r, 4, hosts, {}, 0, c))
    await stage.decide(CLUSTER, lambda r, c: decide_departures(r, ["api-gateway-1"], c))
    await stage.decide(CLUSTER, _beat(stage, 2, unresponsive=(1, 3)))
    await stage.do(DrainStore(hosts[0]))
    await stage.do(DrainStore(hosts[1]), "PRECONDITION_FAILED")
    await stage.do(RebalanceContainers({0: 1000, 3: 10}))
    await stage.decide(CLUSTER, lambda r, c: decide_assignment(r, 4, hosts, {}, 0, c))
    await stage.do(UndrainStore(hosts[0]))
    await stage.decide(CLUSTER, lambda r, c: decide_assignment(r, 4, hosts, {}, 0, c))


def _beat(stage: Stage, number: int, unresponsive: tuple[int, ...] = ()) -> Callable[[Reader, Context], Decision]:
    endpoints = {"grpc": f"10.0.1.{number}:9090"}
    beat = Heartbeat("api-gateway", f"api-gateway-{number}", endpoints, stage.now_ms(), unresponsive=unresponsive)
    return lambda reader, context: decide_heartbeat(reader, beat, context)


async def transactions(stage: Stage) -> None:
    """Transactions are opened in both ways, pinged, committed, rolled, aborted by each reason, and prepared in vain."""
    first, second = await open_transaction(stage), await open_transaction(stage)
    await stage.do(txn.PingTransaction(*ORDERS, first.transaction, LEASE_MS), "OK")
    write_into(stage, first, 1)
    await commit(stage, first, "writer")
    await stage.do(txn.AbortTransaction(*ORDERS, second.transaction))
    await stage.until(lambda: any(name.startswith("prepared:") for name in stage.truth.states()))
    late, old = await open_transaction(stage), await open_transaction(stage)
    write_into(stage, old, 2)
    await scale(stage, ORDERS, 0, is_merge=False)
    await commit(stage, old, "")
    assert late.transaction
    await stage.until(lambda: not transactions_of(stage.truth.view(ORDERS.key), ORDERS).open)
    await _wait_in_turn(stage)
    sealed = StreamId(SHOP, "retried")
    await open_transaction(stage, sealed)
    await stage.do(st.SealStream(*sealed))


async def _wait_in_turn(stage: Stage) -> None:
    """A scale comes while a batch of commits cannot get on, and waits for it."""
    opened = await open_transaction(stage)
    write_into(stage, opened, 3)
    ranges = replaced(stream_of(stage, ORDERS).active_segments(), 0, is_merge=False)
    with stage.refusing("MergeSegmentsBatch"):
        await stage.do(txn.CommitTransaction(*ORDERS, opened.transaction))
        await stage.until(lambda: stage.workflow(ORDERS.commits) is not None)
        scaled = stage.post(st.ScaleStream(*ORDERS, *ranges, stage.now_ms()))
        await stage.until(lambda: stream_of(stage, ORDERS).waiting is not None)
    assert (await stage.replied(scaled)).status == "STARTED"


async def open_transaction(stage: Stage, id: StreamId = ORDERS) -> Reply:
    reply = await stage.do(txn.OpenTransaction(*id, LEASE_MS), "OK")
    assert reply.transaction and reply.segments
    return reply


def write_into(stage: Stage, opened: Reply, number: int) -> None:
    """One event, in one of the segments: what a commit does with the others is to skip them."""
    name = f"{_segment(ORDERS, opened.segments[0].id)}#transaction.{opened.transaction.replace('-', '')}"
    stage.store.segments[name].data += event_of(number, 1, 0)


async def commit(stage: Stage, opened: Reply, writer: str) -> None:
    await stage.do(txn.CommitTransaction(*ORDERS, opened.transaction, writer, 2000 if writer else 0))
    await stage.until(lambda: stage.workflow(ORDERS.commits) is None)


CHAPTERS: tuple[Callable[[Stage], Awaitable[None]], ...] = (
    scopes,
    streams,
    long_history,
    progress,
    groups_and_tables,
    cluster,
    transactions,
)


async def everything(stage: Stage) -> None:
    """All chapters, on one journal; later ones use what earlier ones have made."""
    for chapter in CHAPTERS:
        await chapter(stage)
        await stage.append_marker()
    # What is prepared in vain is discarded, and what was skipped is recorded as deleted.
    await stage.until(lambda: not any(_is_unfinished(name, state) for name, state in stage.truth.states().items()))


def _is_unfinished(name: str, state: Any) -> bool:
    return name.startswith("prepared:") or (isinstance(state, Commits) and bool(state.skipped))
