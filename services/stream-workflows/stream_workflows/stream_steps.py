"""What the workflows of streams do on the segment stores.

Rules: stream-and-transaction-semantics 3.4 to 3.9, segment-store-wire-protocol 7.11.
"""

from collections.abc import Iterator

from sluice.domain.decision import Reader
from sluice.domain.ids import StreamId, TransactionId
from sluice.domain.segment import segment_name
from sluice.domain.stream import cuts
from sluice.domain.stream.state import Stream, find_created
from sluice.domain.transaction.batch import find_commits, skipped_names
from sluice.domain.transaction.commands import AbortReason, AbortTransaction
from sluice.domain.transaction.index import StreamTransactions, transactions_of
from sluice.domain.workflow import undone_creation
from sluice.engine.dependencies import Dependency
from sluice.engine.step import all_done
from sluice.workflows import segments
from stream_workflows.step_context import StreamStepContext


async def create_segments(context: StreamStepContext, stream: Stream) -> None:
    mark = find_created(context.reader(stream.id.key), stream.id.mark, stream.creation_id)
    calls = [segments.create_segments(context.store, stream, stream.active_epoch.segments)]
    if mark is not None:
        calls.append(segments.create_segments(context.store, mark, mark.active_epoch.segments))
    await all_done(calls)


async def update_policies(context: StreamStepContext, stream: Stream) -> None:
    """Segments that are about to be replaced need no new policy."""
    if not (stream.workflow and stream.workflow.replacement):
        await segments.set_policies(context, stream)


async def truncate_segments(context: StreamStepContext, stream: Stream) -> None:
    """Segments the cut has not reached (offset -1) have nothing to truncate."""
    reached = [(segment_name(*stream.id, s), at) for s, at in stream.cut.items() if at >= 0]
    await all_done(context.store.truncate_segment(name, at) for name, at in reached)


async def delete_passed_segments(context: StreamStepContext, stream: Stream) -> None:
    names = segments.segment_names(stream, stream.workflow.deletes if stream.workflow else ())
    await all_done(context.store.delete_segment(name) for name in names)


async def end_transactions(context: StreamStepContext, stream: Stream) -> None:
    """Abort what is open; done when that is, and everything that was to be committed. Nothing new can open."""
    transactions = transactions_of(context.reader(stream.id.key), stream.id)
    aborts = [AbortTransaction(*stream.id, uuid, AbortReason.SEAL) for uuid in transactions.open]
    context.require(
        [
            *(_end(abort.transaction_id, "is open", abort) for abort in aborts),
            *_ends(stream.id, transactions),
        ]
    )


def _ends(id: StreamId, transactions: StreamTransactions) -> Iterator[Dependency]:
    """Of all whose end is decided."""
    yield from (_end(id.transaction(uuid), "waits for its commit") for uuid in transactions.committing)
    yield from (_end(id.transaction(uuid), "is being aborted") for uuid in transactions.aborting)


def _end(id: TransactionId, now: str, command: AbortTransaction | None = None) -> Dependency:
    def holds(reader: Reader) -> bool:
        found = transactions_of(reader, id.stream_id)
        return all(id.transaction not in live for live in (found.open, found.committing, found.aborting))

    return Dependency(f"transaction {id.transaction} {now}", id.key, holds, command)


def _range_deleted(first: TransactionId) -> Dependency:
    def holds(reader: Reader) -> bool:
        return first.transaction not in transactions_of(reader, first.stream_id).ranges

    return Dependency(f"transactions prepared from {first.transaction} on are being discarded", first.key, holds)


async def seal_segments(context: StreamStepContext, stream: Stream) -> None:
    names = segments.segment_names(stream, stream.active_epoch.segments)
    await all_done(context.store.seal_segment(name) for name in names)


async def delete_segments(context: StreamStepContext, stream: Stream, creation_id: str = "") -> None:
    """Those of the stream and its mark stream, and what commits have skipped: txn-manager may be late with that.

    While a creation is undone, of this stream or `creation_id`, a mark stream of another creation stays. What
    is prepared of its transactions goes first: txn-manager discards it when the stream is being sealed. So do
    transactions that have not ended: a stream may come back sealed from a back-up that was made before they had.
    """
    transactions = transactions_of(context.reader(stream.id.key), stream.id)
    ranges = (_range_deleted(stream.id.transaction(first)) for first in transactions.ranges)
    context.require([*_ends(stream.id, transactions), *ranges])
    commits = find_commits(context.reader(stream.id.key), stream.id)
    names = []
    mark = find_created(context.reader(stream.id.key), stream.id.mark, creation_id or undone_creation(stream))
    for each in filter(None, (stream, mark)):
        names += segments.segment_names(each, {*cuts.segments_between(each, each.cut, {}), *each.spare})
    for skipped in commits.skipped.values() if commits is not None else ():
        names += skipped_names(stream, skipped)
    await all_done(context.store.delete_segment(name) for name in names)


async def create_replacement(context: StreamStepContext, stream: Stream) -> None:
    creates = stream.workflow.replacement.creates if stream.workflow and stream.workflow.replacement else ()
    await segments.create_segments(context.store, stream, [s.id for s in creates])


async def seal_replaced(context: StreamStepContext, stream: Stream) -> dict[int, int]:
    """The sizes of the replaced segments once nothing more can be written to them."""
    seals = stream.workflow.replacement.seals if stream.workflow and stream.workflow.replacement else ()
    return await segments.seal_and_measure(context.store, stream, seals)
