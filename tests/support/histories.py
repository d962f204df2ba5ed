"""All that a stream's history holds, one by one: for tests that look at the whole of it; and how it is scaled."""

from collections.abc import Sequence

from sluice.domain.segment import Segment
from sluice.domain.stream.history import Epoch
from sluice.domain.stream.state import Stream


def epochs_of(stream: Stream) -> list[Epoch]:
    return [stream.history.epoch(number) for number in stream.history.numbers(0, stream.history.count)]


def segments_of(stream: Stream) -> dict[int, Segment]:
    """Every segment that the stream ever had, by id."""
    return {s.id: s for s in stream.history.within(stream.history.first, stream.history.count - 1)}


def sealed_in(stream: Stream) -> dict[int, int]:
    """The first epoch without it, for each segment that was replaced."""
    found = {segment: stream.history.replaced_in(segment) for segment in segments_of(stream)}
    return {segment: epoch for segment, epoch in found.items() if epoch is not None}


def replaced(
    active: Sequence[Segment], i: int, is_merge: bool
) -> tuple[tuple[int, ...], tuple[tuple[float, float], ...]]:
    """What a scale seals, and the ranges of what comes instead: halves of a segment, or it and the next one as one."""
    low, high = active[i].low, active[i].high
    if is_merge:
        return (active[i].id, active[i + 1].id), ((low, active[i + 1].high),)
    return (active[i].id,), ((low, (low + high) / 2), ((low + high) / 2, high))
