"""Transactions in numbers: how those of a stream ended over time, which streams' commits wait, what they wait for.

Everything is read from views of the journal. Of what has ended a view remembers two days or the last 50,000, at most
twice that; so an overview of outcomes walks over 100,000 at most, and lets other tasks run after each `AT_A_TIME`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from heapq import nlargest
from itertools import islice

import msgspec

from api_gateway.edge.reads import Reads
from sluice.domain.ids import StreamId
from sluice.domain.transaction.batch import CommitBatch, find_commits, why_not_now
from sluice.domain.transaction.commands import AbortReason
from sluice.domain.transaction.index import StreamTransactions, transactions_of
from sluice.domain.transaction.state import EndedTransaction, Transaction
from sluice.engine.fold import PartitionView

AT_A_TIME = 1_000


class Outcomes(msgspec.Struct):
    """How many transactions ended in the bucket that begins at `at` (epoch ms), by outcome."""

    at: int
    committed: int = 0
    aborted_by_user: int = 0
    aborted_by_lease: int = 0
    aborted_by_seal: int = 0
    aborted_by_restore: int = 0


class Summary(msgspec.Struct, frozen=True):
    """Buckets in which something ended, by time; `first_at` is when the first one that is remembered ended."""

    buckets: list[Outcomes]
    first_at: int | None


class WaitingStream(msgspec.Struct, frozen=True):
    """How many transactions of a stream have not ended; `oldest_waiting_at` is the first commit's request, epoch ms.

    `ended` is how many have since the time that was asked about, `ended_at` when the last one did, epoch ms.
    """

    stream: StreamId
    open: int
    waiting: int
    aborting: int
    oldest_waiting_at: int | None
    ended: int
    ended_at: int | None


class QueuedCommit(msgspec.Struct, frozen=True):
    """A commit that waits behind `position` others; `since` (epoch ms) is when it was requested, None if unknown."""

    id: str
    since: int | None
    position: int


class CommitQueue(msgspec.Struct, frozen=True):
    """The batch that is being merged, the first commits behind it of `waiting`, and what all of them wait for."""

    batch: CommitBatch | None
    queue: list[QueuedCommit]
    waiting: int
    waits_for: str


_OF_REASON = {
    AbortReason.USER: "aborted_by_user",
    AbortReason.LEASE: "aborted_by_lease",
    AbortReason.SEAL: "aborted_by_seal",
    AbortReason.RESTORE: "aborted_by_restore",
}


async def outcomes(view: PartitionView, id: StreamId, since: int, until: int, bucket_ms: int) -> Summary:
    """How the stream's transactions ended in [since, until), epoch ms; the first bucket begins at `since`."""
    buckets: dict[int, Outcomes] = {}
    first_at: int | None = None
    for number, ended in enumerate(transactions_of(view, id).ended(), 1):
        first_at = ended.at if first_at is None else min(first_at, ended.at)
        if since <= ended.at < until:
            at = ended.at - (ended.at - since) % bucket_ms
            _count(buckets.setdefault(at, Outcomes(at)), ended)
        if number % AT_A_TIME == 0:
            await asyncio.sleep(0)
    return Summary([buckets[at] for at in sorted(buckets)], first_at)


def _count(bucket: Outcomes, ended: EndedTransaction) -> None:
    # Without a reason it was committed.
    name = _OF_REASON[ended.reason] if ended.reason is not None else "committed"
    setattr(bucket, name, getattr(bucket, name) + 1)


async def streams_with_any(reads: Reads, since: int) -> AsyncIterator[WaitingStream]:
    """The streams with transactions that have not ended, or have since that time (epoch ms), in no order.

    Other tasks run between partitions.
    """
    await reads.everything()
    for view in reads.views():
        for one in _streams_with_any(view, since):
            yield one
        await asyncio.sleep(0)


def _streams_with_any(view: PartitionView, since: int) -> list[WaitingStream]:
    return [
        _waiting_stream(view, StreamId.of(name), index, ended)
        for name, index in view.projections()
        if isinstance(index, StreamTransactions) and ((ended := index.ended_since(since)) or index.live)
    ]


def _waiting_stream(view: PartitionView, id: StreamId, index: StreamTransactions, ended: int) -> WaitingStream:
    first = next(iter(index.committing), None)
    oldest = _committing_at(view, id, first) if first is not None else None
    last = next(index.ended(), None)
    ended_at = last.at if last is not None else None
    return WaitingStream(id, len(index.open), len(index.committing), len(index.aborting), oldest, ended, ended_at)


def most_waiting(streams: Iterable[WaitingStream], limit: int) -> list[WaitingStream]:
    """Those with the most commits waiting; of equal ones those with more to abort, more open, more that ended."""
    return nlargest(limit, streams, key=lambda one: (one.waiting, one.aborting, one.open, one.ended))


def commit_queue(view: PartitionView, id: StreamId, now: int, limit: int) -> CommitQueue:
    """The commits of a stream at `now` (epoch ms), `limit` of those that wait behind the batch."""
    commits = find_commits(view, id)
    batch = commits.workflow if commits is not None else None
    index = transactions_of(view, id).committing
    in_batch = set(batch.transactions) if batch is not None else set()
    behind = ((position, uuid) for position, uuid in enumerate(index) if uuid not in in_batch)
    queue = [QueuedCommit(uuid, _committing_at(view, id, uuid), position) for position, uuid in islice(behind, limit)]
    waits_for = ""
    if batch is not None:
        waits_for = batch.last_error
    elif index:
        waits_for = why_not_now(view, id, now) or ""
    return CommitQueue(batch, queue, sum(uuid not in in_batch for uuid in index), waits_for)


def _committing_at(view: PartitionView, id: StreamId, uuid: str) -> int | None:
    found = view.peek(id.transaction(uuid).aggregate)
    return found.committing_at or None if isinstance(found, Transaction) else None
