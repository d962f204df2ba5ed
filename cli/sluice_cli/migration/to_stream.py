"""A stream of the original as a stream of ours: every answer that clients got of it stays the same.

What was under way becomes our workflow and is carried out once more from its beginning, under the same names: what is
done already counts as done. A stream has one workflow at a time, and the original may have several requests; what is
not carried out is said in a remark. Pure functions. Rules: controller-metadata-store 6.1, 6.2 and 6.4.
"""

from collections.abc import Mapping
from itertools import pairwise

from sluice.domain.config import RetentionPolicy, RetentionType, ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.errors import InvalidArgumentError, NotFoundError
from sluice.domain.ids import StreamId
from sluice.domain.segment import Segment, epoch_of, number_of
from sluice.domain.stream import cuts
from sluice.domain.stream.events import Replacement
from sluice.domain.stream.history import Epoch, History
from sluice.domain.stream.scale import plan_for_policy
from sluice.domain.stream.state import Stream, StreamState, StreamWorkflow, Subscriber, WriterTime
from sluice.domain.workflow import WorkflowKind
from sluice_cli.migration import model, records
from sluice_cli.migration.tables import StreamMetadata

NEEDED = ("creation_ms", "configuration", "transition", "truncation", "committing", "current_epoch")
ENDS = (1.0, 0.9999999999999999)
"""Where the last key range of an epoch ends."""


class UnfitError(Exception):
    """A thing of the original is not as it says; `key` is the entry that shows it."""

    def __init__(self, of: object, key: str, reason: str) -> None:
        super().__init__(f"{of}: {key}: {reason}")
        self.of = f"{of}"
        self.key = key


def is_created(found: model.Stream) -> bool:
    """Whether its creation has ended: of no other was any client told that it exists."""
    state = found.metadata.state if found.metadata is not None else None
    return state is not None and state.state is not records.StreamState.CREATING


def next_number(found: model.Stream) -> int:
    """The number after the highest one that any segment of the stream has, or may have been given."""
    meta = found.metadata
    if meta is None:
        return 0
    ids = [s.id for epoch in meta.epochs.values() for s in epoch.segments]
    ids += [new.id for new in (meta.transition or records.NO_TRANSITION).created]
    return max(map(number_of, ids), default=-1) + 1


def stream_of(found: model.Stream, creation_id: str, groups: Mapping[str, str], now: int) -> tuple[Stream, list[str]]:
    """The stream, and remarks. `groups` are the ids of the reader groups by `scope/name`. Raises UnfitError.

    Its creation has ended. `now` in epoch ms.
    """
    id = StreamId(found.scope, found.name)
    meta = _whole(id, found.metadata)
    assert meta.configuration and meta.truncation and meta.current_epoch is not None and meta.creation_ms is not None
    history = _history(id, meta, meta.current_epoch)
    known = {segment: size for segment, size in meta.sealed_sizes.items() if segment in history.segments}
    history.record_sizes(known)
    stream = Stream(
        id=id,
        creation_id=creation_id,
        state=StreamState.ACTIVE,
        config=_config(meta.configuration),
        created_at=meta.creation_ms,
        history=history,
        next_number=max(map(number_of, history.segments)) + 1,
        active=meta.current_epoch,
        cut=dict(meta.truncation.cut),
        cut_size=meta.truncation.size_till,
        subscribers=_subscribers(meta, groups),
        writers={name: WriterTime(w.time_ms, dict(w.position), w.alive) for name, w in found.writers.items()},
    )
    _check_cut(stream)
    remarks = [
        f"{id}: the size of segment {s} is unknown and counts as 0"
        for s in sorted(cuts.segments_between(stream, stream.cut, {}) - set(stream.active_epoch.segments))
        if s not in known
    ]
    remarks += _go_on(stream, meta, now)
    history.condense(cuts.first_epoch(stream, stream.cut))
    return stream, remarks


def is_rolling(meta: StreamMetadata) -> bool:
    """Whether a batch has begun to put duplicates of its epoch behind the active one."""
    batch = meta.committing
    return batch is not None and batch.active_epoch != records.NO_EPOCH and batch.active_epoch == meta.current_epoch


def _whole(id: StreamId, meta: StreamMetadata | None) -> StreamMetadata:
    assert meta is not None
    for name in NEEDED:
        if getattr(meta, name) is None:
            raise UnfitError(id, name, "there is no such entry")
    return meta


def _history(id: StreamId, meta: StreamMetadata, current: int) -> History:
    before = _epoch(id, meta, 0)
    history = History([Epoch(0, 0, before.creation_ms, _ids(before))], {s.id: s for s in _segments(before)})
    for number in range(1, current + 1):
        record = _epoch(id, meta, number)
        had, has = set(_ids(before)), set(_ids(record))
        created = [s for s in _segments(record) if s.id not in had]
        _check_successors(id, meta, record, had, created)
        at = max(record.creation_ms, history.recent[-1].created_at + 1)
        history.add(Epoch(number, record.reference, at, _ids(record)), created, sorted(had - has))
        before = record
    beyond = sorted(number for number in meta.epochs if number > current)
    if beyond and beyond[-1] > current + (2 if is_rolling(meta) else 1):
        raise UnfitError(id, f"epochRecord-{beyond[-1]}", f"nothing explains it, the stream is in epoch {current}")
    return history


