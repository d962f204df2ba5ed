"""What a reader proposes on a state of its group: which updates, of which the group then makes its next state.

Each function is called with the newest state, anew whenever another reader was first, so what it returns must follow
from that state alone. While a checkpoint waits for a reader, that reader acquires, releases and completes nothing: so
each segment is in a checkpoint once, and nobody reads what follows a reader's events before it said they are done.

Sizes and times are those of the Java client, or readers of the two kinds would push segments to and fro. Rules:
reader-groups 4 and 5. Pure functions; all but `join` and `leave` raise ReaderOffline.
"""

from collections.abc import Mapping

from sluice.domain.segment import parse_segment_name
from sluice.pravega.reader_group_state import (
    AcquireSegment,
    AddReader,
    CheckpointReader,
    ClearCheckpointsBefore,
    CreateCheckpoint,
    GroupState,
    Predecessors,
    Ranges,
    ReleaseSegment,
    RemoveReader,
    SegmentCompleted,
    Update,
    UpdateDistanceToTail,
)
from sluice.pravega.stream_cut import Offsets
from sluice_client.errors import ClientError
from sluice_client.groups.state import SHORTEST_DISTANCE_MS, pending, stored_positions

Updates = list[Update]

TIME_UNIT_S = 1.0
ATTEMPT_S = 30.0
"""To when acquiring and releasing are put off while an attempt is under way."""


class ReaderOffline(ClientError):
    """The reader is not in the group any more: it was reported offline, or the group was reset."""


class ReaderExists(ClientError):
    """A reader of this name is in the group already."""


def join(state: GroupState, reader: str) -> Updates:
    """The reader comes into the group. Raises ReaderExists."""
    if reader in state.assigned:
        raise ReaderExists(reader)
    return [AddReader(reader)]


def leave(state: GroupState, reader: str, positions: Offsets) -> Updates:
    """The reader leaves; others go on at these positions, or where the reader's last checkpoint was."""
    return [RemoveReader(reader, positions)] if reader in state.assigned else []


def acquire(state: GroupState, reader: str, lag: UpdateDistanceToTail) -> Updates:
    """Takes a fair share of the free segments; nothing if there are none, or a checkpoint is pending."""
    held, free, readers = held_by(state, reader), len(state.unassigned), len(state.assigned)
    if not free or pending(state, reader) is not None:
        return []
    share = (2 * len(stored_positions(state)) + readers) // (2 * readers)
    number = max(1, free // readers, min(free, share - len(held)))
    return [*(AcquireSegment(reader, segment) for segment in list(state.unassigned)[:number]), lag]


def release(state: GroupState, reader: str, positions: Offsets, lag: UpdateDistanceToTail) -> Updates:
    """Gives one segment back at its position if the reader has more than its share, and no checkpoint is pending."""
    held = held_by(state, reader)
    sizes = reader_sizes(state)
    enough = min(sizes.values()) + max(1, len(state.unassigned))
    if len(held) < 2 or sizes[reader] <= enough or pending(state, reader) is not None:
        return []
    segment = max(held)
    return [ReleaseSegment(reader, segment, positions.get(segment, held[segment])), lag]


def complete(state: GroupState, reader: str, segment: str, successors: Predecessors, ranges: Ranges) -> Updates:
    """Says that a segment is read to its end, and what follows it; nothing while a checkpoint is pending."""
    if segment not in held_by(state, reader):
        raise ReaderOffline(f"{reader} does not hold {segment}")
    if pending(state, reader) is not None:
        return []
    return [SegmentCompleted(reader, segment, successors, ranges)]


def checkpoint(state: GroupState, reader: str, id: str, positions: Offsets) -> Updates:
    """Says how far the reader is by a checkpoint; nothing if the group waits for that no more."""
    held_by(state, reader)
    waited_for = reader in state.checkpoints.waiting.get(id, ())
    return [CheckpointReader(id, reader, positions)] if waited_for else []


def begin_automatic_checkpoint(state: GroupState, reader: str, id: str) -> Updates:
    """A checkpoint that nobody asked for; nothing if any other, silent or not, waits for a reader."""
    held_by(state, reader)
    return [] if state.checkpoints.waiting else [CreateCheckpoint(id), ClearCheckpointsBefore(id)]


def held_by(state: GroupState, reader: str) -> Offsets:
    """The segments of a reader, at the offsets where it acquired them or made its last checkpoint."""
    held = state.assigned.get(reader)
    if held is None:
        raise ReaderOffline(reader)
    return held


def lag_of(
    reader: str, now_ms: int, last_segment: str | None, positions: Offsets, ranges: Mapping[str, tuple[float, float]]
) -> UpdateDistanceToTail:
    """How far a reader is behind, as Java has it: the time less the id of the segment it last read an event of.

    That is no distance; but a reader that wrote a true one beside Java's would be given all segments.
    """
    distance = 0 if last_segment is None else now_ms - parse_segment_name(last_segment)[2]
    known = {segment: keys for segment, keys in ranges.items() if segment in positions}
    return UpdateDistanceToTail(reader, distance, positions, known)


def reader_sizes(state: GroupState) -> dict[str, float]:
    """How much each reader has to read: its segments, less for one that is less behind than others."""
    lags = {reader: max(SHORTEST_DISTANCE_MS, state.distance.get(reader, 0)) for reader in state.assigned}
    longest = max((lags[reader] for reader, held in state.assigned.items() if held), default=1)
    return {reader: len(held) * lags[reader] / longest for reader, held in state.assigned.items()}


def rank(state: GroupState, reader: str) -> int:
    """How many readers have more to read."""
    held_by(state, reader)
    sizes = reader_sizes(state)
    return sorted(sizes, key=lambda name: (-sizes[name], name)).index(reader)


def acquire_after_s(state: GroupState, reader: str) -> float:
    """How long a reader waits before it acquires: who has most waits longest."""
    return TIME_UNIT_S * (len(state.assigned) - rank(state, reader))


def release_after_s(state: GroupState, reader: str) -> float:
    """How long a reader waits before it releases: who has most waits shortest."""
    return TIME_UNIT_S * (1 + rank(state, reader))


def lag_after_s(state: GroupState) -> float:
    """How long a reader waits before it says how far it is behind."""
    return TIME_UNIT_S * (len(state.assigned) + 1)
