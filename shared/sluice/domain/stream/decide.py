"""The decisions on a stream: how each operation begins, and how its workflow ends.

A workflow begins with one event that says everything needed to finish it and ends with one that says it is done;
what lies between are idempotent calls to segment stores that a service makes. Rules: controller-grpc-api 5.3,
stream-and-transaction-semantics 3.4 to 3.9.
"""

from functools import wraps
from typing import Any

import msgspec

from sluice.domain.config import MAX_SEGMENTS, ScalingPolicy, StreamConfig
from sluice.domain.decision import Context, Decide, Decision, Reader, Reply, nothing_to_delete, refuse
from sluice.domain.errors import InvalidArgumentError, NotFoundError
from sluice.domain.ids import StreamId
from sluice.domain.names import is_stream_name
from sluice.domain.scope.fences import base_of, missing_scope
from sluice.domain.segment import Segment, segment_id
from sluice.domain.status import Status
from sluice.domain.stream import cuts, scale
from sluice.domain.stream.commands import (
    CreateStream,
    DeleteStream,
    ScaleStream,
    SealStream,
    StreamCommand,
    TruncateStream,
    UpdateStream,
)
from sluice.domain.stream.decisions import overdue, unknown
from sluice.domain.stream.events import (
    StreamCreated,
    StreamCreationStarted,
    StreamDeleted,
    StreamDeletionStarted,
    StreamScaleCancelled,
    StreamSealed,
    StreamSealStarted,
    StreamTruncated,
    StreamTruncationStarted,
    StreamUpdated,
    StreamUpdateStarted,
    WorkflowAdmitted,
    WorkflowQueued,
)
from sluice.domain.stream.state import Stream, StreamState, find_created, find_stream, first_number, idle_stream
from sluice.domain.wording import some
from sluice.domain.workflow import WorkflowKind, check_idle, last_reply, running

_MARK_CONFIG = StreamConfig(scaling=ScalingPolicy(min_segments=1))


def initial_segments(count: int, epoch: int, first: int) -> tuple[Segment, ...]:
    """The segments of a first epoch, numbered from `first`."""
    ranges = enumerate(scale.equal_ranges(count))
    return tuple(Segment(segment_id(epoch, first + i), low, high) for i, (low, high) in ranges)


def decide_create(reader: Reader, command: CreateStream, context: Context) -> Decision:
    """Begin the creation of the stream and, in the same record, of its mark stream.

    Raises ViewBehindError, BusyError.
    """
    if not is_stream_name(command.stream):
        return refuse(Status.INVALID_STREAM_NAME)
    stream = find_stream(reader, command.stream_id)
    if refused := missing_scope(reader, command.scope, context):
        return refused
    if stream is not None:
        check_idle(command.stream_id, stream)
        return refuse(Status.STREAM_EXISTS)
    if wrong := _wrong_with(command.config):
        return refuse(Status.FAILURE, wrong)
    return Decision(start_with_mark(reader, command.stream_id, command.config, context, context.request))


def _wrong_with(config: StreamConfig) -> str:
    segments = config.scaling.min_segments
    right = 1 <= segments <= MAX_SEGMENTS
    return "" if right else f"a stream has 1 to {MAX_SEGMENTS} segments, not {segments}"


def start_with_mark(
    reader: Reader, id: StreamId, config: StreamConfig, context: Context, request: str | None
) -> tuple[StreamCreationStarted, ...]:
    """The first records of a stream and its mark stream, as far as they are not there already.

    `request` is the one to be answered when the stream is there.
    """
    base = base_of(reader)
    wanted = ((id, config, request), (id.mark, _MARK_CONFIG, None))
    return tuple(
        StreamCreationStarted(
            *stream,
            creation_id=context.request or "",
            config=its_config,
            created_at=context.now,
            segments=initial_segments(its_config.scaling.min_segments, base, first_number(reader, stream)),
            request=its_request,
            at=context.now,
        )
        for stream, its_config, its_request in wanted
        if find_stream(reader, stream) is None
    )


