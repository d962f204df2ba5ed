"""How each event changes a stream. Nothing is decided here: events are facts."""

from collections.abc import Callable, Iterable
from typing import Any

from sluice.domain.segment import Segment, epoch_of, number_of, segment_id
from sluice.domain.stream import cuts
from sluice.domain.stream.events import (
    StreamCreated,
    StreamCreationStarted,
    StreamDeleted,
    StreamDeletionStarted,
    StreamEpochAdded,
    StreamEpochsRolled,
    StreamRolled,
    StreamScaleCancelled,
    StreamScaled,
    StreamScaleStarted,
    StreamSealed,
    StreamSealStarted,
    StreamTruncated,
    StreamTruncationStarted,
    StreamUpdated,
    StreamUpdateStarted,
    WorkflowAdmitted,
    WorkflowQueued,
)
from sluice.domain.stream.history import Epoch, History
from sluice.domain.stream.state import DeletedStream, Queued, Stream, StreamState, StreamWorkflow
from sluice.domain.workflow import WorkflowKind


def _creation_started(_state: Any, event: StreamCreationStarted) -> Stream:
    ids = tuple([s.id for s in event.segments])
    epoch = epoch_of(ids[0])
    return Stream(
        id=event.stream_id,
        creation_id=event.creation_id,
        state=StreamState.CREATING,
        config=event.config,
        created_at=event.created_at,
        history=History([Epoch(epoch, epoch, event.created_at, ids)], {s.id: s for s in event.segments}),
        next_number=_after(ids),
        active=epoch,
        workflow=StreamWorkflow(WorkflowKind.CREATE_STREAM, event.request, event.at),
    )


def _after(segments: Iterable[int]) -> int:
    """The number after the highest one of these segments."""
    return max(map(number_of, segments), default=-1) + 1


_ACTIVE = StreamState.ACTIVE
"""Most events end in it; a member of an enum is found in 0.1 microseconds, a name of the module in none."""


def _done(state: Stream, _event: Any) -> Stream:
    state.state = _ACTIVE
    state.workflow = None
    return state


def _update_started(state: Stream, event: StreamUpdateStarted) -> Stream:
    state.config = event.config
    state.state = StreamState.UPDATING
    state.workflow = StreamWorkflow(WorkflowKind.UPDATE_STREAM, event.request, event.at, replacement=event.replacement)
    return state


def _updated(state: Stream, event: StreamUpdated) -> Stream:
    # An update that is a single record never started, but may have waited all the same.
    state.waiting = None
    if event.config is not None:
        state.config = event.config
        return state
    return _move_to_newest_epoch(state, event.sealed_sizes)


def _scale_started(state: Stream, event: StreamScaleStarted) -> Stream:
    state.state = StreamState.SCALING
    state.cancelled_scale = None
    state.workflow = StreamWorkflow(WorkflowKind.SCALE_STREAM, None, event.at, replacement=event.replacement)
    return state


def _epoch_added(state: Stream, event: StreamEpochAdded) -> Stream:
    assert state.workflow is not None and state.workflow.replacement is not None
    replacement = state.workflow.replacement
    number = state.next_epoch
    gone = set(replacement.seals)
    survivors = tuple(s for s in state.active_epoch.segments if s not in gone)
    created = tuple(s.id for s in replacement.creates)
    epoch = Epoch(number, number, event.created_at, survivors + created)
    state.history.add(epoch, replacement.creates, replacement.seals)
    state.next_number = max(state.next_number, _after(created))
    return state


def _scale_cancelled(state: Stream, _event: StreamScaleCancelled) -> Stream:
    if state.workflow is not None and state.workflow.replacement is not None:
        creates = [s.id for s in state.workflow.replacement.creates]
        state.spare = tuple(sorted({*state.spare, *creates}))
        state.next_number = max(state.next_number, _after(creates))
    state.cancelled_scale = state.active_epoch.number
    return _done(state, _event)


def _scaled(state: Stream, event: StreamScaled) -> Stream:
    return _move_to_newest_epoch(state, event.sealed_sizes)


def _move_to_newest_epoch(state: Stream, sealed_sizes: dict[int, int]) -> Stream:
    if sealed_sizes:
        state.history.record_sizes(sealed_sizes)
    state.active = state.history.count - 1
    state.state = _ACTIVE
    state.workflow = None
    return state


def _truncation_started(state: Stream, event: StreamTruncationStarted) -> Stream:
    state.cut = event.cut
    state.cut_size = event.size_till
    state.history.condense(cuts.first_epoch(state, state.cut))
    state.state = StreamState.TRUNCATING
    state.workflow = StreamWorkflow(WorkflowKind.TRUNCATE_STREAM, event.request, event.at, deletes=event.deleted)
    return state


def _seal_started(state: Stream, event: StreamSealStarted) -> Stream:
    state.state = StreamState.SEALING
    state.workflow = StreamWorkflow(WorkflowKind.SEAL_STREAM, event.request, event.at)
    return state


def _sealed(state: Stream, _event: StreamSealed) -> Stream:
    state.state = StreamState.SEALED
    state.workflow = None
    return state


def _deletion_started(state: Stream, event: StreamDeletionStarted) -> Stream:
    state.workflow = StreamWorkflow(WorkflowKind.DELETE_STREAM, event.request, event.at, refusal=event.refusal)
    return state


def _deleted(_state: Stream, event: StreamDeleted) -> DeletedStream:
    return DeletedStream(event.next_number)


def _waiting(state: Stream, event: WorkflowQueued) -> Stream:
    state.waiting = Queued(event.kind, event.at)
    return state


def _workflow_admitted(state: Stream, _event: WorkflowAdmitted) -> Stream:
    state.waiting = None
    return state


def _epochs_rolled(state: Stream, event: StreamEpochsRolled) -> Stream:
    history, active, number = state.history, state.active_epoch, state.next_epoch
    before = active
    for of, at in ((history.epoch(event.duplicates), event.created_at), (active, event.created_at + 1)):
        segments = [history.segment(s) for s in of.segments]
        copies = [Segment(segment_id(number, number_of(s.id)), s.low, s.high) for s in segments]
        epoch = Epoch(number, of.reference, at, tuple(s.id for s in copies))
        history.add(epoch, copies, before.segments)
        before, number = epoch, number + 1
    history.record_sizes(event.sealed_sizes)
    return state


def _rolled(state: Stream, event: StreamRolled) -> Stream:
    state.history.record_sizes(event.sealed_sizes)
    state.active = state.history.count - 1
    return state


EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    StreamCreationStarted: _creation_started,
    StreamCreated: _done,
    StreamUpdateStarted: _update_started,
    StreamUpdated: _updated,
    StreamScaleStarted: _scale_started,
    StreamEpochAdded: _epoch_added,
    StreamScaleCancelled: _scale_cancelled,
    StreamScaled: _scaled,
    StreamTruncationStarted: _truncation_started,
    StreamTruncated: _done,
    WorkflowQueued: _waiting,
    WorkflowAdmitted: _workflow_admitted,
    StreamEpochsRolled: _epochs_rolled,
    StreamRolled: _rolled,
    StreamSealStarted: _seal_started,
    StreamSealed: _sealed,
    StreamDeletionStarted: _deletion_started,
    StreamDeleted: _deleted,
}
