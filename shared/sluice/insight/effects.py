"""What an operation on a stream would do, in numbers, and what its state allows: for operators, before they decide.

The decision itself is asked whether it would be refused; nothing is appended. By the time the operation is requested
the stream may be another one, so these numbers promise nothing. Pure functions.

Rules: stream-and-transaction-semantics 3.4 to 3.9, 4.2, 8.1.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from sluice.domain.cut_order import Cut
from sluice.domain.decision import Context, Reader, Reply, refusal
from sluice.domain.errors import BusyError, InvalidArgumentError, LengthsUnknownError, NotFoundError, ViewBehindError
from sluice.domain.status import Status
from sluice.domain.stream import cuts, decide, scale
from sluice.domain.stream.commands import (
    CreateStream,
    DeleteStream,
    ScaleStream,
    SealStream,
    TruncateStream,
    UpdateStream,
)
from sluice.domain.stream.state import Stream, StreamState, find_stream
from sluice.domain.transaction.index import transactions_of
from sluice.domain.workflow import WorkflowKind, running_as

Operation = CreateStream | UpdateStream | ScaleStream | TruncateStream | SealStream | DeleteStream


class Effects(msgspec.Struct, frozen=True):
    """Those that apply; the others are None. `waits_for` is what the operation would wait for before it begins.

    `segments_created` and `segments_sealed` are of a scale, an update, a creation or a seal; `segments_deleted` and
    `bytes_dropped` go for good. `bytes_dropped` is None, too, where lengths of segments are not known.
    `transactions_aborted` are open now, `transactions_committed` wait for their commit and are committed first.
    `reader_groups_behind` are subscribers that have not read as far as what goes, or have never reported.
    """

    segments_created: int | None = None
    segments_sealed: int | None = None
    segments_deleted: int | None = None
    transactions_aborted: int | None = None
    transactions_committed: int | None = None
    bytes_dropped: int | None = None
    reader_groups_behind: int | None = None
    waits_for: str | None = None


class DryRun(msgspec.Struct, frozen=True):
    """`refused` is the reply to the operation if it would be refused."""

    effects: Effects
    refused: Reply | None


_ACCEPTED = (Status.SUCCESS, Status.OK, Status.STARTED)


def segments_to_measure(stream: Stream | None, command: Operation) -> tuple[int, ...]:
    """The segments whose present lengths a dry run needs."""
    match command:
        case TruncateStream():
            return tuple(segment for segment, at in command.cut.items() if at > 0)
        case DeleteStream() if stream is not None:
            return stream.active_epoch.segments
    return ()


def dry_run(reader: Reader, command: Operation, now: int, lengths: Mapping[int, int]) -> DryRun:
    """What the operation would come to; `now` in epoch ms, `lengths` in bytes by segment id, as far as they are known.

    Reads behind the barrier of all partitions.
    """
    stream = find_stream(reader, command.stream_id)
    reply, waits = None, None
    try:
        reply = decide.DECIDE[type(command)](reader, command, Context(now, caught_up=True, measured=lengths)).reply
    except (BusyError, LengthsUnknownError, ViewBehindError) as error:
        waits = f"{error}"
    if reply is not None and reply.status not in _ACCEPTED:
        return DryRun(Effects(), reply)
    try:
        effects = _effects(reader, stream, command, now, lengths)
    except (InvalidArgumentError, NotFoundError) as error:
        # Where it waits nothing was said of what is wrong with it.
        return DryRun(Effects(), refusal(Status.FAILURE, f"{error}"))
    return DryRun(msgspec.structs.replace(effects, waits_for=waits), None)


def _effects(
    reader: Reader, stream: Stream | None, command: Operation, now: int, lengths: Mapping[int, int]
) -> Effects:
    match command:
        case CreateStream():
            return Effects(segments_created=command.config.scaling.min_segments)
        case ScaleStream():
            return Effects(segments_sealed=len(set(command.seals)), segments_created=len(command.ranges))
    if stream is None:
        return Effects()
    match command:
        case UpdateStream():
            replacement = scale.plan_for_policy(stream, command.config, now)
            if replacement is None:
                return Effects()
            return Effects(segments_sealed=len(replacement.seals), segments_created=len(replacement.creates))
        case TruncateStream():
            return _of_truncation(stream, command.cut)
        case SealStream():
            if stream.state is StreamState.SEALED:
                return Effects()
            transactions = transactions_of(reader, stream.id)
            return Effects(
                segments_sealed=len(stream.active_epoch.segments),
                transactions_aborted=len(transactions.open) + len(transactions.aborting),
                transactions_committed=len(transactions.committing),
            )
    return _of_deletion(stream, lengths)


def _of_truncation(stream: Stream, cut: Cut) -> Effects:
    passed = cuts.segments_between(stream, stream.cut, cut)
    behind = [s for s in stream.subscribers.values() if not s.cut or not cuts.is_equal_or_after(stream, s.cut, cut)]
    return Effects(
        segments_deleted=len(passed - cut.keys()),
        bytes_dropped=cuts.size_between(stream, stream.cut, cut, passed),
        reader_groups_behind=len(behind),
    )


def _of_deletion(stream: Stream, lengths: Mapping[int, int]) -> Effects:
    """All that lies behind the head goes. Of the last segments only the segment stores know how long they are."""
    held, last = cuts.segments_between(stream, stream.cut, {}), stream.active_epoch.segments
    size = None
    if all(segment in lengths for segment in last):
        end = {segment: lengths[segment] for segment in last}
        size = cuts.size_between(stream, stream.cut, end, held)
    return Effects(
        segments_deleted=len(held) + len(stream.spare),
        bytes_dropped=size,
        reader_groups_behind=len(stream.subscribers),
    )


class Act(StrEnum):
    """What may be done with a stream by hand. A commit and an abort are of any of its transactions."""

    UPDATE = "update"
    SCALE = "scale"
    TRUNCATE = "truncate"
    SEAL = "seal"
    DELETE = "delete"
    COMMIT = "commit"
    ABORT = "abort"


_NOT_YET = (StreamState.CREATING, StreamState.RESTORING)
_ON_TRANSACTIONS = (Act.COMMIT, Act.ABORT)


def why_not(stream: Stream, act: Act, live_transactions: int) -> str:
    """Why the state of a stream forbids it, in words; empty if it does not. What would wait its turn is allowed."""
    if stream.state in _NOT_YET:
        return f"it is being {'created' if stream.state is StreamState.CREATING else 'restored'}"
    if running_as(WorkflowKind.DELETE_STREAM, stream) is not None:
        return "it is being deleted"
    if act in _ON_TRANSACTIONS:
        return "" if live_transactions else "it has no transaction that has not ended"
    if act is Act.DELETE:
        return "" if stream.state is StreamState.SEALED else "it is not sealed"
    if stream.state is StreamState.SEALED:
        return "it is sealed"
    return "it is being sealed" if stream.state is StreamState.SEALING else ""