def finish_with_mark(reader: Reader, id: StreamId) -> tuple[StreamCreated, ...]:
    """The last records of a stream and its mark stream, as far as they are being created."""
    streams = (find_stream(reader, stream) for stream in (id, id.mark))
    return tuple(StreamCreated(*s.id) for s in streams if s and s.state is StreamState.CREATING)


def delete_with_mark(reader: Reader, id: StreamId, creation_id: str = "") -> tuple[StreamDeleted, ...]:
    """The end of a stream and its mark stream, as far as they are there; with a creation id only those of it."""
    streams = (find_created(reader, stream, creation_id) for stream in (id, id.mark))
    return tuple(StreamDeleted(*s.id, next_number=s.next_number) for s in streams if s)


def finish_create(reader: Reader, id: StreamId) -> Decision:
    return Decision(finish_with_mark(reader, id), last_reply(reader.get(id.aggregate)))


def decide_update(reader: Reader, command: UpdateStream, context: Context) -> Decision:
    """Replace the configuration; only a change of the scaling policy concerns the segment stores."""
    stream = idle_stream(reader, command.stream_id)
    if stream is None:
        return refuse(Status.STREAM_NOT_FOUND)
    if stream.state is StreamState.SEALED:
        return refuse(Status.STREAM_SEALED)
    if command.expected not in (None, stream.config) or command.creation_id not in ("", stream.creation_id):
        return refuse(Status.CONFIG_CHANGED, "the stream has another configuration by now")
    if wrong := _wrong_with(command.config):
        return refuse(Status.FAILURE, wrong)
    unchanged = command.config.scaling == stream.config.scaling
    if unchanged and scale.plan_for_policy(stream, command.config, context.now) is None:
        done = StreamUpdated(*stream.id, config=command.config)
        return Decision((done,), Reply(Status.SUCCESS))
    started = StreamUpdateStarted(
        *stream.id,
        config=command.config,
        replacement=scale.plan_for_policy(stream, command.config, context.now),
        request=context.request,
        at=context.now,
    )
    return Decision((started,))


def decide_truncate(reader: Reader, command: TruncateStream, context: Context) -> Decision:
    """Move the head to a valid cut that is neither behind it nor beyond what is written; the same cut is done already.

    Raises BusyError, LengthsUnknownError.
    """
    stream = idle_stream(reader, command.stream_id)
    if stream is None:
        return refuse(Status.STREAM_NOT_FOUND)
    if stream.state is StreamState.SEALED:
        return refuse(Status.STREAM_SEALED)
    if command.policy is not None and (why := _outdated(stream, command, context)):
        return refuse(Status.FAILURE, why)
    try:
        if flaw := cuts.flaw(stream, command.cut):
            return refuse(Status.FAILURE, flaw)
        if stream.cut and not cuts.is_equal_or_after(stream, command.cut, stream.cut):
            return refuse(Status.FAILURE, "the cut lies behind the present head of the stream")
        if beyond := cuts.beyond_end(stream, command.cut, context.measured):
            return refuse(Status.FAILURE, beyond)
    except (InvalidArgumentError, NotFoundError) as error:
        return refuse(Status.FAILURE, str(error))
    passed = cuts.segments_between(stream, stream.cut, command.cut)
    started = StreamTruncationStarted(
        *stream.id,
        cut=command.cut,
        deleted=tuple(sorted(passed - command.cut.keys())),
        size_till=stream.cut_size + cuts.size_between(stream, stream.cut, command.cut, passed),
        request=context.request,
        at=context.now,
    )
    return Decision((started,))


def _outdated(stream: Stream, command: TruncateStream, context: Context) -> str:
    """Why what a policy has decided does not hold any more, "" if it does."""
    if command.policy != stream.config.retention:
        return "the stream has another retention policy by now, or none"
    if new := unknown(command.subscriptions, stream.subscriptions):
        return f"subscribed, or reported for the first time, since it was decided: {some(new)}"
    return overdue(command.at, context)


