"""What a watermark is, and the cut that several positions of writers come to. Also for who has no log: pure values."""

from bisect import bisect_left, bisect_right

import msgspec

from sluice.domain.segment import Segment, epoch_of


class Watermark(msgspec.Struct, frozen=True):
    """Bounds in the writers' own time, and a cut that covers the key space: byte offsets of segments."""

    lower: int
    upper: int
    cut: dict[Segment, int]


class UpperBound:
    """The furthest of several positions, in whatever order they are given: segments, by range, that do not overlap.

    A segment counts if no newer one was given over any of its range. What it covers beyond the newer one is a gap then,
    which no older segment may fill: a writer that has been slow to see a scale names segments of several epochs, and a
    cut with the oldest of them would lie behind what others have reported.
    """

    def __init__(self) -> None:
        self._given: dict[int, tuple[Segment, int]] = {}

    def add(self, segment: Segment, offset: int) -> None:
        """The further offset counts, and of two ranges of one segment the one that was given first.

        None is below 0: Pravega's writers say -1 of a segment of which nothing is acknowledged to them yet.
        """
        known, before = self._given.get(segment.id, (segment, 0))
        self._given[segment.id] = known, max(before, offset)

    def newest_epoch(self) -> int:
        """The last one of which a segment was given; -1 if none was."""
        return max(map(epoch_of, self._given), default=-1)

    def gaps(self) -> list[tuple[float, float]]:
        """The ranges of the key space that are not covered."""
        found, reached = list[tuple[float, float]](), 0.0
        for segment in self._counting():
            if segment.low != reached:
                found.append((reached, segment.low))
            reached = segment.high
        return found if reached == 1.0 else [*found, (reached, 1.0)]

    def cut(self) -> dict[Segment, int]:
        """The offsets by segment, in the order of the key ranges."""
        return {s: self._given[s.id][1] for s in self._counting()}

    def _counting(self) -> list[Segment]:
        """The segments that count, by range: from the newest one on, each over whose range nothing was given before."""
        counting, lows, highs = list[Segment](), list[float](), list[float]()
        for id in sorted(self._given, reverse=True):
            segment, _ = self._given[id]
            first, last = bisect_right(highs, segment.low), bisect_left(lows, segment.high)
            if first == last:
                counting.append(segment)
            lows[first:last] = [min([segment.low, *lows[first:last]])]
            highs[first:last] = [max([segment.high, *highs[first:last]])]
        return sorted(counting, key=lambda s: s.low)
