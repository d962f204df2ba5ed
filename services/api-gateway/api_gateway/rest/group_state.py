"""What the readers of a reader group keep in its state stream (admin-rest-api 10).

The stream's one segment is a log of records: an initial record replaces the whole state, updates change it. Here it is
folded only as far as it says which readers there are, what they read, how far they are and which group they take
themselves for. Rules: reader-groups 3.
"""

from collections.abc import AsyncIterator

import msgspec

from sluice.domain.segment import parse_segment_name
from sluice.pravega.envelope import MalformedPayload
from sluice.pravega.errors import SegmentTruncated
from sluice.pravega.event_frames import EventSplitter
from sluice.pravega.reader_group_state import (
    AcquireSegment,
    AddReader,
    InitialState,
    LastRead,
    Offsets,
    ReaderPositions,
    ReleaseSegment,
    RemoveReader,
    SegmentCompleted,
    StateRecord,
    decode_entry,
)
from sluice.pravega.store import MARK_ATTRIBUTE, SegmentStore

NO_MARK = -(2**63)
SILENT = "_SILENT_"
"""In the name of a checkpoint that readers make for themselves: it moves no offset."""
READ_BYTES = 256 * 1024
MOST_BYTES = 64 * 1024 * 1024
"""A state stream longer than this, from its mark on, is not read."""


class StateError(Exception):
    """What stands in the state stream cannot be made out."""


class GroupState(msgspec.Struct):
    """`assigned` are the segments of each reader, `unassigned` those that wait for one, `future` what others wait for.

    The first two with offsets: of what was acquired, or of a checkpoint since. `last_read` are later ones, as far as
    readers have reported. `id` and `generation` are those of the configuration; all-zero and -1 if an old client
    wrote it.
    """

    id: str
    generation: int
    assigned: dict[str, Offsets]
    unassigned: Offsets
    future: dict[str, set[int]]
    last_read: Offsets = {}

    def streams(self) -> list[str]:
        """scope/stream of all segments that are read or wait for a reader."""
        return sorted({segment.rpartition("/")[0] for segment in self.positions()})

    def held_by(self, reader: str) -> Offsets:
        """The segments of a reader with the latest offsets that are known."""
        held = self.assigned.get(reader, {})
        # One that is read to its end stays so.
        return {segment: max(at, self.last_read.get(segment, at)) if at >= 0 else at for segment, at in held.items()}

    def positions(self) -> Offsets:
        """How far the group is in each segment that is read or waits for a reader, as far as is known."""
        found = {**self.unassigned}
        for reader in self.assigned:
            found |= self.held_by(reader)
        return found


async def read_group_state(store: SegmentStore, segment: str, most_bytes: int = MOST_BYTES) -> GroupState | None:
    """The state in a segment, None if there is none yet. Raises StateError, SegmentStoreError."""
    while True:
        mark = await store.attribute(segment, MARK_ATTRIBUTE)
        info = await store.segment_info(segment)
        offset = info.start_offset if mark in (None, NO_MARK) else mark or 0
        if info.length - offset > most_bytes:
            raise StateError(f"{info.length - offset} bytes of state")
        state: GroupState | None = None
        try:
            async for payload in _payloads(store, segment, offset, info.length):
                state = fold(state, payload)
        except SegmentTruncated:
            # It was compacted while it was read.
            continue
        except MalformedPayload as error:
            raise StateError(str(error)) from error
        return state


async def _payloads(store: SegmentStore, segment: str, offset: int, end: int) -> AsyncIterator[bytes]:
    events = EventSplitter(offset)
    while offset < end:
        data = (await store.read_segment(segment, offset, min(READ_BYTES, end - offset))).data
        if not data:
            break
        offset += len(data)
        for found in events.feed(data):
            for event in found.events:
                yield event.data


def fold(state: GroupState | None, payload: bytes) -> GroupState | None:
    """The state after one entry of the log; it may change in place. Raises MalformedPayload."""
    for record in decode_entry(payload):
        if isinstance(record, InitialState):
            state = GroupState(
                record.id, record.generation, record.assigned, record.unassigned, record.future, {**record.last_read}
            )
        elif state is None:
            raise MalformedPayload("an update of a state that is not there")
        else:
            _update(state, record)
    return state


def _update(state: GroupState, record: StateRecord) -> None:
    match record:
        case AddReader(reader):
            state.assigned.setdefault(reader, {})
        case RemoveReader(reader, positions):
            held = state.assigned.pop(reader, {})
            state.unassigned |= {segment: positions.get(segment, at) for segment, at in held.items()}
        case ReleaseSegment(reader, segment, offset):
            state.assigned.get(reader, {}).pop(segment, None)
            state.unassigned[segment] = offset
            if segment in state.last_read:
                state.last_read[segment] = offset
        case AcquireSegment(reader, segment):
            state.assigned.setdefault(reader, {})[segment] = state.unassigned.pop(segment, 0)
        case SegmentCompleted(reader, segment, successors):
            state.assigned.get(reader, {}).pop(segment, None)
            state.last_read.pop(segment, None)
            _release_successors(state, _id_of(segment), successors)
        case ReaderPositions(checkpoint, reader, positions) if SILENT not in checkpoint:
            held = state.assigned.get(reader, {})
            held |= {segment: at for segment, at in positions.items() if segment in held}
        case LastRead(_, positions):
            state.last_read |= positions


def _release_successors(state: GroupState, completed: int, successors: dict[str, set[int]]) -> None:
    """Those that wait for nothing more can be read."""
    for successor, predecessors in successors.items():
        state.future.setdefault(successor, predecessors)
    for waits in state.future.values():
        waits.discard(completed)
    ready = {successor for successor, waits in state.future.items() if not waits}
    for successor in ready:
        del state.future[successor]
    state.unassigned |= dict.fromkeys(ready, 0)


def _id_of(segment: str) -> int:
    try:
        return parse_segment_name(segment)[2]
    except ValueError as error:
        raise MalformedPayload(str(error)) from error
