"""A stream of the original as a stream of ours: every answer that clients got of it stays the same.

What was under way becomes our workflow and is carried out once more, under the same names: what is done already counts
as done, and successors that were named are so from the beginning. A stream has one workflow at a time, and the original
may have several requests; what is not carried out is said in a remark. Pure functions. Rules: controller-metadata-store
6.1, 6.2 and 6.4.
"""

from collections.abc import Iterable, Mapping

from sluice.domain.config import RetentionPolicy, RetentionType, ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.errors import InvalidArgumentError, NotFoundError
from sluice.domain.ids import StreamId
from sluice.domain.segment import Segment, number_of
from sluice.domain.stream import cuts
from sluice.domain.stream.events import Replacement
from sluice.domain.stream.history import Epoch, History
from sluice.domain.stream.scale import plan_for_policy
from sluice.domain.stream.state import Stream, StreamState, StreamWorkflow, Subscriber, WriterTime
from sluice.domain.workflow import WorkflowKind
from sluice_cli.migration import model, records
from sluice_cli.migration.tables import StreamMetadata

_BEGUN = {
    records.StreamState.SEALING: "seal",
    records.StreamState.SCALING: "scale",
    records.StreamState.UPDATING: "update",
}
"""What has begun in a state, and may have sealed segments already; what else is wanted is only requested."""


class UnfitError(Exception):
    """A thing of the original, as messages name it, is not as it says."""

    def __init__(self, of: str, what: str) -> None:
        super().__init__(f"{of}: {what}")
        self.of = of


def stream_of(found: model.Stream, creation_id: str, groups: Mapping[str, str], now: int) -> tuple[Stream, list[str]]:
    """The stream, and remarks. `groups` are the ids of the reader groups by `scope/name`.

    Its creation has ended, and `invariants.py` finds nothing that stops. `now` in epoch ms.
    """
    id, meta = StreamId(found.scope, found.name), found.metadata
    assert meta is not None and meta.configuration is not None and meta.truncation is not None
    assert meta.current_epoch is not None and meta.creation_ms is not None
    history = _history(meta.epochs, meta.current_epoch)
    stream = Stream(
        id=id,
        creation_id=creation_id,
        state=StreamState.ACTIVE,
        config=_config(meta.configuration),
        created_at=meta.creation_ms,
        history=history,
        next_number=1 + max(number_of(segment) for record in meta.epochs.values() for segment in _ids(record)),
        active=meta.current_epoch,
        cut=dict(meta.truncation.cut),
        cut_size=meta.truncation.size_till,
        subscribers=_subscribers(meta, groups),
        writers={name: WriterTime(w.time_ms, dict(w.position), w.alive) for name, w in found.writers.items()},
    )
    unfinished = _go_on(stream, meta, now)
    known = {segment: size for segment, size in meta.sealed_sizes.items() if segment in history.segments}
    history.record_sizes(known)
    remarks = [
        f"{id}: the size of segment {s} is unknown and counts as 0"
        for s in sorted(cuts.segments_between(stream, stream.cut, {}) - set(stream.active_epoch.segments))
        if s not in known
    ]
    history.condense(cuts.first_epoch(stream, stream.cut))
    return stream, remarks + unfinished


def is_rolling(meta: StreamMetadata) -> bool:
    """Whether a batch has begun to put duplicates of its epoch behind the active one."""
    batch = meta.committing
    return batch is not None and batch.active_epoch != records.NO_EPOCH and batch.active_epoch == meta.current_epoch


def _history(epochs: Mapping[int, records.EpochRecord], current: int) -> History:
    first = epochs[0]
    history = History([Epoch(0, 0, first.creation_ms, _ids(first))], {s.id: s for s in _segments(first)})
    _extend(history, epochs, range(1, current + 1))
    return history


def _extend(history: History, epochs: Mapping[int, records.EpochRecord], numbers: Iterable[int]) -> None:
    """Put these epochs behind those that are there."""
    for number in numbers:
        record = epochs[number]
        had, has = set(_ids(epochs[number - 1])), set(_ids(record))
        created = [s for s in _segments(record) if s.id not in had]
        at = max(record.creation_ms, history.recent[-1].created_at + 1)
        history.add(Epoch(number, record.reference, at, _ids(record)), created, sorted(had - has))


def _segments(record: records.EpochRecord) -> list[Segment]:
    return [Segment(s.id, s.low, s.high) for s in record.segments]


def _ids(record: records.EpochRecord) -> tuple[int, ...]:
    return tuple(sorted(s.id for s in record.segments))


def _config(found: records.StreamConfiguration) -> StreamConfig:
    policy, kept = found.scaling, found.retention
    scaling = ScalingPolicy()
    if policy is not None:
        kinds = {kind.code: kind for kind in ScaleType}
        scaling = ScalingPolicy(kinds[policy.kind], policy.target_rate, policy.scale_factor, policy.min_segments)
    retention = None
    if kept is not None:
        kind = RetentionType.TIME if kept.kind is records.RetentionKind.TIME else RetentionType.SIZE
        retention = RetentionPolicy(kind, kept.limit, kept.most)
    return StreamConfig(scaling, retention, found.tags, found.timestamp_aggregation_ms, found.rollover_bytes)


