"""What happened to a stream behind the back-up that it was restored from, as far as the segment stores can say.

While none of its last segments is sealed or missing, nothing was: the stream goes on with them. Else it was scaled,
rolled, sealed or truncated. The stores know segments by name and say how long each is and whether it is sealed. They do
not know key ranges. Names have an epoch and a number, both given out in order; so what came later is found by asking.

A found epoch is the segments that were created in it, and their key ranges are assumed. A reader begins with them when
it has read all segments before them, so events of one key stay in order whatever the true ranges were. Behind what was
found comes an epoch with the ranges that the back-up knew, and everything before it is sealed.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import msgspec

from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.errors import StreamRestoringError
from sluice.domain.segment import Segment, epoch_of, number_of, segment_id
from sluice.domain.stream import cuts
from sluice.domain.stream.events import StreamRestored
from sluice.domain.stream.history import Epoch, History
from sluice.domain.stream.scale import equal_ranges
from sluice.domain.stream.state import Stream, StreamState, find_stream
from sluice.domain.workflow import WorkflowKind, running_as

MAX_EPOCHS_APART = 48
"""So many epochs behind the last one that is known are looked for: what lies further apart is not found."""
MAX_NUMBERS_APART = 32
"""Likewise numbers of segments: those between were deleted, or given out and not created."""


def check_restored(stream: Stream | None) -> None:
    """Raises StreamRestoringError while nothing can be said of the stream's segments."""
    if stream is not None and stream.state is StreamState.RESTORING:
        raise StreamRestoringError(f"{stream.id} is being restored")


def bases_of(stream: Stream) -> tuple[int, ...]:
    """Those of a stream that is being restored."""
    assert stream.workflow is not None
    return stream.workflow.bases


def last_segments(stream: Stream) -> set[int]:
    """The segments that were active at the back-up, or about to be: if none is sealed nothing happened since."""
    newest = stream.history.epoch(stream.history.count - 1)
    return {*stream.active_epoch.segments, *newest.segments}


def was_changing(stream: Stream) -> bool:
    """Whether segments were being replaced: their successors are named, and they may not be sealed yet."""
    return stream.history.count > stream.active + 1


def repeated_numbers(stream: Stream, epochs: Iterable[int]) -> set[int]:
    """The numbers that a roll behind the back-up may have used once more: of the last epochs, and of transactions'."""
    history = stream.history
    rolled = {stream.active, history.count - 1, *filter(history.has, epochs)}
    return {number_of(s) for epoch in rolled for s in history.epoch(epoch).segments}


def candidates(numbers: Iterable[int], first: int, last: int) -> list[int]:
    """The ids that segments of these numbers may have in epochs from `first` on; `last` is the last known one."""
    epochs = range(first, last + MAX_EPOCHS_APART)
    return [segment_id(epoch, number) for number in sorted(numbers) for epoch in epochs]


def next_segments(stream: Stream, found: Iterable[int]) -> tuple[Segment, ...]:
    """The segments of the epoch behind everything, with the ranges that the back-up knew last."""
    newest = stream.history.segments_of(stream.history.count - 1)
    base = bases_of(stream)[-1]
    first = max(stream.next_number, base, _after(found))
    return tuple(Segment(segment_id(base, first + i), s.low, s.high) for i, s in enumerate(newest))


def _after(segments: Iterable[int]) -> int:
    return max(map(number_of, segments), default=-1) + 1


def finish_restore(reader: Reader, context: Context, restored: StreamRestored) -> Decision:
    """Record what was found out."""
    stream = running_as(WorkflowKind.RESTORE_STREAM, find_stream(reader, restored.stream_id))
    if stream is None:
        return Decision()
    at = max(context.now, stream.history.created_at(stream.history.count - 1) + 1)
    return Decision((msgspec.structs.replace(restored, at=at),))


def evolve_restored(state: Stream, event: StreamRestored) -> Stream:
    history, at = state.history, event.at
    for number, found in groupby(event.found, epoch_of):
        ids = tuple(found)
        segments = tuple(Segment(s, low, high) for s, (low, high) in zip(ids, equal_ranges(len(ids)), strict=True))
        _replace_all(history, number, at, segments)
        history.after_all = (*history.after_all, number)
        at += 1
    if event.creates:
        if event.found:
            history.after_all = (*history.after_all, event.base)
        _replace_all(history, event.base, at, event.creates)
    else:
        newest = history.epoch(history.count - 1)
        history.add(Epoch(event.base, newest.reference, at, newest.segments), (), ())
    history.record_sizes(event.sealed_sizes)
    # Numbers, too, go on at the base: behind a second restore from the same back-up they are looked for from there.
    state.next_number = max(state.next_number, event.base, _after([*event.found, *(s.id for s in event.creates)]))
    state.active = event.base
    state.state = StreamState.SEALED if event.sealed else StreamState.ACTIVE
    state.workflow = None
    if event.cut:
        passed = cuts.segments_between(state, state.cut, event.cut)
        state.cut_size += cuts.size_between(state, state.cut, event.cut, passed)
        state.cut = event.cut
        history.condense(cuts.first_epoch(state, state.cut))
    return state


def _replace_all(history: History, number: int, at: int, segments: tuple[Segment, ...]) -> None:
    before = history.epoch(history.count - 1)
    history.add(Epoch(number, number, at, tuple(s.id for s in segments)), segments, before.segments)


EVOLVE: dict[type, Any] = {StreamRestored: evolve_restored}
