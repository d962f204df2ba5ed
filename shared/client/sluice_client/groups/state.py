"""The state of a reader group and how updates change it: exactly as in the Java client, or the copies would differ.

An update that needs a certain state raises RuleBroken on any other. Such an update is only ever appended on condition
that the state is still the one it was decided on; the others may be appended at any time. Rules: reader-groups 3.
Pure functions; states are values.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from sluice.domain.segment import parse_segment_name
from sluice.pravega.reader_group_state import (
    SILENT,
    AcquireSegment,
    AddReader,
    CheckpointReader,
    Checkpoints,
    ClearCheckpointsBefore,
    CreateCheckpoint,
    GroupState,
    ReleaseSegment,
    RemoveOutstandingCheckpoints,
    RemoveReader,
    SegmentCompleted,
    Update,
    UpdateCheckpointPublished,
    UpdateDistanceToTail,
    UpdatingConfig,
)
from sluice.pravega.stream_cut import Offsets

_V = TypeVar("_V")

NOT_KNOWN_MS = 2**63 - 1
"""The distance of a reader that has not said yet how far it is behind."""
SHORTEST_DISTANCE_MS = 30_000
COMPLETED = -1
"""The offset of a segment that was read to its end."""


class RuleBroken(Exception):
    """The update needs another state of the reader group."""


def apply(state: GroupState, update: Update) -> GroupState:
    """The state after an update. Raises RuleBroken."""
    match update:
        case GroupState():
            return update
        case AddReader(reader):
            _check(reader not in state.assigned, f"{reader} is in the group already")
            distance = {reader: NOT_KNOWN_MS, **state.distance}
            return replace(state, assigned={**state.assigned, reader: {}}, distance=distance)
        case RemoveReader(reader, positions):
            return _removed(state, reader, positions)
        case AcquireSegment(reader, segment):
            _check_online(state, reader)
            _check(segment in state.unassigned, f"{segment} is not free")
            held = {**state.assigned[reader], segment: state.unassigned[segment]}
            return replace(_with_held(state, reader, held), unassigned=_without(state.unassigned, [segment]))
        case ReleaseSegment(reader, segment, offset):
            _check_held(state, reader, segment)
            released = _with_held(state, reader, _without(state.assigned[reader], [segment]))
            return replace(
                released,
                unassigned={**state.unassigned, segment: offset},
                last_read=_moved(state.last_read, {segment: offset}),
            )
        case UpdateDistanceToTail(reader, distance_ms, positions, ranges):
            return replace(
                state,
                distance={**state.distance, reader: max(SHORTEST_DISTANCE_MS, distance_ms)},
                last_read=_moved(state.last_read, positions),
                ranges=state.ranges | ranges,
            )
        case SegmentCompleted():
            return _completed(state, update)
        case CheckpointReader(checkpoint, reader, positions):
            return _checkpointed(state, checkpoint, reader, positions)
        case UpdatingConfig(updating):
            return replace(state, updating=updating)
    return replace(state, checkpoints=_administered(state, update))


def apply_all(state: GroupState, updates: Iterable[Update]) -> GroupState:
    """The state after updates. Raises RuleBroken."""
    for update in updates:
        state = apply(state, update)
    return state


def _administered(state: GroupState, update: Update) -> Checkpoints:
    checkpoints = state.checkpoints
    match update:
        case CreateCheckpoint(id):
            if id in checkpoints.positions:
                return checkpoints
            readers = set(state.assigned)
            return replace(
                checkpoints,
                ids=(*checkpoints.ids, id),
                waiting={**checkpoints.waiting, id: readers} if readers else checkpoints.waiting,
                positions={**checkpoints.positions, id: state.unassigned},
            )
        case ClearCheckpointsBefore(id):
            if id not in checkpoints.positions or id not in checkpoints.ids:
                return checkpoints
            at = checkpoints.ids.index(id)
            return _forgotten(replace(checkpoints, ids=checkpoints.ids[at:]), checkpoints.ids[:at])
        case RemoveOutstandingCheckpoints():
            # Java keeps their names in the list, so here they stay, too.
            return _forgotten(checkpoints, [id for id in checkpoints.waiting if not is_silent(id)])
        case UpdateCheckpointPublished(published):
            return replace(checkpoints, published=published)
    raise AssertionError(f"an update of no known kind: {update}")


def _forgotten(checkpoints: Checkpoints, ids: Iterable[str]) -> Checkpoints:
    gone = list(ids)
    return replace(
        checkpoints, waiting=_without(checkpoints.waiting, gone), positions=_without(checkpoints.positions, gone)
    )


def _removed(state: GroupState, reader: str, positions: Offsets) -> GroupState:
    """What the reader held goes back, and no checkpoint waits for it any more."""
    left = _moved(state.assigned.get(reader, {}), positions)
    checkpoints = state.checkpoints
    for id, readers in state.checkpoints.waiting.items():
        if reader in readers:
            checkpoints = _ticked(checkpoints, id, reader, left)
    return replace(
        state,
        assigned=_without(state.assigned, [reader]),
        unassigned=state.unassigned | left,
        distance=_without(state.distance, [reader]),
        checkpoints=checkpoints,
    )


def _completed(state: GroupState, update: SegmentCompleted) -> GroupState:
    _check_held(state, update.reader, update.segment)
    id = parse_segment_name(update.segment)[2]
    # Java looks at ids only, in groups of several streams, too.
    waits = {segment: before - {id} for segment, before in (update.successors | state.future).items()}
    free = [segment for segment, before in waits.items() if not before]
    held = _without(state.assigned[update.reader], [update.segment])
    return replace(
        _with_held(state, update.reader, held),
        future=_without(waits, free),
        unassigned=state.unassigned | dict.fromkeys(free, 0),
        last_read=dict.fromkeys(free, 0) | _without(state.last_read, [update.segment]),
        ranges=state.ranges | update.ranges,
    )


def _checkpointed(state: GroupState, id: str, reader: str, positions: Offsets) -> GroupState:
    checkpoints = state.checkpoints
    if id in checkpoints.waiting:
        _check(reader in checkpoints.waiting[id], f"{reader} has done the checkpoint {id} already")
        checkpoints = _ticked(checkpoints, id, reader, positions)
    if is_silent(id):
        return replace(state, checkpoints=checkpoints)
    _check_online(state, reader)
    return replace(_with_held(state, reader, _moved(state.assigned[reader], positions)), checkpoints=checkpoints)


def _ticked(checkpoints: Checkpoints, id: str, reader: str, positions: Offsets) -> Checkpoints:
    """The checkpoint waits for this reader no more; with the last one it is complete."""
    waited = checkpoints.waiting[id] - {reader}
    all_positions = {**checkpoints.positions.get(id, {}), **positions}
    ticked = replace(checkpoints, positions={**checkpoints.positions, id: all_positions})
    if waited:
        return replace(ticked, waiting={**checkpoints.waiting, id: waited})
    complete = replace(ticked, waiting=_without(checkpoints.waiting, [id]))
    return complete if is_silent(id) else replace(complete, last=all_positions, published=False)


def is_silent(checkpoint: str) -> bool:
    """Whether readers make a checkpoint of this name without telling their users."""
    return SILENT in checkpoint


def is_complete(state: GroupState, checkpoint: str) -> bool:
    """Whether no reader is waited for."""
    return checkpoint not in state.checkpoints.waiting


def outstanding(state: GroupState) -> list[str]:
    """The checkpoints that wait for readers, without the silent ones, in the order of their creation."""
    return [id for id in state.checkpoints.ids if id in state.checkpoints.waiting and not is_silent(id)]


def pending(state: GroupState, reader: str) -> str | None:
    """The checkpoint that waits for a reader next."""
    return next((id for id, readers in state.checkpoints.waiting.items() if reader in readers), None)


def stored_positions(state: GroupState) -> Offsets:
    """How far the group is in all segments that are read or wait for a reader, as of checkpoints and releases."""
    found = dict(state.unassigned)
    for held in state.assigned.values():
        found |= held
    return found


def at_end_of_data(state: GroupState) -> bool:
    """Whether nothing is left to be read, and nothing will follow."""
    return not stored_positions(state) and not state.future


def _with_held(state: GroupState, reader: str, held: Offsets) -> GroupState:
    return replace(state, assigned={**state.assigned, reader: held})


def _moved(offsets: Offsets, by: Mapping[str, int]) -> Offsets:
    """The same segments, at new offsets where there are some."""
    return {segment: by.get(segment, at) for segment, at in offsets.items()}


def _without(found: Mapping[str, _V], names: Iterable[str]) -> dict[str, _V]:
    gone = set(names)
    return {name: value for name, value in found.items() if name not in gone}


def _check_online(state: GroupState, reader: str) -> None:
    _check(reader in state.assigned, f"{reader} is not in the group")


def _check_held(state: GroupState, reader: str, segment: str) -> None:
    _check_online(state, reader)
    _check(segment in state.assigned[reader], f"{reader} does not hold {segment}")


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise RuleBroken(otherwise)
