"""What the readers of a reader group keep in its state stream (admin-rest-api 10).

The stream's one segment is a log of records: an initial record replaces the whole state, updates change it. Here it is
folded only as far as it says which readers there are, what they read and which group they take themselves for.
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
    ReleaseSegment,
    RemoveReader,
    SegmentCompleted,
    StateRecord,
    decode_entry,
)
from sluice.pravega.store import MARK_ATTRIBUTE, SegmentStore

NO_MARK = -(2**63)
READ_BYTES = 256 * 1024
MOST_BYTES = 64 * 1024 * 1024
"""A state stream longer than this, from its mark on, is not read."""


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
        mark = await store.attribute(segment, MARK_ATTRIBUTE)
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
            state = GroupState(record.id, record.generation, record.assigned, record.unassigned, record.future)
        elif state is None:
            raise MalformedPayload("an update of a state that is not there")
        else:
            _update(state, record)
    return state


def _update(state: GroupState, record: StateRecord) -> None:
    match record:
        case AddReader(reader):
            state.assigned.setdefault(reader, set())
        case RemoveReader(reader):
            state.unassigned |= state.assigned.pop(reader, set())
        case ReleaseSegment(reader, segment):
            state.assigned.get(reader, set()).discard(segment)
            state.unassigned.add(segment)
        case AcquireSegment(reader, segment):
            state.unassigned.discard(segment)
            state.assigned.setdefault(reader, set()).add(segment)
        case SegmentCompleted(reader, segment, successors):
            state.assigned.get(reader, set()).discard(segment)
            _release_successors(state, _id_of(segment), successors)


def _release_successors(state: GroupState, completed: int, successors: dict[str, set[int]]) -> None:
    """Those that wait for nothing more can be read."""
    for successor, predecessors in successors.items():
        state.future.setdefault(successor, predecessors)
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
        raise MalformedPayload(str(error)) from error
