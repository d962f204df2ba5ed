"""The last hour of the system, minute by minute: there at once, however short ago this process was started.

What happened is part of what is folded (`sluice.engine.lately`), so it came with the journal. How many transactions
were open, or waited for their commit, follows from how many do now and from what happened since. All pages share one
answer for a moment. Belongs to the event loop.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from itertools import chain

import msgspec

from api_gateway.console.feed.changes import subject_of
from api_gateway.console.tally import Tally
from api_gateway.console.written import Written
from api_gateway.edge.reads import Reads
from sluice.domain.cluster.state import Cluster
from sluice.domain.transaction.events import (
    TransactionAborted,
    TransactionAborting,
    TransactionCommitted,
    TransactionCommitting,
    TransactionOpened,
)
from sluice.engine.journal import Journal
from sluice.engine.lately import KEPT_MINUTES, MINUTE_MS
from sluice.engine.ports import Clock

SHARED_S = 5.0
COUNT_S = 1.0
"""How long an answer waits for counts that are not known yet."""

OPENED, COMMITTING, COMMITTED, ABORTING, ABORTED = (
    kind.__name__
    for kind in (
        TransactionOpened,
        TransactionCommitting,
        TransactionCommitted,
        TransactionAborting,
        TransactionAborted,
    )
)


class MinuteOfSystem(msgspec.Struct):
    """What happened in the minute that begins at `at` (epoch ms), and how much there was at its end.

    `changes` are events of the journal. What is None is not known. `silent` are containers that did not answer for a
    part of it at least. `bytes` were written to the streams that are sampled; see `Written`.
    """

    at: int
    changes: int = 0
    commits: int = 0
    aborts: int = 0
    open: int | None = None
    waiting: int | None = None
    silent: int = 0
    bytes: int | None = None


class Hour(msgspec.Struct, frozen=True):
    """The minutes up to `to` (epoch ms), where the last one ends; none is from before the journal's first entry."""

    minutes: list[MinuteOfSystem]
    to: int


class SubjectChange(msgspec.Struct, frozen=True):
    """What happened to a subject of feeds in one entry of the journal, at `at` (epoch ms)."""

    aggregate: str
    types: list[str]
    at: int


class LastHour:
    """See the module."""

    def __init__(self, journal: Journal, reads: Reads, tally: Tally, written: Written, clock: Clock) -> None:
        self._journal = journal
        self._reads = reads
        self._tally = tally
        self._written = written
        self._clock = clock
        self._turn = asyncio.Lock()
        self._last: Hour | None = None
        self._good_until_s = 0.0

    async def hour(self) -> Hour:
        """The minutes, as of a moment ago."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            if self._last is None or loop.time() >= self._good_until_s:
                self._last = await self._look()
                self._good_until_s = loop.time() + SHARED_S
            return self._last

    def changes(self) -> Iterator[SubjectChange]:
        """The last ones of each partition, the last one first."""
        found = [change for view in self._journal.views() for change in view.lately.changes()]
        for change in sorted(found, key=lambda one: one.at, reverse=True):
            subjects: dict[str, list[str]] = {}
            for aggregate, type in change.events:
                subject = subject_of(aggregate)
                if subject is not None and type not in (types := subjects.setdefault(subject, [])):
                    types.append(type)
            for subject, types in subjects.items():
                yield SubjectChange(subject, types, change.at)

    async def _look(self) -> Hour:
        totals = await self._tally.totals(COUNT_S)
        views, now = self._journal.views(), self._clock.now_ms()
        firsts = [view.lately.first_ms for view in views if view.lately.first_ms]
        if not firsts:
            return Hour([], now)
        end = now - now % MINUTE_MS
        begin = max(end - KEPT_MINUTES * MINUTE_MS, min(firsts) - min(firsts) % MINUTE_MS)
        counted: dict[int, Counter[str]] = {at: Counter() for at in range(begin, end + 1, MINUTE_MS)}
        for minute in chain.from_iterable(view.lately.minutes() for view in views):
            if minute.begin in counted:
                counted[minute.begin].update(minute.counts)
        minutes = [
            MinuteOfSystem(at, sum(counts.values()), counts[COMMITTED], counts[ABORTED])
            for at, counts in counted.items()
        ]
        if totals is not None:
            _go_back(minutes, counted, totals.open, totals.waiting)
        for one, written in zip(minutes, self._written.bytes_by_minute(counted), strict=True):
            one.bytes = written
            one.silent = _silent(self._reads.cluster(), one.at, one.at + MINUTE_MS)
        return Hour(minutes, now)


def _go_back(minutes: list[MinuteOfSystem], counted: dict[int, Counter[str]], open: int, waiting: int) -> None:
    """How many transactions there were at the end of each minute, from how many there are now.

    The counts and what happened may be a moment apart, so there may seem to have been less than none.
    """
    for minute in reversed(minutes):
        minute.open, minute.waiting = max(0, open), max(0, waiting)
        counts = counted[minute.at]
        open -= counts[OPENED] - counts[COMMITTING] - counts[ABORTING]
        waiting -= counts[COMMITTING] - counts[COMMITTED]


def _silent(cluster: Cluster, begin: int, end: int) -> int:
    """How many containers did not answer some member at a time in [begin, end)."""
    ended = {one.container for one in cluster.silences if one.since < end and begin < one.until}
    going_on = (
        container
        for member in cluster.members.values()
        for container, silence in member.unresponsive.items()
        if silence.since < end
    )
    return len(ended.union(going_on))
