"""The entries in the state stream of a reader group, as its readers write them.

An entry is an initial record, which replaces the whole state, or a list of updates, among which initial records may be,
too. Here is what says which readers there are, what they read and how far, and which group they take themselves for.
Rules: admin-rest-api 10, reader-groups 1.2 and 2. Pure functions.
"""

from uuid import UUID

import msgspec

from sluice.pravega.envelope import MalformedPayload, PayloadReader

_INITIAL_ENTRY, _UPDATES_ENTRY = 1, 2


Offsets = dict[str, int]
"""Segments with the offset of the next event in each; -1: read to its end."""


class InitialState(msgspec.Struct, frozen=True):
    """`assigned` are the segments of each reader, `unassigned` those that wait for one, `future` what others wait for.

    `last_read` are offsets that readers have reported besides. `id` and `generation` are those of the configuration;
    all-zero and -1 if an old client wrote it.
    """

    id: str
    generation: int
    assigned: dict[str, Offsets]
    unassigned: Offsets
    future: dict[str, set[int]]
    last_read: Offsets = {}


class AddReader(msgspec.Struct, frozen=True):
    reader: str


class RemoveReader(msgspec.Struct, frozen=True):
    """`positions` are those at which others go on; of other segments it is where they were acquired."""

    reader: str
    positions: Offsets


class ReleaseSegment(msgspec.Struct, frozen=True):
    reader: str
    segment: str
    offset: int


class AcquireSegment(msgspec.Struct, frozen=True):
    reader: str
    segment: str


class SegmentCompleted(msgspec.Struct, frozen=True):
    """`successors` with the ids of the segments that each follows."""

    reader: str
    segment: str
    successors: dict[str, set[int]]


class ReaderPositions(msgspec.Struct, frozen=True):
    """How far a reader is by a checkpoint of this name, which may be silent: then it moves nothing."""

    checkpoint: str
    reader: str
    positions: Offsets


class LastRead(msgspec.Struct, frozen=True):
    """How far a reader was when it last reported to the group."""

    reader: str
    positions: Offsets


StateRecord = (
    InitialState
    | AddReader
    | RemoveReader
    | ReleaseSegment
    | AcquireSegment
    | SegmentCompleted
    | ReaderPositions
    | LastRead
)


def decode_entry(payload: bytes) -> list[StateRecord]:
    """The records of an entry, without those that change nothing of what is read here. Raises MalformedPayload."""
    data = PayloadReader(payload)
    kind = data.int32()
    if kind == _INITIAL_ENTRY:
        # Zeros may follow: Java writes all of its buffer.
        record = _decode_record(data)
        if not isinstance(record, InitialState):
            raise MalformedPayload("an initial entry without an initial state")
        return [record]
    if kind != _UPDATES_ENTRY:
        raise MalformedPayload(f"an entry of kind {kind}")
    found = []
    while data.remaining:
        update = _decode_record(PayloadReader(data.raw(data.int32())))
        if update is not None:
            found.append(update)
    return found


def _decode_record(data: PayloadReader) -> StateRecord | None:
    type, revisions = data.typed_envelope()
    first = revisions[0]
    match type:
        case 0:
            return _initial(revisions)
        case 1:
            return _compacted(revisions)
        case 2:
            return AddReader(first.text())
        case 3:
            return RemoveReader(first.text(), _offsets(first))
        case 4:
            return ReleaseSegment(first.text(), first.text(), first.int64())
        case 5:
            return AcquireSegment(first.text(), first.text())
        case 6:
            positions = revisions[1].mapping(_ranged_segment, PayloadReader.int64) if len(revisions) > 1 else {}
            return LastRead(first.text(), positions)
        case 8:
            return ReaderPositions(first.text(), first.text(), _offsets(first))
        case 7:
            return SegmentCompleted(first.text(), first.text(), _predecessors(first))
    return None


def _initial(revisions: list[PayloadReader]) -> InitialState:
    first = revisions[0]
    id, generation = _identity(first.byte_array())
    starts = _offsets(first)
    if len(revisions) > 1:
        starts |= revisions[1].mapping(_ranged_segment, PayloadReader.int64)
    if not starts:
        raise MalformedPayload("an initial state without segments")
    return InitialState(id, generation, {}, starts, {})


def _compacted(revisions: list[PayloadReader]) -> InitialState:
    data = revisions[0]
    id, generation = _identity(data.byte_array())
    # The state of checkpoints, and how far each reader is behind.
    data.byte_array()
    data.mapping(PayloadReader.text, PayloadReader.int64)
    future = _predecessors(data)
    assigned = data.mapping(PayloadReader.text, _offsets)
    last_read = _offsets(revisions[1]) if len(revisions) > 1 else {}
    return InitialState(id, generation, assigned, _offsets(data), future, last_read)


def _identity(config: bytes) -> tuple[str, int]:
    """Id and generation in a configuration (admin-rest-api 10.3)."""
    revisions = PayloadReader(config).envelope()
    if len(revisions) < 3:
        return str(UUID(int=0)), -1
    data = revisions[2]
    data.compact_int()
    generation = data.int64()
    return str(data.uuid()), generation


def _offsets(data: PayloadReader) -> Offsets:
    return data.mapping(PayloadReader.text, PayloadReader.int64)


def _ranged_segment(data: PayloadReader) -> str:
    segment = data.text()
    data.double(), data.double()
    return segment


def _predecessors(data: PayloadReader) -> dict[str, set[int]]:
    return data.mapping(PayloadReader.text, lambda d: set(d.collection(PayloadReader.int64)))
