"""What the readers of a reader group keep in its state stream (admin-rest-api 10).

The stream's one segment is a log of records: an initial record replaces the whole state, updates change it. Here it is
folded only as far as it says which readers there are, what they read, how far they are and which group they take
themselves for. Rules: reader-groups 3.

Who may READ a scope may write anything into the state of a group there. So what is written is bounded, costs no more
than its length to fold, and is folded by the worker's thread.
"""

from collections.abc import Iterable, Mapping
from functools import partial

import msgspec

from api_gateway.edge.worker import Worker
from sluice.domain.segment import parse_segment_name
from sluice.pravega import reader_group_state as written
from sluice.pravega.envelope import MalformedPayload
from sluice.pravega.errors import SegmentTruncated
from sluice.pravega.event_frames import EventSplitter
from sluice.pravega.reader_group_state import (
    SILENT,
    AcquireSegment,
    AddReader,
    CheckpointReader,
    ReleaseSegment,
    RemoveReader,
    SegmentCompleted,
    Update,
    UpdateDistanceToTail,
    decode_entry,
)
from sluice.pravega.store import MARK_ATTRIBUTE, SegmentStore
from sluice.pravega.stream_cut import Offsets

NO_MARK = -(2**63)
READ_BYTES = 256 * 1024
MAX_STATE_BYTES = 8 * 1024 * 1024
"""A state stream longer than this, from its mark on, is not read."""
MAX_ENTRIES = 10_000
"""A state with more readers and segments than this is refused."""


class StateError(Exception):
    """What stands in the state stream cannot be made out, or is more than any group needs."""


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
    waiting_for: dict[int, list[str]] = {}
    """Those of `future` by the ids of what they wait for."""

    @property
    def entries(self) -> int:
        """How many readers and segments it has."""
        held = sum(map(len, self.assigned.values()))
        return len(self.assigned) + held + len(self.unassigned) + len(self.future)

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


async def read_group_state(store: SegmentStore, worker: Worker, segment: str) -> GroupState | None:
    """The state in a segment, None if there is none yet. Raises StateError, SegmentStoreError, OverloadedError."""
    while True:
        mark = await store.attribute(segment, MARK_ATTRIBUTE)
        info = await store.segment_info(segment)
        offset = info.start_offset if mark in (None, NO_MARK) else mark or 0
        if info.length - offset > MAX_STATE_BYTES:
            raise StateError(f"{info.length - offset} bytes of state, {MAX_STATE_BYTES} at most are read")
        try:
            content = await _content(store, segment, offset, info.length)
        except SegmentTruncated:
            # It was compacted while it was read.
            continue
        return await worker.run(partial(_folded, offset, content))


async def _content(store: SegmentStore, segment: str, offset: int, end: int) -> bytes:
    found = bytearray()
    while offset < end and (data := (await store.read_segment(segment, offset, min(READ_BYTES, end - offset))).data):
        found += data
        offset += len(data)
    return bytes(found)


def _folded(offset: int, content: bytes) -> GroupState | None:
    """The state in what stands at an offset of the segment. Raises StateError."""
    state: GroupState | None = None
    try:
        for found in EventSplitter(offset).feed(content):
            for event in found.events:
                state = fold(state, event.data)
    except MalformedPayload as error:
        raise StateError(str(error)) from error
    if state is not None and state.entries > MAX_ENTRIES:
        raise StateError(f"{state.entries} readers and segments, {MAX_ENTRIES} at most are shown")
    return state


def fold(state: GroupState | None, payload: bytes) -> GroupState | None:
    """The state after one entry of the log; it may change in place. Raises MalformedPayload."""
    for record in decode_entry(payload):
        if isinstance(record, written.GroupState):
            state = GroupState(
                str(record.config.id),
                record.config.generation,
                record.assigned,
                {**record.unassigned},
                {},
                {**record.last_read},
            )
            _wait(state, record.future)
        elif state is None:
            raise MalformedPayload("an update of a state that is not there")
        else:
            _update(state, record)
    return state


def _update(state: GroupState, record: Update) -> None:
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
            _wait(state, successors)
            _release_successors(state, _id_of(segment), successors)
        case CheckpointReader(checkpoint, reader, positions) if SILENT not in checkpoint:
            held = state.assigned.get(reader, {})
            held |= {segment: at for segment, at in positions.items() if segment in held}
        case UpdateDistanceToTail(_, _, positions):
            state.last_read |= positions


def _wait(state: GroupState, segments: Mapping[str, set[int]]) -> None:
    """Segments wait for others, by their ids; those that do already wait on as they do."""
    for segment, predecessors in segments.items():
        if segment not in state.future:
            state.future[segment] = predecessors
            for predecessor in predecessors:
                state.waiting_for.setdefault(predecessor, []).append(segment)


def _release_successors(state: GroupState, completed: int, announced: Iterable[str]) -> None:
    """Those that wait for nothing more can be read."""
    for successor in (*state.waiting_for.pop(completed, ()), *announced):
        waits = state.future.get(successor)
        if waits is not None:
            waits.discard(completed)
            if not waits:
                del state.future[successor]
                state.unassigned[successor] = 0


def _id_of(segment: str) -> int:
    try:
        return parse_segment_name(segment)[2]
    except ValueError as error:
        raise MalformedPayload(str(error)) from error
