"""Which partitions a read waits for: it holds all that was acknowledged there before it, and needs no others."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from unit.gateway.support import creation_started, cut_message, group_info
from unit.gateway.system import PARTITIONS, MemorySystem

from api_gateway.edge.reads import Reads
from api_gateway.edge.requests import Requests
from api_gateway.main import handlers
from api_gateway.settings import GatewaySettings
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.ids import StreamId
from sluice.domain.segment import Segment, segment_id
from sluice.domain.stream.events import Replacement, StreamCreated, StreamEpochAdded, StreamScaled, StreamScaleStarted
from sluice.domain.transaction.events import TransactionCommitted, TransactionCommitting, TransactionOpened
from sluice.domain.transaction.state import TransactionState
from sluice.engine.journal import JournalUnavailableError

Read = Callable[[], Awaitable[Any]]

STREAM = pb.StreamInfo(scope="sc", stream="st")
MARKS = pb.StreamInfo(scope="sc", stream="_MARKst")
SEGMENT = pb.SegmentId(streamInfo=STREAM, segmentId=0)
SCOPE = pb.ScopeInfo(scope="sc")
TRANSACTION = pb.TxnRequest(streamInfo=STREAM, txnId=pb.TxnId(lowBits=7))
TABLE = pb.KeyValueTableInfo(scope="sc", kvtName="kv")
TXN_ID = "00000000-0000-0000-0000-000000000007"
ALL: tuple[str, ...] = ("all",)


async def waits_for(system: MemorySystem, read: Read) -> set[int]:
    """The partitions that keep a read waiting while they alone lag behind."""
    log, found = system.connections.log, set()
    for partition in range(PARTITIONS):
        log.freeze(partition)
        system.land_without_entries(partition)
        asking = asyncio.ensure_future(read())
        await asyncio.wait([asking], timeout=1)
        if not asking.done():
            found.add(partition)
        log.thaw(partition)
        await asyncio.wait([asking])
        # Whether there is such a thing does not matter here.
        asking.exception()
    return found


def partitions_of(system: MemorySystem, keys: tuple[str, ...]) -> set[int]:
    return set(range(PARTITIONS)) if keys == ALL else {system.journal.partition_of(key) for key in keys}


def handled(system: MemorySystem, rpc: str, message: Any) -> Read:
    settings = GatewaySettings(instance="test")
    table = handlers(Reads(system.runtime.journal), Requests(system.runtime, 1, 1), settings)
    return lambda: table[rpc](message, cast(Any, None))


@pytest.mark.parametrize(
    ("rpc", "message", "keys"),
    [
        ("checkScopeExists", SCOPE, ("sc",)),
        ("checkStreamExists", STREAM, ("sc/st",)),
        ("getCurrentSegments", STREAM, ("sc/st",)),
        ("getCurrentSegments", MARKS, ("sc/st",)),
        ("isStreamCutValid", cut_message({0: 0}), ("sc/st",)),
        ("checkScale", pb.ScaleStatusRequest(streamInfo=STREAM, epoch=0), ("sc/st",)),
        ("checkTransactionState", TRANSACTION, ("sc/st",)),
        ("listCompletedTransactions", pb.ListCompletedTxnRequest(streamInfo=STREAM), ("sc/st",)),
        ("listSubscribers", STREAM, ("sc", "sc/st")),
        ("getReaderGroupConfig", group_info(), ("sc", "sc/_RGrg")),
        ("getKeyValueTableConfiguration", TABLE, ("sc/kv",)),
        ("listScopes", pb.ScopesRequest(), ALL),
        ("listStreamsInScope", pb.StreamsInScopeRequest(scope=SCOPE), ALL),
        ("listStreamsInScopeForTag", pb.StreamsInScopeWithTagRequest(scope=SCOPE, tag="red"), ALL),
        ("listKeyValueTablesInScope", pb.KVTablesInScopeRequest(scope=SCOPE), ALL),
        ("getURI", SEGMENT, ()),
        ("getControllerServerList", pb.ServerRequest(), ()),
    ],
)
async def test_a_read_waits_for_the_partitions_of_what_it_shows(
    idle: MemorySystem, rpc: str, message: Any, keys: tuple[str, ...]
) -> None:
    assert await waits_for(idle, handled(idle, rpc, message)) == partitions_of(idle, keys)


async def test_a_read_of_workflows_waits_for_their_partitions(idle: MemorySystem) -> None:
    reads = Reads(idle.runtime.journal)
    assert await waits_for(idle, lambda: reads.workflow("stream:sc/st")) == partitions_of(idle, ("sc/st",))

    async def at_work() -> list[str]:
        return [aggregate async for aggregate, _state, _view in reads.at_work()]

    assert await waits_for(idle, at_work) == partitions_of(idle, ALL)


async def test_a_read_without_the_journal_is_unavailable(idle: MemorySystem) -> None:
    idle.broker.go_away(60)
    with pytest.raises(JournalUnavailableError, match="end of journal not reached"):
        await handled(idle, "checkScopeExists", SCOPE)()


async def test_only_a_caller_of_the_scale_that_runs_waits_for_its_end(idle: MemorySystem) -> None:
    first, second = (
        StreamScaleStarted(
            scope="sc",
            stream="st",
            replacement=Replacement((seal,), (Segment(segment_id(epoch, epoch), 0.0, 1.0),), 1),
        )
        for seal, epoch in ((0, 1), (segment_id(1, 1), 2))
    )
    added = StreamEpochAdded(scope="sc", stream="st", created_at=2)
    done = StreamScaled(scope="sc", stream="st", sealed_sizes={})
    reads, loop = Reads(idle.runtime.journal), idle.broker.loop
    await idle.append("sc/st", creation_started(), StreamCreated(scope="sc", stream="st"), first, added, done, second)
    before = loop.time()
    for epoch in (0, 2):
        assert await reads.scaled_stream(StreamId("sc", "st"), epoch, 60) is not None
    assert loop.time() - before < 1
    waiting = asyncio.ensure_future(reads.scaled_stream(StreamId("sc", "st"), 1, 60))
    await asyncio.sleep(30)
    assert not waiting.done()
    await idle.append("sc/st", StreamEpochAdded(scope="sc", stream="st", created_at=3), done)
    assert await waiting is not None
    assert loop.time() - before < 60


async def test_the_state_of_a_transaction_that_ends_comes_with_its_end(idle: MemorySystem) -> None:
    names: dict[str, Any] = {"scope": "sc", "stream": "st", "transaction": TXN_ID}
    opened = TransactionOpened(**names, lease_ms=10_000, at=1, dies_at=10**15)
    committing = TransactionCommitting(**names, at=2)
    reads, loop = Reads(idle.runtime.journal), idle.broker.loop
    id = StreamId("sc", "st").transaction(TXN_ID)
    await idle.append("sc/st", creation_started(), StreamCreated(scope="sc", stream="st"), opened)
    before = loop.time()
    assert await reads.transaction_state(id, 60) is TransactionState.OPEN
    assert loop.time() - before < 1
    await idle.append("sc/st", committing)
    assert await reads.transaction_state(id, 1) is TransactionState.COMMITTING
    asking = asyncio.ensure_future(reads.transaction_state(id, 60))
    await asyncio.sleep(30)
    assert not asking.done()
    await idle.append("sc/st", TransactionCommitted(**names, at=3))
    assert await asking is TransactionState.COMMITTED
    assert loop.time() - before < 60