def _subscribers(meta: StreamMetadata, groups: Mapping[str, str]) -> dict[str, Subscriber]:
    """Those whose group there is."""
    names = meta.subscribers.names if meta.subscribers is not None else ()
    found = {name: meta.subscriber_records.get(name) for name in names if name in groups}
    return {
        name: Subscriber(groups[name], one.generation, one.updated_ms, dict(one.cut))
        for name, one in found.items()
        if one is not None
    }


def head_flaw(found: model.Stream) -> str:
    """Why no reading could have come to its head, "" if it could; `invariants.py` finds nothing else that stops."""
    meta = found.metadata
    if meta is None or meta.truncation is None or not meta.truncation.cut:
        return ""
    assert meta.current_epoch is not None
    id, history = StreamId(found.scope, found.name), _history(meta.epochs, meta.current_epoch)
    stream = Stream(id, "", StreamState.ACTIVE, StreamConfig(), 0, history, 0, active=meta.current_epoch)
    try:
        return cuts.flaw(stream, meta.truncation.cut)
    except (InvalidArgumentError, NotFoundError) as error:
        return f"{error}"


def _go_on(stream: Stream, meta: StreamMetadata, now: int) -> list[str]:
    """Begin what was under way; what of it is not carried out."""
    state, replacement = meta.state, _replacement(meta)
    assert state is not None and meta.configuration is not None and meta.truncation is not None
    if state.state is records.StreamState.SEALED:
        stream.state = StreamState.SEALED
        return []
    wanted: dict[str, tuple[StreamState, StreamWorkflow]] = {}
    if state.state is records.StreamState.SEALING:
        wanted["seal"] = StreamState.SEALING, StreamWorkflow(WorkflowKind.SEAL_STREAM, None, now)
    if meta.truncation.updating:
        deletes = tuple(sorted(meta.truncation.to_delete))
        wanted["truncation"] = (
            StreamState.TRUNCATING,
            StreamWorkflow(WorkflowKind.TRUNCATE_STREAM, None, now, deletes=deletes),
        )
    # What an update replaces is planned when it begins; before, the same record is of a scale.
    is_of_update = meta.configuration.updating and state.state is records.StreamState.UPDATING
    if meta.configuration.updating:
        planned = replacement if is_of_update and replacement else plan_for_policy(stream, stream.config, now)
        wanted["update"] = (
            StreamState.UPDATING,
            StreamWorkflow(WorkflowKind.UPDATE_STREAM, None, now, replacement=planned),
        )
    if replacement is not None and not is_of_update:
        workflow = StreamWorkflow(WorkflowKind.SCALE_STREAM, None, now, replacement=replacement)
        wanted["scale"] = StreamState.SCALING, workflow
    begun_first = sorted(wanted, key=lambda name: name != _BEGUN.get(state.state))
    may = [] if is_rolling(meta) and "seal" not in wanted else begun_first[:1]
    for name in may:
        stream.state, stream.workflow = wanted[name]
    _name_successors(stream, meta, replacement)
    # The head is where the truncation put it, so to repeat that would delete nothing.
    hints = {"truncation": "`sluice verify --repair` deletes its segments"}
    left = [f"a {name} was under way, too: {hints.get(name, 'repeat it')}" for name in wanted if name not in may]
    if is_overtaken(meta):
        left.append("a scale was overtaken by commits: repeat it")
    return [f"{stream.id}: {what}" for what in left]


def _name_successors(stream: Stream, meta: StreamMetadata, replacement: Replacement | None) -> None:
    """Put the epochs that the original has recorded behind the active one into the history.

    By then it may have sealed what they replace, and a writer that finds no successors takes the stream for sealed. All
    of a roll is merged by then; the times that its transactions were committed with are not recorded once more.
    """
    epochs, following = meta.epochs, stream.next_epoch
    is_replaced = replacement is not None and stream.workflow is not None and stream.workflow.replacement is replacement
    if is_rolling(meta):
        # The last that is recorded before the active segments are sealed is how much the duplicates hold.
        if following + 1 in epochs and set(_ids(epochs[following])) <= meta.sealed_sizes.keys():
            _extend(stream.history, epochs, (following, following + 1))
    elif is_replaced and following in epochs:
        _extend(stream.history, epochs, (following,))


def is_overtaken(meta: StreamMetadata) -> bool:
    """Whether another epoch has come in the place of that of a scale."""
    found = meta.transition
    if found is None or not found.created or found.active_epoch >= (meta.current_epoch or 0):
        return False
    came = {one.id for one in meta.epochs[found.active_epoch + 1].segments}
    return not {new.id for new in found.created} <= came


def _replacement(meta: StreamMetadata) -> Replacement | None:
    """Of a scale that has yet to end; None if there is none, or one that was overtaken."""
    found = meta.transition
    if found is None or found.active_epoch != meta.current_epoch or not found.created:
        return None
    creates = tuple(Segment(new.id, new.ranges[0].low, new.ranges[0].high) for new in found.created)
    return Replacement(tuple(sorted(found.sealed)), tuple(sorted(creates, key=lambda s: s.id)), found.time_ms)
