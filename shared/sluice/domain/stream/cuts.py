"""Stream cuts: where they lie in a stream's history, how two of them compare, what lies between.

A cut maps segment ids to byte offsets; -1 stands for a segment that is not yet reached. Every segment lives in an
unbroken run of epochs, from the one in its id to the one before it was replaced, so nothing here walks the history:
a segment's run is looked up, overlaps are found by bisection, and what lies between two cuts costs what it is long.
Rules: stream-and-transaction-semantics 7.5, 7.8, 8.1, 8.2, 8.4; controller-grpc-api 6.3.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise

from sluice.domain.cut_order import Cut, Order, compare, positions
from sluice.domain.errors import InvalidArgumentError, LengthsUnknownError, NotFoundError
from sluice.domain.segment import Segment, epoch_of, segment_name
from sluice.domain.stream.state import Stream
from sluice.domain.wording import some


class RangeIndex:
    """Finds the segments whose key ranges overlap a given one; the ranges may overlap each other."""

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._segments = sorted(segments, key=lambda s: s.low)
        self._lows = [s.low for s in self._segments]
        self._highest: list[float] = []
        highest = 0.0
        for segment in self._segments:
            highest = max(highest, segment.high)
            self._highest.append(highest)

    def overlapping(self, low: float, high: float) -> Iterator[Segment]:
        i = bisect_left(self._lows, high) - 1
        while i >= 0 and self._highest[i] > low:
            if self._segments[i].high > low:
                yield self._segments[i]
            i -= 1


def first_epoch(stream: Stream, cut: Cut) -> int:
    """The number of the first epoch that is not wholly before a cut of the stream; an empty one is the begin."""
    return min(max(map(epoch_of, cut)), *map(stream.history.last_epoch, cut)) if cut else stream.history.first


def is_equal_or_after(stream: Stream, cut: Cut, other: Cut) -> bool:
    """Whether `cut` lies nowhere before `other`.

    A segment not yet reached counts for nothing beside an older one over the same keys: each cut is equal to itself.
    """
    _check_known(stream, cut)
    _check_known(stream, other)
    return compare(cut, other, _ranges(stream, (*cut, *other))) in (Order.AFTER, Order.SAME)


def is_valid(stream: Stream, cut: Cut) -> bool:
    """Whether reading could have come to this cut. Raises what `flaw` does."""
    return not flaw(stream, cut)


def flaw(stream: Stream, cut: Cut) -> str:
    """Why reading could not have come to this cut, naming segments by their ids; "" if it could.

    Raises NotFoundError for ids of epochs that are not there, InvalidArgumentError for other ids not of the stream.
    """
    _check_known(stream, cut)
    current = sorted((stream.history.segment(s) for s in cut if cut[s] >= 0), key=lambda s: s.low)
    future = [stream.history.segment(s) for s in cut if cut[s] < 0]
    if not current:
        raise InvalidArgumentError("a stream cut needs at least one offset that is not negative")
    for one, other in pairwise(current):
        if other.low < one.high:
            return f"the cut is in segments {one.id} and {other.id}, which have keys in common"
    if lacking := _not_covered(stream.history.segments_of(max(map(epoch_of, cut))), (*current, *future)):
        return f"the cut names no segment for some keys: it lacks {some([str(s.id) for s in lacking])}"
    index = RangeIndex(current)
    for segment in future:
        for other in index.overlapping(segment.low, segment.high):
            if other.id >= segment.id:
                return f"segment {segment.id} is given as not yet reached, but {other.id} behind it is reached"
    return _passed_over(stream, cut, index, _gaps(current))


def beyond_end(stream: Stream, cut: Cut, lengths: Mapping[int, int]) -> str:
    """Why a valid cut lies beyond what is written, naming the first segment that ends before it; "" if it does not.

    `lengths` are bytes by segment id and may be old: segments only grow. Raises LengthsUnknownError for those missing.
    """
    reached = {s: at for s, at in sorted(cut.items()) if at > 0}
    unknown = {s: segment_name(*stream.id, s) for s in reached if s not in lengths}
    if unknown:
        raise LengthsUnknownError(unknown)
    short = [s for s, at in reached.items() if lengths[s] < at]
    if not short:
        return ""
    first, more = short[0], f", and {len(short) - 1} more end before it" if len(short) > 1 else ""
    name = segment_name(*stream.id, first)
    return f"the cut is at offset {reached[first]} of segment {name}, which has {lengths[first]} bytes{more}"


def segments_between(stream: Stream, start: Cut, end: Cut) -> set[int]:
    """Ids of all segments from `start` to `end`, with theirs; an empty cut is the stream's begin or end.

    Raises InvalidArgumentError if `end` lies before `start`, and what `is_valid` does of unknown segments.
    """
    if start and end and not is_equal_or_after(stream, end, start):
        raise InvalidArgumentError("the second cut lies before the first")
    begin = start or dict.fromkeys(stream.history.epoch(stream.history.first).segments, 0)
    until = end or dict.fromkeys(stream.active_epoch.segments, 0)
    for cut in (begin, until):
        _check_known(stream, cut)
    first, last = index_of_positions(stream, begin), index_of_positions(stream, until)
    return {
        s.id
        for s in stream.history.within(first_epoch(stream, start), max(map(epoch_of, until)))
        if all(f.id <= s.id for f in first.overlapping(s.low, s.high))
        and all(t.id >= s.id for t in last.overlapping(s.low, s.high))
    }


def lies_before(stream: Stream, cut: Cut) -> Callable[[Segment], bool]:
    """Says of a segment whether all of it lies before the cut; before an empty cut nothing does."""
    if not cut:
        return lambda _segment: False
    index = index_of_positions(stream, cut)
    return lambda s: s.id not in cut and all(at.id > s.id for at in index.overlapping(s.low, s.high))


def size_between(stream: Stream, start: Cut, end: Cut, segments: Iterable[int]) -> int:
    """Bytes from one cut to the other over the segments between them, none of them before the head."""
    total = 0
    for s in segments:
        until = max(end[s], 0) if s in end else max(stream.history.sealed_sizes.get(s, 0), 0)
        total += until - max(start.get(s, 0), 0)
    return total


def _ranges(stream: Stream, segments: Iterable[int]) -> dict[int, tuple[float, float]]:
    found = (stream.history.segment(s) for s in segments)
    return {s.id: (s.low, s.high) for s in found}


def index_of_positions(stream: Stream, cut: Cut) -> RangeIndex:
    """The segments of a cut over those keys at which they are its position: what is not yet reached gives way."""
    return RangeIndex(Segment(s, low, high) for low, high, (s, _) in positions(cut, _ranges(stream, cut)))


def _check_known(stream: Stream, cut: Cut) -> None:
    if not cut:
        raise InvalidArgumentError("an empty stream cut has no position in the stream")
    for s in cut:
        if epoch_of(s) >= 0 and not stream.history.has(epoch_of(s)):
            raise NotFoundError(f"{stream.id} has no epoch {epoch_of(s)}")
        if stream.history.find(s) is None:
            raise InvalidArgumentError(f"{stream.id} has no segment {s}")


def _gaps(current: list[Segment]) -> list[tuple[float, float]]:
    """The key ranges that no current segment covers; they are sorted, and none overlaps another."""
    gaps, reached = [], 0.0
    for segment in current:
        if segment.low > reached:
            gaps.append((reached, segment.low))
        reached = segment.high
    if reached < 1.0:
        gaps.append((reached, 1.0))
    return gaps


def _not_covered(segments: Iterable[Segment], by: Iterable[Segment]) -> list[Segment]:
    """Those of the segments that have keys which the others, which may overlap each other, do not cover."""
    covered: list[tuple[float, float]] = []
    for segment in sorted(by, key=lambda s: s.low):
        if covered and segment.low <= covered[-1][1]:
            low, high = covered.pop()
            covered.append((low, max(high, segment.high)))
        else:
            covered.append((segment.low, segment.high))
    lows = [low for low, _ in covered]
    at = [(bisect_right(lows, s.low) - 1, s) for s in segments]
    return [s for i, s in at if i < 0 or covered[i][1] < s.high]


def _passed_over(stream: Stream, cut: Cut, current: RangeIndex, gaps: list[tuple[float, float]]) -> str:
    """Follow the segments over the gaps from the oldest epoch on: none may be newer than a current segment over it."""
    oldest = RangeIndex(stream.history.segments_of(min(epoch_of(s) for s in cut)))
    waiting = [s for low, high in gaps for s in oldest.overlapping(low, high)]
    passed: set[int] = set()
    while waiting:
        segment = waiting.pop()
        if segment.id in cut or segment.id in passed:
            continue
        over = list(current.overlapping(segment.low, segment.high))
        for older in over:
            if older.id < segment.id:
                return f"the cut lies behind segment {segment.id}, but in {older.id}, which is read before it"
        passed.add(segment.id)
        if over:
            waiting.extend(successors(stream, segment.id))
    return ""


def successors(stream: Stream, segment: int) -> list[Segment]:
    """The segments that replaced this one, by key range; none while it is active or if the stream was sealed on it."""
    replaced_in = stream.history.replaced_in(segment)
    if replaced_in is None:
        return []
    replaced = stream.history.segment(segment)
    following = stream.history.segments_of(replaced_in)
    if replaced_in in stream.history.after_all:
        return following
    return [s for s in following if s.low < replaced.high and s.high > replaced.low]
