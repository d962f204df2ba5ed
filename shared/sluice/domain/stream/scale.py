"""Scaling: which replacements of segments are right, how they begin, when they are done.

The new segments exist before the old ones are sealed, and the record of succession before both, so that a writer that
meets a sealed segment always finds a successor.
Rules: controller-grpc-api 5.4, stream-and-transaction-semantics 3.6, 4.1 to 4.4.
"""

from collections.abc import Iterable
from enum import Enum
from itertools import pairwise

from sluice.domain.config import MAX_SEGMENTS, ScaleType, StreamConfig
from sluice.domain.decision import Context, Decision, Reader, Reply, refuse
from sluice.domain.errors import InvalidArgumentError, NotFoundError
from sluice.domain.ids import StreamId
from sluice.domain.segment import Segment, segment_id
from sluice.domain.status import Status
from sluice.domain.stream.commands import ScaleStream
from sluice.domain.stream.decisions import overdue
from sluice.domain.stream.events import Replacement, StreamEpochAdded, StreamScaled, StreamScaleStarted
from sluice.domain.stream.state import Stream, StreamState, find_stream, idle_stream
from sluice.domain.workflow import WorkflowKind

Range = tuple[float, float]


def equal_ranges(count: int) -> list[Range]:
    """`count` equal ranges, `[i*(1.0/n), (i+1)*(1.0/n))` as Pravega computes them, the last bound pinned to 1.0.

    Unpinned, the last bound is 0.9999999999999999 for n = 49, 98, 103 …, which clients reject
    (stream-and-transaction-semantics 1.4).
    """
    width = 1.0 / count
    bounds = [i * width for i in range(count)] + [1.0]
    return list(pairwise(bounds))


def decide_scale(reader: Reader, command: ScaleStream, context: Context) -> Decision:
    """Begin a scale; the reply says at once which segments will come."""
    stream = idle_stream(reader, command.stream_id)
    if stream is None:
        return refuse(Status.FAILURE, "no such stream")
    if stream.state in (StreamState.CREATING, StreamState.SEALING, StreamState.SEALED):
        return refuse(Status.FAILURE, f"the stream is {stream.state.value}")
    if command.policy is not None and (why := _outdated(stream, command, context)):
        return refuse(Status.PRECONDITION_FAILED, why)
    if max(len(command.seals), len(command.ranges)) > MAX_SEGMENTS:
        return refuse(Status.FAILURE, f"a scale seals and creates at most {MAX_SEGMENTS} segments")
    active = stream.active_epoch
    seals = set(command.seals)
    gone = seals.difference(active.segments)
    if gone:
        return refuse(Status.PRECONDITION_FAILED, f"not segments of the active epoch: {sorted(gone)}")
    if not seals or not command.ranges:
        return refuse(Status.FAILURE, "a scale needs segments to seal and ranges to create")
    if any(low >= high for low, high in command.ranges):
        return refuse(Status.FAILURE, "a range must begin before it ends")
    sealed = [stream.history.segment(s) for s in seals]
    if _blocks((s.low, s.high) for s in sealed) != _blocks(command.ranges):
        return refuse(Status.FAILURE, "the new ranges do not tile exactly those of the sealed segments")
    count = len(active.segments) - len(sealed) + len(command.ranges)
    least = stream.config.scaling.min_segments
    if count > MAX_SEGMENTS:
        return refuse(Status.FAILURE, f"{count} segments would be active, the limit is {MAX_SEGMENTS}")
    if count < least:
        return refuse(Status.PRECONDITION_FAILED, f"{count} segments would be left, the policy's minimum is {least}")
    replacement = plan(stream, tuple(sorted(seals)), command.ranges, command.at)
    started = StreamScaleStarted(*stream.id, replacement=replacement, at=context.now)
    return Decision((started,), Reply(Status.STARTED, segments=replacement.creates, epoch=active.number))


def _outdated(stream: Stream, command: ScaleStream, context: Context) -> str:
    """Why what a policy has decided does not hold any more, "" if it does."""
    if command.policy != stream.config.scaling:
        return "the stream has another scaling policy by now"
    if command.epoch != stream.active:
        return f"decided in epoch {command.epoch}, the active one is {stream.active}"
    return overdue(command.at, context)


