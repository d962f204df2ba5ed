"""A stream that is scaled while it is read, for simulated readers. Offsets count events."""

from random import Random

import msgspec

from sluice.domain.segment import segment_id, segment_name


class Segment(msgspec.Struct):
    id: int
    low: float
    high: float
    length: int = 0
    sealed: bool = False
    predecessors: tuple[str, ...] = ()
    successors: tuple[str, ...] = ()


class ScaledStream:
    """`active` are the segments that are written to, in the order of their key ranges."""

    def __init__(self, random: Random, segments: int) -> None:
        self._random = random
        self._epoch = 0
        self.segments: dict[str, Segment] = {}
        self.active = [self._add(number / segments, (number + 1) / segments, ()) for number in range(segments)]

    def write(self) -> None:
        """A few events to each active segment."""
        for name in self.active:
            self.segments[name].length += self._random.randrange(4)

    def scale(self) -> None:
        """Splits a segment, or merges two neighbours."""
        self._epoch += 1
        at = self._random.randrange(len(self.active))
        old = self.active[at : at + self._random.choice([1, 2])]
        low, high = self.segments[old[0]].low, self.segments[old[-1]].high
        middle = (low + high) / 2
        edges = [(low, middle), (middle, high)] if len(old) == 1 else [(low, high)]
        new = [self._add(*edge, tuple(old)) for edge in edges]
        for name in old:
            self.segments[name].sealed = True
            self.segments[name].successors = tuple(new)
        self.active[at : at + len(old)] = new

    def successors(self, name: str) -> tuple[dict[str, set[int]], dict[str, tuple[float, float]]]:
        """What follows a segment, with the ids of what each follows, and with their ranges of keys."""
        following = {after: self.segments[after] for after in self.segments[name].successors}
        before = {after: {self.segments[one].id for one in found.predecessors} for after, found in following.items()}
        return before, {after: (found.low, found.high) for after, found in following.items()}

    def is_finished(self, name: str, offset: int) -> bool:
        return self.segments[name].sealed and offset in (-1, self.segments[name].length)

    def before(self, positions: dict[str, int]) -> set[tuple[str, int]]:
        """All events that one who goes on from some positions will not read."""
        behind: set[str] = set()
        unseen = list(positions)
        while unseen:
            successors = set(self.segments[unseen.pop()].successors) - behind
            behind |= successors
            unseen += successors
        ends = {name: found.length for name, found in self.segments.items() if name not in behind}
        ends |= {name: at for name, at in positions.items() if at >= 0}
        return {(name, event) for name, end in ends.items() for event in range(end)}

    def _add(self, low: float, high: float, predecessors: tuple[str, ...]) -> str:
        id = segment_id(self._epoch, len(self.segments))
        name = segment_name("s", "t", id)
        self.segments[name] = Segment(id, low, high, predecessors=predecessors)
        return name
