"""Commits of a stream, batch after batch, in the order in which they were requested.

A batch is a run of transactions of one epoch. If the stream has moved on to segments of other numbers since, the batch
rolls: what it holds goes into duplicates of its own epoch's segments, which come after the active ones, and after those
come duplicates of the active ones. A batch and a workflow of the stream exclude each other, since each reads, and so
guards, what the other one changes; only a stream that is being sealed or deleted waits for its commits.

A segment that was sealed and empty is skipped. The record that says so is that which ends the merging; what was skipped
stands in the state until a later batch's end, or a record of its own, says that it is deleted.
Rules: stream-and-transaction-semantics 3.10, 5 and 6.7; the order is stricter than there.
"""

from collections.abc import Iterator, Mapping
from itertools import islice, takewhile

import msgspec

from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.ids import StreamId
from sluice.domain.segment import number_of, segment_id
from sluice.domain.stream import events as of_stream
from sluice.domain.stream.commands import NoteWriterTime
from sluice.domain.stream.events import StreamEpochsRolled, StreamRolled
from sluice.domain.stream.reports import decide_note_time
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.transaction import events as of_transaction
from sluice.domain.transaction.events import (
    CommitBatchEnded,
    CommitBatchStarted,
    EmptySegmentsDeleted,
    EmptySegmentsSkipped,
    TransactionCommitted,
)
from sluice.domain.transaction.index import transactions_of
from sluice.domain.transaction.state import Transaction, find_transaction, segment_names
from sluice.domain.transaction_ids import epoch_of
from sluice.domain.workflow import Workflow, WorkflowKind, running, running_as

Event = of_transaction.Event | of_stream.Event
"""What a batch changes: transactions, and their stream."""

Positions = Mapping[str, Mapping[int, int]]
"""For each transaction how far it reaches: byte offsets by segment id; of all segments if any needs positions."""

Skipped = Mapping[str, tuple[int, ...]]
"""For each transaction the numbers of those of its segments that were sealed and empty."""

MAX_POSITIONS = 150_000
"""The record that ends a batch may have an offset of each transaction in each segment: so many fit, at 42 bytes."""

MAX_SKIPPED = 50_000
"""So many segments of a stream may be skipped and not yet known as deleted; a batch that may exceed it skips none."""


class CommitBatch(Workflow):
    """The transactions of one batch, in order."""

    transactions: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """A batch may begin in the moment in which the one before it did, but no transaction is in two."""
        return f"{self.kind.value}-{self.transactions[0]}"


class Merged(msgspec.Struct, frozen=True):
    """A batch is in its targets, but for what it `skipped`; what those up to `deleted` have skipped is deleted."""

    positions: Positions
    skipped: Skipped = {}
    deleted: int = 0


class Commits(msgspec.Struct, array_like=True):
    """The commits of a stream; `batches` counts those that were begun.

    `skipped` has, by the number of the batch, what is to be deleted and not yet known to be.
    """

    stream: StreamId
    batches: int = 0
    workflow: CommitBatch | None = None
    skipped: Mapping[int, Skipped] = {}

    def may_skip(self, most: int) -> bool:
        """Whether so many more segments may be skipped."""
        known = sum(len(numbers) for skipped in self.skipped.values() for numbers in skipped.values())
        return known + most <= MAX_SKIPPED


def find_commits(reader: Reader, id: StreamId) -> Commits | None:
    state = reader.get(id.commits)
    return state if isinstance(state, Commits) else None


def why_not_now(reader: Reader, id: StreamId, now: int) -> str | None:
    """What keeps the next batch of the stream from beginning: a workflow that runs, or one that is queued."""
    stream = find_stream(reader, id)
    if stream is None:
        return None
    workflow = running(stream)
    if workflow is not None and workflow.kind not in (WorkflowKind.SEAL_STREAM, WorkflowKind.DELETE_STREAM):
        return f"{workflow.kind.value} is running"
    if stream.waiting is not None and stream.waiting.is_current(now):
        return f"{stream.waiting.kind} is queued"
    return None


