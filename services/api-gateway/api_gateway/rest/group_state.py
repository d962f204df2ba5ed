"""What the readers of a reader group keep in its state stream (admin-rest-api 10).

The stream's one segment is a log of records: an initial record replaces the whole state, updates change it. Here it is
folded only as far as it says which readers there are, what they read and which group they take themselves for.
"""

import struct
from collections.abc import AsyncIterator, Callable
from uuid import UUID

import msgspec

from api_gateway.rest.serialized import Data, MalformedError
from sluice.domain.segment_id import parse_segment_name
from sluice.segmentstore.errors import SegmentTruncated
from sluice.segmentstore.store import SegmentStore

MARK = UUID("7df9a874-246c-c9d6-9397-cdd19ead68c5")
"""The attribute that says where the latest compacted state begins."""

NO_MARK = -(2**63)
READ_BYTES = 256 * 1024
MOST_BYTES = 64 * 1024 * 1024
"""A state stream longer than this, from its mark on, is not read."""

_HEADER = struct.Struct(">ii")
_INITIAL, _UPDATES = 1, 2


class StateError(Exception):
    """What stands in the state stream cannot be made out."""


class GroupState(msgspec.Struct):
    """`assigned` are the segments of each reader, `unassigned` those that wait for one, `future` what others wait for.

    `id` and `generation` are those of the configuration; all-zero and -1 if an old client wrote it.
    """

    id: str
    generation: int
    assigned: dict[str, set[str]]
    unassigned: set[str]
    future: dict[str, set[int]]

    def streams(self) -> list[str]:
        """scope/stream of all segments that are read or wait for a reader."""
        segments = self.unassigned.union(*self.assigned.values())
        return sorted({segment.rpartition("/")[0] for segment in segments})


async def read_group_state(store: SegmentStore, segment: str) -> GroupState | None:
    """The state in a segment, None if there is none yet. Raises StateError, SegmentStoreError."""
    while True:
        mark = await store.attribute(segment, MARK)
        info = await store.segment_info(segment)
        offset = info.start_offset if mark in (None, NO_MARK) else mark or 0
        if info.length - offset > MOST_BYTES:
            raise StateError(f"{info.length - offset} bytes of state")
        state: GroupState | None = None
        try:
            async for payload in _payloads(store, segment, offset, info.length):
                state = fold(state, payload)
        except SegmentTruncated:
            # It was compacted while it was read.
            continue
        except MalformedError as error:
            raise StateError(str(error)) from error
        return state


async def _payloads(store: SegmentStore, segment: str, offset: int, end: int) -> AsyncIterator[bytes]:
    data = b""
    while offset < end:
        read = (await store.read_segment(segment, offset, min(READ_BYTES, end - offset))).data
        if not read:
            break
        offset += len(read)
        data += read
        at = 0
        while len(data) - at >= _HEADER.size:
            kind, length = _HEADER.unpack_from(data, at)
            if kind != 0 or length < 0:
                raise MalformedError(f"an event of type {kind} and {length} bytes")
            if at + _HEADER.size + length > len(data):
                break
            yield data[at + _HEADER.size : at + _HEADER.size + length]
            at += _HEADER.size + length
        data = data[at:]


def fold(state: GroupState | None, payload: bytes) -> GroupState:
    """The state after one entry of the log; it may change in place. Raises MalformedError."""
    data = Data(payload)
    kind = data.int32()
    if kind == _INITIAL:
        return _initial(data)
    if kind != _UPDATES:
        raise MalformedError(f"an entry of kind {kind}")
    if state is None:
        raise MalformedError("an update of a state that is not there")
    while data.left:
        _update(state, Data(data.raw(data.int32())))
    return state


def _initial(data: Data) -> GroupState:
    data.header()
    kind = data.byte()
    revisions = data.revisions()
    if kind not in (0, 1) or not revisions:
        raise MalformedError(f"an initial state of type {kind}")
    first = revisions[0]
    id, generation = _identity(first.array())
    if kind == 0:
        starts = set(first.mapping(Data.text, Data.int64))
        if len(revisions) > 1:
            starts |= set(revisions[1].mapping(_ranged, Data.int64))
        if not starts:
            raise MalformedError("an initial state without segments")
        return GroupState(id, generation, {}, starts, {})
    # The state of checkpoints and how far each reader is behind.
    first.array()
    first.mapping(Data.text, Data.int64)
    future = first.mapping(Data.text, lambda d: set(d.items(Data.int64)))
    assigned = first.mapping(Data.text, lambda d: set(d.mapping(Data.text, Data.int64)))
    return GroupState(id, generation, assigned, set(first.mapping(Data.text, Data.int64)), future)


def _ranged(data: Data) -> str:
    segment = data.text()
    data.raw(16)
    return segment


def _identity(config: bytes) -> tuple[str, int]:
    """Id and generation in a configuration (10.3); older clients wrote neither."""
    data = Data(config)
    data.header()
    revisions = data.revisions()
    if len(revisions) < 3:
        return str(UUID(int=0)), -1
    data = revisions[2]
    data.compact_int()
    generation = data.int64()
    return str(data.uuid()), generation


def _update(state: GroupState, data: Data) -> None:
    data.header()
    effect = _EFFECTS.get(data.byte())
    if effect is not None:
        revisions = data.revisions()
        if not revisions:
            raise MalformedError("an update without content")
        effect(state, revisions[0])


def _add_reader(state: GroupState, data: Data) -> None:
    state.assigned.setdefault(data.text(), set())


def _remove_reader(state: GroupState, data: Data) -> None:
    state.unassigned |= state.assigned.pop(data.text(), set())


def _release(state: GroupState, data: Data) -> None:
    reader, segment = data.text(), data.text()
    state.assigned.get(reader, set()).discard(segment)
    state.unassigned.add(segment)


def _acquire(state: GroupState, data: Data) -> None:
    reader, segment = data.text(), data.text()
    state.unassigned.discard(segment)
    state.assigned.setdefault(reader, set()).add(segment)


def _complete(state: GroupState, data: Data) -> None:
    reader, segment = data.text(), data.text()
    state.assigned.get(reader, set()).discard(segment)
    for successor, predecessors in data.mapping(Data.text, lambda d: set(d.items(Data.int64))).items():
        state.future.setdefault(successor, predecessors)
    completed = _id_of(segment)
    for waits in state.future.values():
        waits.discard(completed)
    ready = {successor for successor, waits in state.future.items() if not waits}
    for successor in ready:
        del state.future[successor]
    state.unassigned |= ready


def _id_of(segment: str) -> int:
    try:
        return parse_segment_name(segment)[2]
    except ValueError as error:
        raise MalformedError(str(error)) from error


_EFFECTS: dict[int, Callable[[GroupState, Data], None]] = {
    2: _add_reader,
    3: _remove_reader,
    4: _release,
    5: _acquire,
    7: _complete,
}
"""By type; all others change nothing of what is folded here."""
