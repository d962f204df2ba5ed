"""How stream cuts of one stream compare, from the ids and key ranges of their segments alone.

Two segments over the same key are never in one epoch, so the one with the smaller id was sealed before the other one
began: over any one key, (segment id, offset) orders all positions, whatever epochs lie between, and the history of
the stream is not needed. A cut may name a segment not yet reached (-1) over keys at which it names an older one as
well; there the older one is its position. So cuts are compared and merged key by key.
Rules: background-and-other-workflows 1.6, 1.8, 1.9, stream-and-transaction-semantics 7.7, 8.1, 8.7.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from heapq import heappop, heappush
from itertools import pairwise

Cut = Mapping[int, int]
Ranges = Mapping[int, tuple[float, float]]


class Order(Enum):
    """Where one cut lies as seen from another one; OVERLAPS: before it over some keys, after it over others."""

    BEFORE = "BEFORE"
    SAME = "SAME"
    AFTER = "AFTER"
    OVERLAPS = "OVERLAPS"


_ORDERS = {
    (False, False): Order.SAME,
    (True, False): Order.BEFORE,
    (False, True): Order.AFTER,
    (True, True): Order.OVERLAPS,
}


def compare(cut: Cut, other: Cut, ranges: Ranges) -> Order:
    """Where `cut` lies as seen from `other`. Keys that one of them says nothing about do not count.

    Raises KeyError for a segment without a range.
    """
    if cut.keys() == other.keys():
        offsets = [(at, other[s]) for s, at in cut.items()]
        return _ORDERS[any(a < b for a, b in offsets), any(a > b for a, b in offsets)]
    less = greater = False
    mine, theirs = positions(cut, ranges), positions(other, ranges)
    i = j = 0
    while i < len(mine) and j < len(theirs):
        low, high, here = mine[i]
        other_low, other_high, there = theirs[j]
        if low < other_high and other_low < high:
            less |= here < there
            greater |= here > there
        i += high <= other_high
        j += other_high <= high
    return _ORDERS[less, greater]


def is_at_or_before(cut: Cut, other: Cut, ranges: Ranges) -> bool:
    return compare(cut, other, ranges) in (Order.BEFORE, Order.SAME)


def lower_bound(cuts: Iterable[Cut], ranges: Ranges) -> dict[int, int]:
    """The furthest cut that is nowhere after any of these; empty if there are none.

    It is valid if they are: where one of them is still on an old segment, none of the others can matter beyond it,
    because a later segment over any of its keys cannot have been begun by the one that has yet to read the old one.
    """
    furthest_back: dict[int, int] = {}
    for cut in cuts:
        for segment, at in cut.items():
            furthest_back[segment] = min(at, furthest_back.get(segment, at))
    return dict(position for _, _, position in positions(furthest_back, ranges))


def positions(cut: Cut, ranges: Ranges) -> list[tuple[float, float, tuple[int, int]]]:
    """(low, high, (segment, offset)) over the keys in order: of the segments over a key the oldest one."""
    segments = sorted([(*ranges[s], (s, at)) for s, at in cut.items()])
    reached = 0.0
    for low, high, _ in segments:
        if low < reached:
            return list(_sweep(segments))
        reached = high
    return segments


def _sweep(
    segments: list[tuple[float, float, tuple[int, int]]],
) -> Iterator[tuple[float, float, tuple[int, int]]]:
    bounds = sorted({bound for low, high, _ in segments for bound in (low, high)})
    over: list[tuple[tuple[int, int], float]] = []
    begun = 0
    for low, high in pairwise(bounds):
        while begun < len(segments) and segments[begun][0] <= low:
            _, end, position = segments[begun]
            heappush(over, (position, end))
            begun += 1
        while over and over[0][1] <= low:
            heappop(over)
        if over:
            yield low, high, over[0][0]