def decide_seal(reader: Reader, command: SealStream, context: Context) -> Decision:
    stream = idle_stream(reader, command.stream_id, command.creation_id)
    if stream is None:
        return refuse(Status.STREAM_NOT_FOUND)
    if stream.state is StreamState.SEALED:
        return Decision(reply=Reply(Status.SUCCESS))
    started = StreamSealStarted(*stream.id, request=context.request, at=context.now)
    return Decision((started,))


def decide_delete(reader: Reader, command: DeleteStream, context: Context) -> Decision:
    stream = idle_stream(reader, command.stream_id, command.creation_id)
    if stream is None:
        return nothing_to_delete(command.creation_id, refuse(Status.STREAM_NOT_FOUND))
    if stream.state is not StreamState.SEALED:
        return refuse(Status.STREAM_NOT_SEALED)
    started = StreamDeletionStarted(*stream.id, request=context.request, at=context.now)
    return Decision((started,))


def record_queued_behind_batch(reader: Reader, id: StreamId, kind: str, context: Context) -> Decision:
    """Say that a request of this kind waits for the batch of commits that is running."""
    stream = find_stream(reader, id)
    if stream is None or running(reader.get(id.commits)) is None:
        return Decision()
    return Decision((WorkflowQueued(*id, kind=kind, at=context.now),))


def record_queued_once(reader: Reader, id: StreamId, kind: str, context: Context) -> Decision:
    """Say once that a request of this kind waits for something outside, such as a segment store."""
    stream = find_stream(reader, id)
    if stream is None or stream.waiting is not None:
        return Decision()
    return Decision((WorkflowQueued(*id, kind=kind, at=context.now),))


def finish_update(reader: Reader, id: StreamId, sealed_sizes: dict[int, int]) -> Decision:
    return Decision((StreamUpdated(*id, sealed_sizes=sealed_sizes),), last_reply(reader.get(id.aggregate)))


def finish_truncate(reader: Reader, id: StreamId) -> Decision:
    return Decision((StreamTruncated(*id),), last_reply(reader.get(id.aggregate)))


def finish_seal(reader: Reader, id: StreamId) -> Decision:
    return Decision((StreamSealed(*id),), last_reply(reader.get(id.aggregate)))


def cancel(_reader: Reader, context: Context, state: Any) -> Decision | None:
    """End a cancelled creation by deleting what is there, a scale by forgetting it; None if not of a stream."""
    if not isinstance(state, Stream) or state.workflow is None:
        return None
    if state.workflow.kind is WorkflowKind.SCALE_STREAM:
        return Decision((StreamScaleCancelled(*state.id),))
    undone = StreamDeletionStarted(
        *state.id,
        request=state.workflow.request,
        at=context.now,
        refusal="cancelled",
    )
    return Decision((undone,))


def _admitting(decide: Decide) -> Decide:
    """The decision on a request that may have waited for the stream: whatever it is, nothing waits any more."""

    @wraps(decide)
    def decided(reader: Reader, command: Any, context: Context) -> Decision:
        decision = decide(reader, command, context)
        stream = find_stream(reader, command.stream_id)
        if stream is None or stream.waiting is None:
            return decision
        taken = WorkflowAdmitted(*stream.id)
        return msgspec.structs.replace(decision, events=(*decision.events, taken))

    return decided


def admitted_on_dead_letter(reader: Reader, command: Any) -> tuple[WorkflowAdmitted, ...]:
    """What belongs to the end of a command that could not be decided: if it was queued on its stream, it is no more."""
    stream = find_stream(reader, command.stream_id) if isinstance(command, StreamCommand) else None
    waiting = stream.waiting if stream is not None else None
    is_queued = waiting is not None and waiting.kind == type(command).__name__
    return (WorkflowAdmitted(*stream.id),) if stream is not None and is_queued else ()


DECIDE: dict[type, Decide] = {
    CreateStream: decide_create,
    UpdateStream: _admitting(decide_update),
    ScaleStream: _admitting(scale.decide_scale),
    TruncateStream: _admitting(decide_truncate),
    SealStream: _admitting(decide_seal),
    DeleteStream: _admitting(decide_delete),
}