def begin_batch(reader: Reader, id: StreamId, context: Context, most: int) -> Decision:
    """Take the first transactions that wait, as long as they are of one epoch; nothing if it may not be now."""
    if running(find_commits(reader, id)) is not None:
        return Decision()
    return Decision(_next_batch(reader, id, context, most, ()))


def _next_batch(
    reader: Reader, id: StreamId, context: Context, most: int, ending: tuple[str, ...]
) -> tuple[CommitBatchStarted, ...]:
    """The batch behind those that are `ending`, if there is one and it may begin now."""
    first = islice(transactions_of(reader, id).committing, len(ending) + most)
    waiting = [transaction for transaction in first if transaction not in ending][:most]
    if not waiting:
        return ()
    epoch = epoch_of(waiting[0])
    alike = tuple(takewhile(lambda t: epoch_of(t) == epoch, waiting))
    return _started(reader, id, context, alike)


def batch_of_one(reader: Reader, id: StreamId, context: Context, transaction: str) -> tuple[CommitBatchStarted, ...]:
    """The batch of a transaction before which none waits, if it may begin now."""
    if running(find_commits(reader, id)) is not None:
        return ()
    return _started(reader, id, context, (transaction,))


def _started(
    reader: Reader, id: StreamId, context: Context, transactions: tuple[str, ...]
) -> tuple[CommitBatchStarted, ...]:
    stream = find_stream(reader, id)
    if stream is None or why_not_now(reader, id, context.now) is not None:
        return ()
    rolls = stream.history.reference(epoch_of(transactions[0])) != stream.active_epoch.reference
    fitting = _fitting(stream, transactions)
    return (CommitBatchStarted(*id, transactions=fitting, at=context.now, rolls=rolls),)


