"""What the end of transactions takes on the segment stores: merging what was committed, deleting what was not.

Rules: stream-and-transaction-semantics 3.10, 3.11 and 5.1, segment-store-wire-protocol 4.8 and 7.5.
"""

from collections.abc import Mapping

import msgspec

from sluice.domain.config import ScalingPolicy
from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.errors import NotFoundError
from sluice.domain.ids import StreamId
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.transaction import batch
from sluice.domain.transaction.batch import Commits, Merged
from sluice.domain.transaction.decide import finish_abort
from sluice.domain.transaction.state import Transaction, find_transaction, segment_names
from sluice.domain.workflow import WorkflowKind
from sluice.engine.step import Step, Workflows, all_done
from sluice.workflows.segments import create_segments, seal_and_measure
from txn_manager.aged_merge import AgedMerge
from txn_manager.merging import Merge, merge_into
from txn_manager.step_context import TransactionStepContext

NO_SCALING = ScalingPolicy()
"""For segments that no client writes to, or not for long: no load of theirs is reported."""


def _stream_of(context: TransactionStepContext, id: StreamId) -> Stream:
    stream = find_stream(context.reader(id.key), id)
    if stream is None:
        raise NotFoundError(f"{id} has transactions, but does not exist")
    return stream


async def merge(context: TransactionStepContext, commits: Commits) -> Merged:
    """Append the batch to the active segments, all of them side by side, each in the batch's order."""
    assert commits.workflow is not None
    stream, transactions = _stream_of(context, commits.stream), commits.workflow.transactions
    targets = batch.targets(stream, transactions, rolls=False)
    return await _merge(context, commits, stream, transactions, targets)


async def merge_into_duplicates(context: TransactionStepContext, commits: Commits) -> tuple[dict[int, int], Merged]:
    """Fill and seal duplicates of the batch's own segments, create duplicates of the active ones behind them."""
    assert commits.workflow is not None
    stream, transactions = _stream_of(context, commits.stream), commits.workflow.transactions
    if batch.has_rolled(stream):
        return {}, Merged({})
    targets = batch.targets(stream, transactions, rolls=True)
    following = batch.next_duplicates(stream)
    await create_segments(context.store, stream, targets.values(), NO_SCALING)
    merged = await _merge(context, commits, stream, transactions, targets)
    sizes = await seal_and_measure(context.store, stream, targets.values())
    await create_segments(context.store, stream, following)
    return sizes, merged


async def _merge(
    context: TransactionStepContext,
    commits: Commits,
    stream: Stream,
    transactions: tuple[str, ...],
    targets: Mapping[int, int],
) -> Merged:
    """Merge these transactions; behind an await `commits` may have another batch."""
    aggregate, may_skip = commits.stream.commits, commits.may_skip(len(transactions) * len(targets))
    needs_positions = batch.needs_positions(context.reader(stream.id.key), stream.id, transactions)
    opened_at = _opened_at(context, stream, transactions)
    merged = await merge_into(
        context.store,
        _merge_of(context, stream, opened_at),
        stream,
        transactions,
        targets,
        may_skip,
        needs_positions,
        context.lengths,
        opened_at,
        context.now_ms,
    )
    return msgspec.structs.replace(merged, deleted=context.deleted.get(aggregate, 0))


def _opened_at(context: TransactionStepContext, stream: Stream, transactions: tuple[str, ...]) -> dict[str, int]:
    """By segment; without those of transactions that have ended."""
    opened_at = dict[str, int]()
    for transaction in transactions:
        found = find_transaction(context.reader(stream.id.key), stream.id.transaction(transaction))
        if isinstance(found, Transaction):
            opened_at.update(dict.fromkeys(segment_names(stream, transaction).values(), found.opened_at))
    return opened_at


def _merge_of(context: TransactionStepContext, stream: Stream, opened_at: Mapping[str, int]) -> Merge:
    """How the batch gets into active segments: fixed ones report no load, so nothing depends on the ages there."""
    if not stream.config.scaling.is_by_load:
        return context.store.merge_batch
    return AgedMerge(context.store, opened_at, context.creation_times, context.now_ms)


async def seal_active(context: TransactionStepContext, commits: Commits) -> dict[int, int]:
    """Nothing unless successors are named: the roll they were created for may have ended and another one have begun."""
    stream = _stream_of(context, commits.stream)
    if not batch.has_rolled(stream):
        return {}
    return await seal_and_measure(context.store, stream, stream.active_epoch.segments)


async def delete_segments(context: TransactionStepContext, transaction: Transaction) -> None:
    stream = _stream_of(context, transaction.id.stream_id)
    names = segment_names(stream, transaction.uuid).values()
    await all_done(context.store.delete_segment(name) for name in names)


def _end_batch(most: int) -> "Step[TransactionStepContext]":
    def record(reader: Reader, context: Context, state: Commits, merged: Merged) -> Decision:
        return batch.end_batch(reader, state.stream, context, merged, most)

    return Step("merge", merge, record)


def _rolled(reader: Reader, context: Context, state: Commits, found: tuple[dict[int, int], Merged]) -> Decision:
    sizes, merged = found
    return batch.record_rolled(reader, state.stream, context, sizes, merged)


def _roll_ended(reader: Reader, context: Context, state: Commits, sizes: dict[int, int]) -> Decision:
    return batch.end_roll(reader, state.stream, context, sizes)


def _aborted(reader: Reader, context: Context, state: Transaction, _outcome: None) -> Decision:
    return finish_abort(reader, state.id, context.now)


def workflows(most: int) -> Workflows[TransactionStepContext]:
    """The workflows of this service; `most` transactions make a batch."""
    return {
        WorkflowKind.COMMIT_TRANSACTIONS: (_end_batch(most),),
        WorkflowKind.ROLL_TRANSACTIONS: (
            Step("merge-into-duplicates", merge_into_duplicates, _rolled),
            Step("seal-active", seal_active, _roll_ended),
        ),
        WorkflowKind.ABORT_TRANSACTION: (Step("delete-segments", delete_segments, _aborted),),
    }
