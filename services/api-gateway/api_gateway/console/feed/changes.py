"""What changed lately: the journal's entries as changes of what a page shows, and the ring that keeps the latest.

A change names an aggregate, and what happened to it, not what it is now: the page fetches what it shows. The
transactions of a stream are one subject, `txn:scope/stream`, however many of them change. A position is the offset of
each partition behind which something is new. Offsets are the same on all gateways, so any of them goes on from a
position of another. Pure functions and plain state; belongs to the event loop.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

MAX_KEPT = 10_000
"""How many changes the ring keeps."""

Position = tuple[int, ...]
"""The first offset of each partition that is new."""

_NUMBERS = 20
"""No offset has as many digits."""


class MalformedPositionError(Exception):
    """What a caller resumes from is no position of a journal."""


def position_text(position: Position) -> str:
    """A position as pages send it back."""
    return ".".join(map(str, position))


def position_of(text: str) -> Position:
    """The position in a text. Raises MalformedPositionError."""
    parts = text.split(".")
    if not all(p.isascii() and p.isdigit() and len(p) < _NUMBERS for p in parts):
        raise MalformedPositionError("a position has offsets with dots between them")
    return tuple(map(int, parts))


class Change:
    """What happened to a subject in one partition; `offset` and `at` (epoch ms, the broker's) are of the last record.

    `types` are the events, each once, in the order in which they came first.
    """

    __slots__ = ("at", "offset", "partition", "subject", "types")

    def __init__(self, subject: str, partition: int, offset: int, at: int, types: dict[str, None]) -> None:
        self.subject = subject
        self.partition = partition
        self.offset = offset
        self.at = at
        self.types = types

    def joined(self, later: "Change") -> "Change":
        """This change and a later one of the same subject."""
        return Change(self.subject, later.partition, later.offset, later.at, {**self.types, **later.types})


Recorded = tuple[int, int, int, tuple[Any, ...]]
"""An entry as the journal's listener keeps it: partition, offset, broker time in epoch ms, events."""


def subject_of(aggregate: str) -> str | None:
    """What a page shows of an aggregate; None for what none shows."""
    kind, _, name = aggregate.partition(":")
    if kind in ("txn", "prepared"):
        return f"txn:{name.rpartition('/')[0]}"
    return None if kind == "fences" else aggregate


def names_of(subject: str) -> tuple[str, ...]:
    """The names by which a feed follows a subject: its own, that of its stream, that of its scope."""
    kind, _, name = subject.partition(":")
    scope, slash, _ = name.partition("/")
    own = f"stream:{name}" if kind in ("txn", "commits") else subject
    return (own, f"scope:{scope}") if slash else (own,)


_NAMES = re.compile(r"(scope):[^/,]+|(stream|group|table|rates):[^/,]+/[^/,]+")


def kind_of(name: str) -> str | None:
    """The kind of what a name stands for, where that is not everything or the cluster; None if it is no name."""
    found = _NAMES.fullmatch(name)
    return (found[1] or found[2]) if found is not None else None


def merged(recorded: Iterable[Recorded]) -> list[Change]:
    """The entries as changes, one for each subject, in the order in which the subjects came first."""
    found: dict[str, Change] = {}
    for partition, offset, at, events in recorded:
        for event in events:
            subject = subject_of(event.aggregate)
            if subject is None:
                continue
            change = found.get(subject)
            if change is None:
                change = found[subject] = Change(subject, partition, offset, at, {})
            change.offset, change.at = offset, at
            change.types[type(event).__name__] = None
    return list(found.values())


def joined(changes: Iterable[Change]) -> list[Change]:
    """One change for each subject."""
    found: dict[str, Change] = {}
    for change in changes:
        before = found.get(change.subject)
        found[change.subject] = change if before is None else before.joined(change)
    return list(found.values())


class Ring:
    """The latest changes, each with a number one higher than the one before; `end` is the number of the next one."""

    def __init__(self, begin: Sequence[int], most: int = MAX_KEPT) -> None:
        self._most = most
        self._changes: deque[Change] = deque()
        self._floors = list(begin)
        """By partition the offset from which on everything is in the ring."""
        self.end = 0

    def add(self, changes: Iterable[Change]) -> None:
        """Keep these, and forget the oldest ones where there are too many."""
        for change in changes:
            self._changes.append(change)
            self.end += 1
        while len(self._changes) > self._most:
            oldest = self._changes.popleft()
            self._floors[oldest.partition] = max(self._floors[oldest.partition], oldest.offset + 1)

    def clear(self, begin: Sequence[int]) -> None:
        """Something was missed: what is known begins there."""
        self._changes.clear()
        self._floors = list(begin)
        # Who has read up to here has missed something, too.
        self.end += 1

    def behind(self, number: int) -> Iterator[Change] | None:
        """The changes from this number on, oldest first; None if some of them are not kept any more."""
        count = self.end - number
        if count > len(self._changes):
            return None
        return islice(self._changes, len(self._changes) - count, None)

    def since(self, position: Position, present: Position) -> list[Change] | None:
        """The changes behind a position, one for each subject; None if it does not lie within what is known.

        `present` is where this process is. A position from before a restore may have another number of partitions.
        """
        if len(position) != len(present):
            return None
        if not all(floor <= at <= end for floor, at, end in zip(self._floors, position, present, strict=True)):
            return None
        return joined(change for change in self._changes if change.offset >= position[change.partition])