def _epoch(id: StreamId, meta: StreamMetadata, number: int) -> records.EpochRecord:
    """The record of an epoch, whose key ranges are whole."""
    key, record = f"epochRecord-{number}", meta.epochs.get(number)
    if record is None or record.epoch != number:
        raise UnfitError(id, key, f"there is none, or one of another epoch; the stream is in {meta.current_epoch}")
    ranges = sorted((s.low, s.high) for s in record.segments)
    if not ranges or ranges[0][0] != 0.0 or ranges[-1][1] not in ENDS:
        raise UnfitError(id, key, f"its key ranges do not reach from 0 to 1: {ranges[:1]} to {ranges[-1:]}")
    for one, other in pairwise(ranges):
        if one[1] != other[0]:
            raise UnfitError(id, key, f"the key ranges {one} and {other} are not adjacent")
    if any(s.creation_epoch > number for s in record.segments):
        raise UnfitError(id, key, "it has a segment of a later epoch")
    return record


def _check_successors(
    id: StreamId, meta: StreamMetadata, record: records.EpochRecord, had: set[int], created: list[Segment]
) -> None:
    """What came with an epoch is new, or is the same as in the epoch that it repeats."""
    key = f"epochRecord-{record.epoch}"
    if any(epoch_of(s.id) != record.epoch for s in created):
        raise UnfitError(id, key, "it has a segment that came before it and was not in the epoch before")
    if record.reference == record.epoch:
        if any(number_of(s.id) <= max(map(number_of, had)) for s in created):
            raise UnfitError(id, key, "a new segment has the number of an older one")
        return
    repeated = meta.epochs.get(record.reference)
    if record.reference > record.epoch or repeated is None:
        raise UnfitError(id, key, f"there is no epoch {record.reference} for it to repeat")
    if len(created) != len(record.segments) or _by_number(record) != _by_number(repeated):
        raise UnfitError(id, key, f"its segments are not those of epoch {record.reference}, which it repeats")


def _by_number(record: records.EpochRecord) -> dict[int, tuple[float, float]]:
    return {s.number: (s.low, s.high) for s in record.segments}


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


def _check_cut(stream: Stream) -> None:
    if not stream.cut:
        return
    try:
        flaw = cuts.flaw(stream, stream.cut)
    except (InvalidArgumentError, NotFoundError) as error:
        flaw = f"{error}"
    if flaw:
        raise UnfitError(stream.id, "truncation", flaw)


def _go_on(stream: Stream, meta: StreamMetadata, now: int) -> list[str]:
    """Begin what was under way; what of it is not carried out."""
    state, replacement = meta.state, _replacement(meta)
    assert state is not None and meta.configuration is not None and meta.truncation is not None
    if state.state is records.StreamState.UNKNOWN:
        raise UnfitError(stream.id, "state", "it is UNKNOWN")
    if state.state is records.StreamState.SEALED:
        stream.state = StreamState.SEALED
        return []
    wanted = {}
    if state.state is records.StreamState.SEALING:
        wanted["seal"] = StreamState.SEALING, StreamWorkflow(WorkflowKind.SEAL_STREAM, None, now)
    if state.state is records.StreamState.SCALING and replacement is not None:
        wanted["scale"] = _scale(replacement, now)
    if meta.truncation.updating:
        deletes = tuple(sorted(meta.truncation.to_delete))
        wanted["truncation"] = (
            StreamState.TRUNCATING,
            StreamWorkflow(WorkflowKind.TRUNCATE_STREAM, None, now, deletes=deletes),
        )
    if meta.configuration.updating:
        planned = replacement or plan_for_policy(stream, stream.config, now)
        wanted["update"] = (
            StreamState.UPDATING,
            StreamWorkflow(WorkflowKind.UPDATE_STREAM, None, now, replacement=planned),
        )
    elif replacement is not None:
        wanted.setdefault("scale", _scale(replacement, now))
    may = [] if is_rolling(meta) and "seal" not in wanted else list(wanted)[:1]
    for name in may:
        stream.state, stream.workflow = wanted[name]
    return [f"{stream.id}: a {name} was under way, too: repeat it" for name in wanted if name not in may]


def _scale(replacement: Replacement, now: int) -> tuple[StreamState, StreamWorkflow]:
    return StreamState.SCALING, StreamWorkflow(WorkflowKind.SCALE_STREAM, None, now, replacement=replacement)


def _replacement(meta: StreamMetadata) -> Replacement | None:
    """Of a scale that has yet to end; None if there is none, or one that was overtaken."""
    found = meta.transition
    if found is None or found.active_epoch != meta.current_epoch or not found.created:
        return None
    creates = tuple(Segment(new.id, new.ranges[0].low, new.ranges[0].high) for new in found.created)
    return Replacement(tuple(sorted(found.sealed)), tuple(sorted(creates, key=lambda s: s.id)), found.time_ms)
