"""What has happened in a partition lately: how often each type of event counted, by minute, and the last changes.

It is folded with the records and is part of every snapshot. So the last hour is known to each process with the
journal, however short ago that was, and to all alike; what happened while nothing was there to happen is not made up.
Times are the log's, epoch ms. Belongs to the thread that folds.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any

import msgspec

MINUTE_MS = 60_000
KEPT_MINUTES = 60
"""Beside the one that is not over."""

MAX_BACK_MS = 5 * MINUTE_MS
"""A clock that is that far back goes right again: records of one that was ahead do not hold up the minutes."""

KEPT_CHANGES = 50
KEPT_EVENTS = 10
"""Of a change the first ones, and no more of them than their names: events may be large, and many."""


class LateChange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry that counted: when, and its first events, each as its aggregate and its type."""

    at: int
    events: list[tuple[str, str]]


class Minute(msgspec.Struct, array_like=True):
    """How many events of each type counted in the minute that begins at `begin`."""

    begin: int
    counts: dict[str, int]


class CapturedLately(msgspec.Struct, frozen=True, array_like=True):
    """All of it; see Lately."""

    first_ms: int = 0
    minutes: list[Minute] = []
    changes: list[LateChange] = []


class Lately:
    """`first_ms` is when the first entry counted that ever did, 0 before that."""

    __slots__ = ("_changes", "_end_ms", "_last", "_minutes", "first_ms")

    def __init__(self, captured: CapturedLately | None = None) -> None:
        found = captured or CapturedLately()
        self.first_ms = found.first_ms
        self._minutes = deque(found.minutes, KEPT_MINUTES + 1)
        self._last = self._minutes[-1].counts if self._minutes else {}
        self._end_ms = self._minutes[-1].begin + MINUTE_MS if self._minutes else 0
        self._changes = deque(found.changes, KEPT_CHANGES)

    def add(self, events: tuple[Any, ...], timestamp_ms: int) -> None:
        """The events of an entry that counts. Those of a clock that went back a little are in the last minute."""
        if timestamp_ms >= self._end_ms or timestamp_ms < self._end_ms - MAX_BACK_MS:
            self._turn(timestamp_ms)
        counts = self._last
        for event in events:
            name = type(event).__name__
            counts[name] = counts.get(name, 0) + 1
        named = [(event.aggregate, type(event).__name__) for event in events[:KEPT_EVENTS]]
        self._changes.append(LateChange(timestamp_ms, named))

    def _turn(self, timestamp_ms: int) -> None:
        self.first_ms = self.first_ms or timestamp_ms
        begin = timestamp_ms - timestamp_ms % MINUTE_MS
        self._last = {}
        self._minutes.append(Minute(begin, self._last))
        self._end_ms = begin + MINUTE_MS

    def minutes(self) -> Iterator[Minute]:
        """Those in which something happened, in the order of the entries; some may be older than an hour."""
        return iter(self._minutes)

    def changes(self) -> Iterator[LateChange]:
        """The last ones, the earliest first."""
        return iter(self._changes)

    def captured(self) -> CapturedLately:
        return CapturedLately(self.first_ms, list(self._minutes), list(self._changes))
