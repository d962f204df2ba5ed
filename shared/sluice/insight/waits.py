"""What the work on an aggregate waits for, as far as the states show: for operators, it decides nothing.

What stands in the way is other work, with an aggregate of its own that may wait in turn; or a segment store, of which
states know the segments only. Pure functions.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from sluice.domain.decision import Reader
from sluice.domain.ids import GroupId, StreamId
from sluice.domain.names import key_of, scope_aggregate
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.scope.state import Scope
from sluice.domain.segment import kvt_segment_name, segment_name
from sluice.domain.stream.state import Stream, StreamState, StreamWorkflow
from sluice.domain.table.state import Table
from sluice.domain.transaction.batch import Commits
from sluice.domain.transaction.index import transactions_of
from sluice.domain.transaction.state import Transaction
from sluice.domain.transaction_ids import epoch_of
from sluice.domain.workflow import WorkflowKind, running


class WaitsFor(msgspec.Struct, frozen=True):
    """The work of this kind on an aggregate has to end first; `why` in words. Without `kind` none is under way."""

    aggregate: str
    kind: str
    why: str


_QUEUED_KINDS = {
    "UpdateStream": WorkflowKind.UPDATE_STREAM,
    "ScaleStream": WorkflowKind.SCALE_STREAM,
    "TruncateStream": WorkflowKind.TRUNCATE_STREAM,
    "SealStream": WorkflowKind.SEAL_STREAM,
    "DeleteStream": WorkflowKind.DELETE_STREAM,
}


def queued_kind(command: str) -> str:
    """The kind of the workflow that a queued command of this name begins; the name itself if it is another one."""
    kind = _QUEUED_KINDS.get(command)
    return kind.value if kind is not None else command


def waits_for(view: Reader, state: Any, busy: Iterable[str]) -> WaitsFor | None:
    """The other work that the work on this aggregate waits for; None if there is none that the states show.

    `view` is that of the aggregate's partition; `busy` are aggregates under way of the scope, of all partitions.
    """
    workflow = running(state)
    match state:
        case Stream() if workflow is None:
            return _batch(view, state.id)
        case Stream() if state.state is StreamState.SEALING:
            return _batch(view, state.id) or _transactions(view, state.id)
        case ReaderGroup() if workflow is not None:
            return _first(_on_stream(view, StreamId.of(name)) for name in _streams(state))
        case Scope() if workflow is not None:
            return _first(_on(view, aggregate) for aggregate in busy if aggregate != scope_aggregate(state.name))
    return None


def _first(found: Iterable[WaitsFor | None]) -> WaitsFor | None:
    return next((one for one in found if one is not None), None)


def _on(view: Reader, aggregate: str) -> WaitsFor | None:
    workflow = running(view.elsewhere(key_of(aggregate)).get(aggregate))
    if workflow is None:
        return None
    return WaitsFor(aggregate, workflow.kind.value, f"{workflow.kind.value} of {aggregate} has to end first")


def _batch(view: Reader, stream: StreamId) -> WaitsFor | None:
    return _on(view, stream.commits)


def _on_stream(view: Reader, stream: StreamId) -> WaitsFor | None:
    return _on(view, stream.aggregate) or _on(view, stream.commits)


def _streams(group: ReaderGroup) -> Iterator[str]:
    yield from sorted({*group.config.starts, *(group.workflow.leaves if group.workflow is not None else ())})


def _transactions(view: Reader, stream: StreamId) -> WaitsFor | None:
    index = transactions_of(view, stream)
    for ids, doing in ((index.aborting, "being aborted"), (index.committing, "waiting"), (index.open, "open")):
        if ids:
            first = stream.transaction(next(iter(ids)))
            workflow = running(view.get(first.aggregate))
            kind = workflow.kind.value if workflow is not None else ""
            count = f"{len(ids)} transaction{'s' * (len(ids) != 1)}"
            return WaitsFor(first.aggregate, kind, f"{count} {doing}, {first.transaction} first")
    return None


def segments_at_work(view: Reader, state: Any) -> Iterator[str]:
    """The names of the segments that the work on an aggregate concerns, for the containers they belong to."""
    match state:
        case Stream():
            yield from (segment_name(*state.id, segment) for segment in _segments(state))
        case Commits():
            found = view.get(state.stream.aggregate)
            if isinstance(found, Stream):
                yield from (segment_name(*found.id, segment) for segment in found.active_epoch.segments)
        case Transaction():
            found = view.get(state.id.stream_id.aggregate)
            epoch = epoch_of(state.uuid)
            if isinstance(found, Stream) and found.history.has(epoch):
                # A transaction's segments are in the containers of those that they are for.
                yield from (segment_name(*found.id, segment) for segment in found.history.epoch(epoch).segments)
        case Table():
            yield from (kvt_segment_name(*state.id, segment.id) for segment in state.segments)
        case ReaderGroup():
            found = view.get(GroupId(*state.id).state_stream.aggregate)
            if isinstance(found, Stream):
                yield from (segment_name(*found.id, segment) for segment in found.active_epoch.segments)


def _segments(stream: Stream) -> Iterator[int]:
    workflow = stream.workflow
    if isinstance(workflow, StreamWorkflow) and workflow.kind is WorkflowKind.TRUNCATE_STREAM:
        yield from (*workflow.deletes, *stream.cut)
    elif isinstance(workflow, StreamWorkflow) and workflow.replacement is not None:
        yield from (*(s.id for s in workflow.replacement.creates), *workflow.replacement.seals)
    else:
        yield from stream.active_epoch.segments
