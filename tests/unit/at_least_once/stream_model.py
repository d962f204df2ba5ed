"""A stream that is scaled while it is read, and readers of it that stop between any two steps, for property tests.

Offsets count events: a segment of length 5 has the offsets 0 to 5.
"""

from dataclasses import dataclass, field

from at_least_once.group_state import (
    Decision,
    GroupState,
    begin,
    come_online,
    complete,
    evolve,
    go_offline,
    rebalance,
    record,
)


@dataclass
class Segment:
    name: str
    predecessors: tuple[str, ...] = ()
    successors: tuple[str, ...] = ()
    length: int = 0
    sealed: bool = False


@dataclass
class Stream:
    """`active` are the names of the segments that are written to, in the order of their key ranges."""

    segments: dict[str, Segment] = field(default_factory=dict)
    active: list[str] = field(default_factory=list)

    def add(self, predecessors: tuple[str, ...] = ()) -> str:
        name = f"segment-{len(self.segments):03d}"
        self.segments[name] = Segment(name, predecessors)
        return name

    def replace(self, at: int, old: int, new: int) -> None:
        """Scales: `old` neighbours, from number `at` on, become `new` segments."""
        before = tuple(self.active[at : at + old])
        after = tuple(self.add(before) for _ in range(new))
        for name in before:
            self.segments[name].sealed = True
            self.segments[name].successors = after
        self.active[at : at + old] = after

    def seal(self) -> None:
        for name in self.active:
            self.segments[name].sealed = True

    def successors(self, name: str) -> dict[str, tuple[str, ...]]:
        return {after: self.segments[after].predecessors for after in self.segments[name].successors}


@dataclass
class Reader:
    """What a process knows: `held` is what it thinks it has, with where it stands. Steps are those of the processor."""

    name: str
    held: dict[str, int] = field(default_factory=dict)


class World:
    """The shared state, the stream, and what was processed: for each segment how often each of its events was."""

    def __init__(self, segments: int) -> None:
        self.stream = Stream()
        self.stream.active = [self.stream.add() for _ in range(segments)]
        self.state = GroupState()
        self.processed: dict[str, list[int]] = {}
        self.readers: dict[str, Reader] = {}
        self._names = 0
        self.update(begin(dict.fromkeys(self.stream.active, 0), {}))

    def update(self, decision: Decision) -> GroupState:
        for update in decision(self.state):
            self.state = evolve(self.state, update)
        return self.state

    def join(self) -> Reader:
        reader = Reader(f"reader-{self._names}")
        self._names += 1
        self.update(come_online(reader.name))
        self.readers[reader.name] = reader
        return reader

    def rebalance(self, reader: Reader) -> None:
        self.record(reader)
        held = self.update(rebalance(reader.name)).held_by(reader.name)
        reader.held = {segment: reader.held.get(segment, offset) for segment, offset in held.items()}

    def process(self, reader: Reader, events: int) -> None:
        """Processes the next events of each segment; nothing of that is recorded."""
        for name, offset in reader.held.items():
            segment = self.stream.segments[name]
            for before in segment.predecessors:
                assert self.done(before), f"{name} is read before {before} is"
            times = self.processed.setdefault(name, [])
            times += [0] * (segment.length - len(times))
            end = min(segment.length, offset + events)
            for at in range(offset, end):
                times[at] += 1
            reader.held[name] = end

    def record(self, reader: Reader) -> None:
        self.update(record(reader.name, reader.held))

    def complete(self, reader: Reader) -> None:
        """Ends each segment that was read to its end."""
        self.record(reader)
        for name, offset in list(reader.held.items()):
            segment = self.stream.segments[name]
            if segment.sealed and offset == segment.length:
                self.update(complete(reader.name, name, self.stream.successors(name)))
                del reader.held[name]

    def depart(self, *readers: str) -> None:
        self.update(go_offline(readers))

    def done(self, name: str) -> bool:
        segment = self.stream.segments[name]
        times = self.processed.get(name, [])
        return segment.sealed and len(times) == segment.length and all(times)

    def check(self) -> None:
        """What must be true at any moment."""
        segments = [*self.state.assigned, *self.state.unassigned, *self.state.waiting]
        assert len(segments) == len(set(segments)), f"a segment is in two states: {sorted(segments)}"
        assert {held.reader for held in self.state.assigned.values()} <= self.state.readers
        recorded = {name: held.offset for name, held in self.state.assigned.items()} | self.state.unassigned
        for name, offset in recorded.items():
            times = self.processed.get(name, [])
            assert all(times[:offset]) and len(times) >= offset, f"{name}: recorded {offset}, processed {times}"
