"""The shared state of a reader group: which reader has which segment, and how far it has got. Pure.

Why not the reader group of the PyPI client `pravega` (the Rust client): it records positions at a time of its own
choosing, every three seconds inside its calls, so an application cannot say "this is done now"; a segment that a
retention policy truncated counts there as read to its end, and its rest is left out; its calls hold Python's lock while
they wait, so that heartbeats would stop; and its state is a key-value table, while here all coordination is to go
through streams.

The state is what all updates, applied in their order, make of nothing. A decision is a function of the newest state
that returns updates; they are appended only if none came in between (`sluice_client.StateSynchronizer`), so
what a decision found is what its updates meet. From that follows: a segment has one reader at most; it is read on from
the offset that was recorded last, by any reader; a reader that was put offline moves no position any more.

A segment is in exactly one of four states: *unassigned*, *assigned* to a reader, *waiting* for the segments that it
replaced (so that the events of a key are read in their order), or read to its end and forgotten. Offsets are bytes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec


class NotOnline(Exception):
    """The reader is not in the group (any more): its segments belong to others."""


class NotTheReader(Exception):
    """The reader does not have this segment."""


class Held(msgspec.Struct, frozen=True):
    """A segment with its reader; everything before `offset` is done."""

    reader: str
    offset: int


class GroupState(msgspec.Struct, frozen=True):
    """Never changed in place. `waiting` names for each segment those that must be read to their end before it."""

    begun: bool = False
    readers: frozenset[str] = frozenset()
    assigned: dict[str, Held] = {}
    unassigned: dict[str, int] = {}
    waiting: dict[str, frozenset[str]] = {}

    @property
    def segments(self) -> list[str]:
        """All that are not read to their end."""
        return sorted({*self.assigned, *self.unassigned, *self.waiting})

    def held_by(self, reader: str) -> dict[str, int]:
        """The segments of a reader and their recorded offsets."""
        return {segment: held.offset for segment, held in self.assigned.items() if held.reader == reader}


class Begun(msgspec.Struct, frozen=True, tag=True):
    segments: dict[str, int]
    waiting: dict[str, frozenset[str]]


class CameOnline(msgspec.Struct, frozen=True, tag=True):
    reader: str


class WentOffline(msgspec.Struct, frozen=True, tag=True):
    """All its segments are unassigned at their recorded offsets."""

    reader: str


class Acquired(msgspec.Struct, frozen=True, tag=True):
    reader: str
    segments: tuple[str, ...]


class Released(msgspec.Struct, frozen=True, tag=True):
    reader: str
    segments: tuple[str, ...]


class Recorded(msgspec.Struct, frozen=True, tag=True):
    reader: str
    positions: dict[str, int]


class Completed(msgspec.Struct, frozen=True, tag=True):
    """A segment was read to its end; `successors` with all segments that each of them replaced."""

    reader: str
    segment: str
    successors: dict[str, tuple[str, ...]]


Update = Begun | CameOnline | WentOffline | Acquired | Released | Recorded | Completed
Decision = Callable[[GroupState], Sequence[Update]]


# --- decisions


def begin(segments: Mapping[str, int], waiting: Mapping[str, frozenset[str]]) -> Decision:
    """Begins with these segments, unless the group has begun already; `waiting` are known to follow."""
    return lambda state: [] if state.begun else [Begun(dict(segments), dict(waiting))]


def come_online(reader: str) -> Decision:
    """Adds a reader."""
    return lambda state: [] if reader in state.readers else [CameOnline(reader)]


def go_offline(readers: Iterable[str]) -> Decision:
    """Takes readers out of the group, for themselves or in their place; nothing happens to those that are out."""
    return lambda state: [WentOffline(reader) for reader in sorted(state.readers.intersection(readers))]


def record(reader: str, positions: Mapping[str, int]) -> Decision:
    """Moves positions forward. Raises NotOnline, NotTheReader."""

    def decide(state: GroupState) -> list[Update]:
        held = _held(state, reader)
        strange = positions.keys() - held.keys()
        if strange:
            raise NotTheReader(f"{reader} of {sorted(strange)}")
        moved = {segment: offset for segment, offset in positions.items() if offset > held[segment]}
        return [Recorded(reader, moved)] if moved else []

    return decide


def complete(reader: str, segment: str, successors: Mapping[str, Iterable[str]]) -> Decision:
    """Ends a segment. Raises NotOnline, NotTheReader."""

    def decide(state: GroupState) -> list[Update]:
        held = _held(state, reader)
        if segment in held:
            return [Completed(reader, segment, {name: tuple(before) for name, before in successors.items()})]
        if segment in state.assigned or segment in state.unassigned:
            raise NotTheReader(f"{reader} of {segment}")
        return []

    return decide


def rebalance(reader: str) -> Decision:
    """Acquires what is unassigned up to a fair share, or releases a segment if some reader has two fewer.

    A reader takes the whole part of its share; beyond that it takes only if none has fewer, so that what was released
    for a reader that has fewer is not taken back. Raises NotOnline.
    """

    def decide(state: GroupState) -> list[Update]:
        mine = sorted(_held(state, reader))
        loads = Counter(dict.fromkeys(state.readers, 0))
        loads.update(held.reader for held in state.assigned.values())
        share = (len(state.assigned) + len(state.unassigned)) // len(state.readers)
        taken: list[str] = []
        for segment in sorted(state.unassigned):
            if loads[reader] >= share and loads[reader] > min(loads.values()):
                break
            taken.append(segment)
            loads[reader] += 1
        if taken:
            return [Acquired(reader, tuple(taken))]
        if not state.unassigned and loads[reader] - min(loads.values()) > 1:
            return [Released(reader, (mine[-1],))]
        return []

    return decide


def _held(state: GroupState, reader: str) -> dict[str, int]:
    if reader not in state.readers:
        raise NotOnline(reader)
    return state.held_by(reader)


# --- what an update does


def evolve(state: GroupState, update: Update) -> GroupState:
    """The state after an update. What no decision gives raises KeyError or NotTheReader."""
    match update:
        case Begun():
            return msgspec.structs.replace(state, begun=True, unassigned=update.segments, waiting=update.waiting)
        case CameOnline():
            return msgspec.structs.replace(state, readers=state.readers | {update.reader})
        case WentOffline():
            state = _unassign(state, update.reader, state.held_by(update.reader))
            return msgspec.structs.replace(state, readers=state.readers - {update.reader})
        case Acquired():
            return _assign(state, update.reader, update.segments)
        case Released():
            return _unassign(state, update.reader, update.segments)
        case Recorded():
            moved = {
                segment: Held(update.reader, offset)
                for segment, offset in update.positions.items()
                if _of(state, update.reader, segment)
            }
            return msgspec.structs.replace(state, assigned=state.assigned | moved)
        case Completed():
            return _complete(state, update)


def _assign(state: GroupState, reader: str, segments: Iterable[str]) -> GroupState:
    assigned, unassigned = dict(state.assigned), dict(state.unassigned)
    for segment in segments:
        assigned[segment] = Held(reader, unassigned.pop(segment))
    return msgspec.structs.replace(state, assigned=assigned, unassigned=unassigned)


def _unassign(state: GroupState, reader: str, segments: Iterable[str]) -> GroupState:
    assigned, unassigned = dict(state.assigned), dict(state.unassigned)
    for segment in segments:
        unassigned[segment] = _of(state, reader, segment).offset
        del assigned[segment]
    return msgspec.structs.replace(state, assigned=assigned, unassigned=unassigned)


def _complete(state: GroupState, update: Completed) -> GroupState:
    """A successor waits from when the first of its predecessors ends until the last one does."""
    _of(state, update.reader, update.segment)
    assigned, unassigned, waiting = dict(state.assigned), dict(state.unassigned), dict(state.waiting)
    del assigned[update.segment]
    for successor, predecessors in update.successors.items():
        left = waiting.get(successor, frozenset(predecessors)) - {update.segment}
        if left:
            waiting[successor] = left
        else:
            waiting.pop(successor, None)
            unassigned[successor] = 0
    return msgspec.structs.replace(state, assigned=assigned, unassigned=unassigned, waiting=waiting)


def _of(state: GroupState, reader: str, segment: str) -> Held:
    held = state.assigned[segment]
    if held.reader != reader:
        raise NotTheReader(f"{reader} of {segment}")
    return held