def _fitting(stream: Stream, transactions: tuple[str, ...]) -> tuple[str, ...]:
    """The first of these transactions, one at least, whose positions fit into one record, whoever their writers are."""
    segments = max(len(e.segments) for e in (stream.active_epoch, stream.history.epoch(epoch_of(transactions[0]))))
    return transactions[: max(1, MAX_POSITIONS // segments)]


def needs_positions(reader: Reader, id: StreamId, transactions: tuple[str, ...]) -> bool:
    """Whether any was committed with its writer's time: no other one's positions are recorded."""
    return any(True for _ in _with_time(reader, id, transactions))


def _with_time(reader: Reader, id: StreamId, transactions: tuple[str, ...]) -> Iterator[Transaction]:
    for transaction in transactions:
        found = find_transaction(reader, id.transaction(transaction))
        if isinstance(found, Transaction) and found.has_writers_time:
            yield found


def targets(stream: Stream, transactions: tuple[str, ...], rolls: bool) -> dict[int, int]:
    """Where the batch's segments go: by the number of each segment of its epoch the id of the one to merge into."""
    if not rolls:
        return {number_of(s): s for s in stream.active_epoch.segments}
    epoch = stream.history.epoch(epoch_of(transactions[0]))
    return {number_of(s): segment_id(stream.next_epoch, number_of(s)) for s in epoch.segments}


def next_duplicates(stream: Stream) -> list[int]:
    """The ids of the segments that replace the active ones when a batch has rolled."""
    return [segment_id(stream.next_epoch + 1, number_of(s)) for s in stream.active_epoch.segments]


def has_rolled(stream: Stream) -> bool:
    """Whether the duplicates are named as successors already."""
    return stream.history.count > stream.active + 1


def end_batch(reader: Reader, id: StreamId, context: Context, merged: Merged, most: int) -> Decision:
    """Everything is merged. What waits behind is taken on in the same record, unless something else waits.

    `merged` names the batch that was merged: another instance may have ended it, and another one be running.
    """
    commits = _running(reader, id, WorkflowKind.COMMIT_TRANSACTIONS)
    if commits is None or commits.workflow is None:
        return Decision()
    transactions = commits.workflow.transactions
    if merged.positions.keys() != set(transactions):
        return Decision()
    following = _next_batch(reader, id, context, most, transactions)
    return Decision((*_merged(reader, commits, context, merged), *_ended(commits, context), *following))


def record_rolled(
    reader: Reader, id: StreamId, context: Context, sealed_sizes: dict[int, int], merged: Merged
) -> Decision:
    """The duplicates of this batch exist: name them as successors. Nothing to do if that is so already."""
    stream, commits = find_stream(reader, id), _running(reader, id, WorkflowKind.ROLL_TRANSACTIONS)
    if stream is None or commits is None or commits.workflow is None or has_rolled(stream):
        return Decision()
    transactions = commits.workflow.transactions
    if merged.positions.keys() != set(transactions):
        return Decision()
    rolled = StreamEpochsRolled(
        *id,
        duplicates=epoch_of(transactions[0]),
        created_at=max(context.now, stream.active_epoch.created_at + 1),
        sealed_sizes=sealed_sizes,
    )
    return Decision((rolled, *_merged(reader, commits, context, merged)))


def end_roll(reader: Reader, id: StreamId, context: Context, sealed_sizes: dict[int, int]) -> Decision:
    """The segments that were active, those that have sizes, are sealed."""
    stream, commits = find_stream(reader, id), _running(reader, id, WorkflowKind.ROLL_TRANSACTIONS)
    if stream is None or commits is None or not has_rolled(stream):
        return Decision()
    if sealed_sizes.keys() != set(stream.active_epoch.segments):
        return Decision()
    return Decision((StreamRolled(*id, sealed_sizes=sealed_sizes), *_ended(commits, context)))


def record_deleted(reader: Reader, id: StreamId, batch: int) -> tuple[EmptySegmentsDeleted, ...]:
    """What batches up to this one have skipped is deleted; nothing if that is known."""
    commits = find_commits(reader, id)
    if commits is None or not any(number <= batch for number in commits.skipped):
        return ()
    return (EmptySegmentsDeleted(*id, batch=batch),)


def skipped_names(stream: Stream, skipped: Skipped) -> list[str]:
    """The names of these segments on the data plane."""
    return [segment_names(stream, t)[number] for t, numbers in skipped.items() for number in numbers]


def _running(reader: Reader, id: StreamId, kind: WorkflowKind) -> Commits | None:
    return running_as(kind, find_commits(reader, id))


def _merged(reader: Reader, commits: Commits, context: Context, merged: Merged) -> list[Event]:
    """What the record behind the merging says, of this batch and of the deletions of those before."""
    assert commits.workflow is not None
    id = commits.stream
    events = _writer_times(reader, id, commits.workflow.transactions, merged.positions, context)
    events.extend(record_deleted(reader, id, merged.deleted))
    if merged.skipped:
        events.append(EmptySegmentsSkipped(*id, segments=merged.skipped))
    return events


def _ended(commits: Commits, context: Context) -> list[Event]:
    assert commits.workflow is not None
    done: list[Event] = [
        TransactionCommitted(*commits.stream, t, at=context.now) for t in commits.workflow.transactions
    ]
    return [*done, CommitBatchEnded(*commits.stream)]


def _writer_times(
    reader: Reader, id: StreamId, transactions: tuple[str, ...], positions: Positions, context: Context
) -> list[Event]:
    """The latest time of each writer in the batch, as if it had reported that itself; a refused one is left out.

    Where nothing of the batch was merged a position is the length that a store gave for the segment. One that has lost
    the container may give too low a length, so no position is below the one known of the writer.
    """
    stream = find_stream(reader, id)
    if stream is None:
        return []
    latest: dict[str, Transaction] = {}
    for found in _with_time(reader, id, transactions):
        before = latest.get(found.writer)
        if before is None or found.timestamp > before.timestamp:
            latest[found.writer] = found
    recorded: list[Event] = []
    for writer, found in latest.items():
        known = stream.writers[writer].position if writer in stream.writers else {}
        position = {segment: max(at, known.get(segment, at)) for segment, at in positions[found.uuid].items()}
        report = NoteWriterTime(*id, writer=writer, timestamp=found.timestamp, position=position)
        recorded.extend(decide_note_time(reader, report, context).events)
    return recorded
