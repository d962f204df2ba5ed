"""What the readers of a reader group write into its state stream, as the Java client's readers do, both ways.

An entry is a whole state, which replaces what was, or a list of updates, among which whole states may be, too. Java
writes a whole state in two forms, one at the group's creation; here all are written in the other one, which has
everything. Rules: admin-rest-api 10, reader-groups 1.2 and 2. Pure functions.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from sluice.pravega.envelope import (
    MalformedPayload,
    PayloadReader,
    byte_array,
    collection,
    double,
    envelope,
    int32,
    int64,
    text,
    typed_envelope,
)
from sluice.pravega.reader_group_config import GroupConfig
from sluice.pravega.stream_cut import Offsets
from sluice.pravega.synchronizer_records import state_in, updates_in

WHOLE_STATE, UPDATES = int32(1), int32(2)
"""How an entry begins."""
SILENT = "_SILENT_"
"""In the name of a checkpoint that readers make without telling their users: it moves no offset."""

Range = tuple[float, float]
"""The keys of a segment. States carry it along for readers that make time windows of it."""
Ranges = dict[str, Range]
UNKNOWN_RANGE = (-1.0, -1.0)

Predecessors = dict[str, set[int]]
"""Segments, each with the ids of those that have to be completed before it."""


class Checkpoints(msgspec.Struct, frozen=True):
    """`ids` in the order of creation; `waiting` has the readers that each still waits for; `last` is the last complete.

    `published`: the controller knows `last`, or need not.
    """

    ids: tuple[str, ...] = ()
    waiting: dict[str, set[str]] = {}
    positions: dict[str, Offsets] = {}
    last: Offsets = {}
    published: bool = True


class GroupState(msgspec.Struct, frozen=True):
    """`assigned` are the segments of each reader, `unassigned` those that wait for one, `future` what others wait for.

    All are to be treated as values: who changes one makes a new one. `last_read` are offsets that readers have
    reported besides; `distance` is how far a reader says it is behind; `end` is where reading of a segment ends.
    `updating`: the configuration is being changed.
    """

    config: GroupConfig
    unassigned: Offsets = {}
    end: Offsets = {}
    assigned: dict[str, Offsets] = {}
    future: Predecessors = {}
    last_read: Offsets = {}
    distance: dict[str, int] = {}
    checkpoints: Checkpoints = Checkpoints()
    updating: bool = False
    ranges: Ranges = {}


class AddReader(msgspec.Struct, frozen=True):
    reader: str


class RemoveReader(msgspec.Struct, frozen=True):
    """`positions` are those at which others go on; in other segments they go on where this reader began."""

    reader: str
    positions: Offsets


class ReleaseSegment(msgspec.Struct, frozen=True):
    reader: str
    segment: str
    offset: int


class AcquireSegment(msgspec.Struct, frozen=True):
    reader: str
    segment: str


class UpdateDistanceToTail(msgspec.Struct, frozen=True):
    """How far a reader says it is behind, and where it is. It moves no offset."""

    reader: str
    distance_ms: int
    positions: Offsets
    ranges: Ranges = {}


class SegmentCompleted(msgspec.Struct, frozen=True):
    """`successors` with the ids of the segments that each follows."""

    reader: str
    segment: str
    successors: Predecessors
    ranges: Ranges = {}


class CheckpointReader(msgspec.Struct, frozen=True):
    """How far a reader is by a checkpoint of this name."""

    checkpoint: str
    reader: str
    positions: Offsets


class CreateCheckpoint(msgspec.Struct, frozen=True):
    checkpoint: str


class ClearCheckpointsBefore(msgspec.Struct, frozen=True):
    checkpoint: str


class UpdateCheckpointPublished(msgspec.Struct, frozen=True):
    published: bool


class UpdatingConfig(msgspec.Struct, frozen=True):
    updating: bool


class RemoveOutstandingCheckpoints(msgspec.Struct, frozen=True):
    pass


Update = (
    GroupState
    | AddReader
    | RemoveReader
    | ReleaseSegment
    | AcquireSegment
    | UpdateDistanceToTail
    | SegmentCompleted
    | CheckpointReader
    | CreateCheckpoint
    | ClearCheckpointsBefore
    | UpdateCheckpointPublished
    | UpdatingConfig
    | RemoveOutstandingCheckpoints
)


def decode_entry(payload: bytes) -> list[Update]:
    """The updates of an entry. Raises MalformedPayload."""
    state = state_in(payload)
    return [decode_state(state)] if state is not None else [decode_update(update) for update in updates_in(payload)]


def decode_state(raw: bytes) -> GroupState:
    """A whole state. Raises MalformedPayload."""
    state = decode_update(raw)
    if not isinstance(state, GroupState):
        raise MalformedPayload("an initial entry without an initial state")
    return state


def decode_update(raw: bytes) -> Update:
    """One update; what stands behind it is left out, for Java writes all of its buffer. Raises MalformedPayload."""
    type, revisions = PayloadReader(raw).typed_envelope()
    read = _READ.get(type)
    if read is None:
        raise MalformedPayload(f"an update of the type {type}")
    return read(revisions)


def encode_update(update: Update) -> bytes:
    """The bytes of one update."""
    match update:
        case GroupState():
            return typed_envelope(1, *_state(update))
        case AddReader(reader):
            return typed_envelope(2, text(reader))
        case RemoveReader(reader, positions):
            return typed_envelope(3, text(reader) + _offsets(positions))
        case ReleaseSegment(reader, segment, offset):
            return typed_envelope(4, text(reader) + text(segment) + int64(offset))
        case AcquireSegment(reader, segment):
            return typed_envelope(5, text(reader) + text(segment))
        case UpdateDistanceToTail(reader, distance_ms, positions, ranges):
            ranged = collection(text(name) + _range(ranges, name) + int64(at) for name, at in positions.items())
            return typed_envelope(6, text(reader) + int64(distance_ms), ranged)
        case SegmentCompleted(reader, segment, successors, ranges):
            first = text(reader) + text(segment) + _predecessors(successors)
            return typed_envelope(7, first, ranges_encoded(ranges, (segment, *successors)))
        case CheckpointReader(checkpoint, reader, positions):
            return typed_envelope(8, text(checkpoint) + text(reader) + _offsets(positions))
    return _encode_common(update)


def _encode_common(update: Update) -> bytes:
    """Those that are about no reader."""
    match update:
        case CreateCheckpoint(checkpoint):
            return typed_envelope(9, text(checkpoint))
        case ClearCheckpointsBefore(checkpoint):
            return typed_envelope(10, text(checkpoint))
        case UpdateCheckpointPublished(published):
            return typed_envelope(11, _boolean(published))
        case UpdatingConfig(updating):
            return typed_envelope(12, _boolean(updating))
        case RemoveOutstandingCheckpoints():
            return typed_envelope(13, b"")
    raise AssertionError(f"an update of no known kind: {update}")


def _state(state: GroupState) -> tuple[bytes, bytes, bytes]:
    held = [segment for segments in state.assigned.values() for segment in segments]
    all_segments = [*state.future, *held, *state.unassigned, *state.last_read]
    first = (
        byte_array(state.config.encoded())
        + byte_array(_checkpoints(state.checkpoints))
        + collection(text(reader) + int64(distance) for reader, distance in state.distance.items())
        + _predecessors(state.future)
        + collection(text(reader) + _offsets(segments) for reader, segments in state.assigned.items())
        + _offsets(state.unassigned)
        + _offsets(state.end)
    )
    return first, _offsets(state.last_read) + ranges_encoded(state.ranges, all_segments), _boolean(state.updating)


def _checkpoints(state: Checkpoints) -> bytes:
    first = (
        collection(map(text, state.ids))
        + collection(text(id) + collection(map(text, sorted(readers))) for id, readers in state.waiting.items())
        + collection(text(id) + _offsets(positions) for id, positions in state.positions.items())
        + _offsets(state.last)
    )
    return envelope(first, _boolean(state.published))


def _offsets(offsets: Offsets) -> bytes:
    return collection(text(name) + int64(at) for name, at in offsets.items())


def _predecessors(successors: Predecessors) -> bytes:
    return collection(text(name) + collection(map(int64, sorted(ids))) for name, ids in successors.items())


def _range(ranges: Mapping[str, Range], name: str) -> bytes:
    low, high = ranges.get(name, UNKNOWN_RANGE)
    return double(low) + double(high)


def ranges_encoded(ranges: Mapping[str, Range], names: Iterable[str]) -> bytes:
    """The keys of these segments, as far as they are known."""
    return collection(text(name) + _range(ranges, name) for name in dict.fromkeys(names))


def _boolean(value: bool) -> bytes:
    return bytes((value,))


_Revisions = list[PayloadReader]


def _read_first_state(revisions: _Revisions) -> GroupState:
    first = revisions[0]
    config, starts, end = GroupConfig.decoded(first.byte_array()), _read_offsets(first), _read_offsets(first)
    ranges: Ranges = {}
    if len(revisions) > 1:
        starts, ranges = _read_ranged(revisions[1])
    if not starts:
        raise MalformedPayload("an initial state without segments")
    return GroupState(config, starts, end, last_read=starts, ranges=ranges, updating=_read_flag(revisions))


def _read_state(revisions: _Revisions) -> GroupState:
    first = revisions[0]
    config, checkpoints = GroupConfig.decoded(first.byte_array()), _read_checkpoints(first.byte_array())
    distance = first.mapping(PayloadReader.text, PayloadReader.int64)
    future, assigned = _read_predecessors(first), first.mapping(PayloadReader.text, _read_offsets)
    unassigned, end = _read_offsets(first), _read_offsets(first)
    last_read, ranges = (_read_offsets(revisions[1]), read_ranges(revisions[1])) if len(revisions) > 1 else ({}, {})
    return GroupState(
        config, unassigned, end, assigned, future, last_read, distance, checkpoints, _read_flag(revisions), ranges
    )


def _read_flag(revisions: _Revisions) -> bool:
    return len(revisions) > 2 and revisions[2].boolean()


def _read_checkpoints(raw: bytes) -> Checkpoints:
    revisions = PayloadReader(raw).envelope()
    first = revisions[0]
    return Checkpoints(
        tuple(first.collection(PayloadReader.text)),
        first.mapping(PayloadReader.text, lambda data: set(data.collection(PayloadReader.text))),
        first.mapping(PayloadReader.text, _read_offsets),
        _read_offsets(first),
        revisions[1].boolean() if len(revisions) > 1 else True,
    )


def _read_distance(revisions: _Revisions) -> UpdateDistanceToTail:
    reader, distance = revisions[0].text(), revisions[0].int64()
    positions, ranges = _read_ranged(revisions[1]) if len(revisions) > 1 else ({}, {})
    return UpdateDistanceToTail(reader, distance, positions, ranges)


def _read_completed(revisions: _Revisions) -> SegmentCompleted:
    first = revisions[0]
    reader, segment, successors = first.text(), first.text(), _read_predecessors(first)
    return SegmentCompleted(reader, segment, successors, read_ranges(revisions[1]) if len(revisions) > 1 else {})


def _read_offsets(data: PayloadReader) -> Offsets:
    return data.mapping(PayloadReader.text, PayloadReader.int64)


def _read_predecessors(data: PayloadReader) -> Predecessors:
    return data.mapping(PayloadReader.text, lambda d: set(d.collection(PayloadReader.int64)))


def _read_range(data: PayloadReader) -> Range:
    return data.double(), data.double()


def read_ranges(data: PayloadReader) -> Ranges:
    """Those that are known."""
    return _known(data.mapping(PayloadReader.text, _read_range))


def _read_ranged(data: PayloadReader) -> tuple[Offsets, Ranges]:
    found = data.collection(lambda d: (d.text(), _read_range(d), d.int64()))
    return {name: at for name, _, at in found}, _known({name: keys for name, keys, _ in found})


def _known(ranges: Ranges) -> Ranges:
    return {name: keys for name, keys in ranges.items() if keys[0] >= 0.0 and keys[1] >= 0.0}


_READ: dict[int, Callable[[_Revisions], Update]] = {
    0: _read_first_state,
    1: _read_state,
    2: lambda r: AddReader(r[0].text()),
    3: lambda r: RemoveReader(r[0].text(), _read_offsets(r[0])),
    4: lambda r: ReleaseSegment(r[0].text(), r[0].text(), r[0].int64()),
    5: lambda r: AcquireSegment(r[0].text(), r[0].text()),
    6: _read_distance,
    7: _read_completed,
    8: lambda r: CheckpointReader(r[0].text(), r[0].text(), _read_offsets(r[0])),
    9: lambda r: CreateCheckpoint(r[0].text()),
    10: lambda r: ClearCheckpointsBefore(r[0].text()),
    11: lambda r: UpdateCheckpointPublished(r[0].boolean()),
    12: lambda r: UpdatingConfig(r[0].boolean()),
    13: lambda _: RemoveOutstandingCheckpoints(),
}
