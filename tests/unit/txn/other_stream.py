"""A second stream of a world, in the partition of the first one, for tests of what streams leave to each other."""

import asyncio
from collections.abc import Awaitable
from itertools import count

from support.transaction_world import KEY, STREAM, TransactionWorld

from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.ids import StreamId, TransactionId
from sluice.domain.segment import segment_name
from sluice.domain.stream.commands import CreateStream
from sluice.domain.stream.decide import finish_create
from sluice.domain.transaction.events import TransactionCommitting, TransactionOpened, TransactionReady
from sluice.domain.transaction.state import TransactionState, find_transaction
from sluice.domain.transaction_ids import transaction_id
from sluice.pravega.memory import Moment


def slow_with_the_first(moment: Moment, _request: str, segment: str) -> Awaitable[None] | None:
    """A fault of segment stores: each call on a segment of the first stream takes long."""
    return asyncio.sleep(20.0) if moment == "before" and segment.startswith(f"{STREAM}/") else None


async def other_stream(world: TransactionWorld) -> StreamId:
    """One of a single segment, with that."""
    partition_of = world.first.journal.partition_of
    ids = (StreamId("sc", f"other-{number}") for number in count())
    id = next(id for id in ids if partition_of(id.key) == partition_of(KEY))
    await world.ask(CreateStream(*id, StreamConfig(scaling=ScalingPolicy(min_segments=1))), "other")
    await world.do(id.key, lambda reader, _: finish_create(reader, id))
    await world.store.create_segment(segment_name(*id, 0), 0, 0)
    return id


async def commit_empty(world: TransactionWorld, stream: StreamId) -> TransactionId:
    """A transaction that is to be committed, without segments: they count as merged."""
    id = stream.transaction(transaction_id(0, "empty"))
    opened = TransactionOpened(*id, lease_ms=10_000, at=1, dies_at=10**15)
    await world.seed(stream.key, opened, TransactionReady(*id, at=1), TransactionCommitting(*id, at=1))
    return id


def is_committed(world: TransactionWorld, id: TransactionId) -> bool:
    found = find_transaction(world.view(id.key), id)
    return found is not None and found.state is TransactionState.COMMITTED