def answer_at_once(stream: Stream | None, command: ScaleStream) -> Reply | None:
    """The answer to a scale that need not wait behind the one that is running, or behind a seal (5.4).

    It is the same one if nothing is requested but what that one does; None if the request has to wait.
    """
    if stream is None or stream.workflow is None or stream.workflow.cancelled:
        return None
    if stream.state is StreamState.SEALING:
        return Reply(Status.FAILURE, "the stream is SEALING")
    replacement = stream.workflow.replacement
    if stream.workflow.kind is not WorkflowKind.SCALE_STREAM or replacement is None:
        return None
    created = {(s.low, s.high) for s in replacement.creates}
    if created.issuperset(command.ranges) and set(replacement.seals).issuperset(command.seals):
        return Reply(Status.STARTED, segments=replacement.creates, epoch=stream.active)
    return Reply(Status.FAILURE, "another scale of the stream is running")


def plan(stream: Stream, seals: tuple[int, ...], ranges: Iterable[Range], at: int) -> Replacement:
    """Give the ranges ids of the next epoch, numbered on from the highest number ever used.

    What a cancelled scale has left may have been created for another configuration, so it is not used again.
    """
    epoch, first = stream.next_epoch, stream.next_number
    creates = tuple(Segment(segment_id(epoch, first + i), low, high) for i, (low, high) in enumerate(ranges))
    return Replacement(seals=seals, creates=creates, at=at)


def plan_for_policy(stream: Stream, config: StreamConfig, now: int) -> Replacement | None:
    """The replacement of all active segments that a new policy requires, if it does (3.5 step 6)."""
    wanted, have = config.scaling.min_segments, len(stream.active_epoch.segments)
    if have < wanted or (config.scaling.scale_type is ScaleType.FIXED and have != wanted):
        return plan(stream, stream.active_epoch.segments, equal_ranges(wanted), now)
    return None


def add_epoch(reader: Reader, id: StreamId) -> Decision:
    """The new segments exist: name them as successors. Nothing to do if that is so already."""
    stream = find_stream(reader, id)
    if stream is None or stream.workflow is None or stream.workflow.replacement is None:
        return Decision()
    if stream.history.count > stream.active + 1:
        return Decision()
    created_at = max(stream.workflow.replacement.at, stream.active_epoch.created_at + 1)
    return Decision((StreamEpochAdded(*id, created_at=created_at),))


def finish_scale(_reader: Reader, id: StreamId, sealed_sizes: dict[int, int]) -> Decision:
    return Decision((StreamScaled(*id, sealed_sizes=sealed_sizes),))


class ScaleProgress(Enum):
    """How far a scale is; NONE if none has begun. One that was cancelled is forgotten when the next one begins."""

    NONE = "none"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


def progress(stream: Stream | None, epoch: int) -> ScaleProgress:
    """How far the scale that began on `epoch` is.

    Raises InvalidArgumentError for a negative epoch, NotFoundError for an unknown stream or an epoch yet to come.
    """
    if epoch < 0:
        raise InvalidArgumentError(f"epoch {epoch} is negative")
    if stream is None:
        raise NotFoundError("no such stream")
    active = stream.active_epoch
    if epoch > active.number:
        raise NotFoundError(f"epoch {epoch} is not there yet, the active one is {active.number}")
    if epoch not in (active.number, active.reference):
        return ScaleProgress.DONE
    if epoch == stream.cancelled_scale:
        return ScaleProgress.CANCELLED
    is_running = stream.workflow is not None and stream.workflow.kind is WorkflowKind.SCALE_STREAM
    return ScaleProgress.RUNNING if is_running and epoch == active.number else ScaleProgress.NONE


def _blocks(ranges: Iterable[Range]) -> list[Range]:
    """Adjacent ranges joined, with exact bounds; a gap or an overlap starts a new block (4.2)."""
    blocks: list[Range] = []
    for low, high in sorted(ranges):
        if blocks and blocks[-1][1] == low:
            blocks[-1] = (blocks[-1][0], high)
        else:
            blocks.append((low, high))
    return blocks
