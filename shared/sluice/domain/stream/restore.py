"""What happened to a stream behind the back-up that it was restored from, as far as the segment stores can say.

While none of its last segments is sealed or missing, nothing was: the stream goes on with them. Else it was scaled,
rolled, sealed or truncated. The stores know segments by name and say how long each is and whether it is sealed. They do
not know key ranges. Names are numbers, which were given out in order; so those that came later are found by asking.

A found epoch is the segments that were created in it. Where their numbers are those of an earlier epoch, their ranges
are that one's. Else they are assumed, and the epoch is *approximate*: a reader begins with it when it has read all
segments before it, so events of one key stay in order whatever the true ranges were. Behind what was found comes an
epoch of new numbers, with the ranges that the back-up knew, and everything before it is sealed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.errors import StreamRestoringError
from sluice.domain.ids import StreamId
from sluice.domain.segment import Segment, epoch_of, number_of, segment_id
from sluice.domain.stream import cuts
from sluice.domain.stream.events import FoundEpoch, StreamRestored
from sluice.domain.stream.history import Epoch
from sluice.domain.stream.scale import equal_ranges
from sluice.domain.stream.state import Stream, StreamState, find_stream
from sluice.domain.workflow import WorkflowKind, running_as

MAX_EPOCHS_APART = 48
"""So many epochs behind the last one that is known are looked for: what lies further apart is not found."""
MAX_NUMBERS_APART = 32
"""Likewise numbers of segments: those between were deleted, or given out and not created."""


class Outcome(msgspec.Struct, frozen=True):
    """What the stores said: see `StreamRestored`."""

    found: tuple[FoundEpoch, ...] = ()
    creates: tuple[Segment, ...] = ()
    sealed_sizes: dict[int, int] = {}
    sealed: bool = False
    cut: dict[int, int] = {}


def check_restored(stream: Stream | None) -> None:
    """Raises StreamRestoringError while nothing can be said of the stream's segments."""
    if stream is not None and stream.state is StreamState.RESTORING:
        raise StreamRestoringError(f"{stream.id} is being restored")


def last_segments(stream: Stream) -> set[int]:
    """The segments that were active at the back-up, or about to be: if none is sealed nothing happened since."""
    newest = stream.history.epoch(stream.history.count - 1)
    return {*stream.active_epoch.segments, *newest.segments}


def was_changing(stream: Stream) -> bool:
    """Whether segments were being replaced: their successors are named, and they may not be sealed yet."""
    return stream.history.count > stream.active + 1


def repeated_numbers(stream: Stream, of_transactions: Iterable[int]) -> set[int]:
    """The numbers that a roll behind the back-up may have used once more: of the last and of transactions' epochs."""
    known = filter(stream.history.has, of_transactions)
    epochs = {stream.active, stream.history.count - 1, *known}
    return {number_of(s) for epoch in epochs for s in stream.history.epoch(epoch).segments}


def candidates(numbers: Iterable[int], after: int) -> list[int]:
    """The ids that segments of these numbers may have in the epochs behind number `after`."""
    epochs = range(after + 1, after + 1 + MAX_EPOCHS_APART)
    return [segment_id(epoch, number) for number in sorted(numbers) for epoch in epochs]


def arranged(stream: Stream, found: Iterable[int]) -> tuple[FoundEpoch, ...]:
    """The epochs of found segments, in order, each with key ranges that cover everything."""
    ranges = {number_of(s): stream.history.segment(s) for s in _known(stream)}
    epochs: dict[int, list[int]] = {}
    for s in sorted(found):
        epochs.setdefault(epoch_of(s), []).append(s)
    return tuple(_arranged(number, ids, ranges) for number, ids in sorted(epochs.items()))


def _known(stream: Stream) -> Iterable[int]:
    history = stream.history
    first = history.epoch(cuts.first_epoch(stream, stream.cut)).number
    return (s.id for s in history.within(first, history.count - 1))


def _arranged(number: int, ids: Sequence[int], ranges: Mapping[int, Segment]) -> FoundEpoch:
    copies = [(ranges[number_of(s)], s) for s in ids if number_of(s) in ranges]
    segments = tuple(Segment(s, known.low, known.high) for known, s in copies)
    if len(copies) == len(ids) and _tile(segments):
        return FoundEpoch(number, segments)
    bounds = equal_ranges(len(ids))
    return FoundEpoch(number, tuple(Segment(s, *bound) for s, bound in zip(ids, bounds, strict=True)), approximate=True)


def _tile(segments: Iterable[Segment]) -> bool:
    reached = 0.0
    for segment in sorted(segments, key=lambda s: s.low):
        if segment.low != reached:
            return False
        reached = segment.high
    return reached == 1.0


def next_segments(stream: Stream) -> tuple[Segment, ...]:
    """The segments of the epoch behind everything, with the ranges that the back-up knew last."""
    newest = stream.history.segments_of(stream.history.count - 1)
    epoch, first = stream.base, stream.next_number
    return tuple(Segment(segment_id(epoch, first + i), s.low, s.high) for i, s in enumerate(newest))


def finish_restore(reader: Reader, context: Context, id: StreamId, outcome: Outcome) -> Decision:
    stream = running_as(WorkflowKind.RESTORE_STREAM, find_stream(reader, id))
    if stream is None:
        return Decision()
    restored = StreamRestored(
        *id,
        at=max(context.now, stream.history.created_at(stream.history.count - 1) + 1),
        found=outcome.found,
        creates=outcome.creates,
        sealed_sizes=outcome.sealed_sizes,
        sealed=outcome.sealed,
        cut=outcome.cut,
    )
    return Decision((restored,))


def evolve_restored(state: Stream, event: StreamRestored) -> Stream:
    history, at = state.history, event.at
    added = [(e.number, e.segments) for e in event.found]
    if event.creates:
        added.append((epoch_of(event.creates[0].id), event.creates))
    for number, segments in added:
        before = history.epoch(history.count - 1)
        history.add(Epoch(number, number, at, tuple(s.id for s in segments)), segments, before.segments)
        state.next_number = max(state.next_number, *(number_of(s.id) + 1 for s in segments))
        at += 1
    history.approximate = (*history.approximate, *(e.number for e in event.found if e.approximate))
    history.record_sizes(event.sealed_sizes)
    state.active = history.count - 1
    state.state = StreamState.SEALED if event.sealed else StreamState.ACTIVE
    state.workflow = None
    if event.cut:
        passed = cuts.segments_between(state, state.cut, event.cut)
        state.cut_size += cuts.size_between(state, state.cut, event.cut, passed)
        state.cut = event.cut
        history.condense(cuts.first_epoch(state, state.cut))
    return state


EVOLVE: dict[type, Any] = {StreamRestored: evolve_restored}
