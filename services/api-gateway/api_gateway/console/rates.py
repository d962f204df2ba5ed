"""Rates of segments, measured while callers request them: bytes and events a second, between two measurements.

A segment's length and its count of events come by two calls to its segment store. All callers share one measurement,
and all measurements one budget, however many streams are watched: with few segments each is measured every two seconds,
with a thousand every twenty. What no caller has requested for a while is measured no more. Belongs to the event loop.
"""

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from api_gateway.console.kept_lengths import KeptLengths
from api_gateway.edge.errors import OverloadedError
from sluice.domain.ids import StreamId
from sluice.domain.segment import segment_name
from sluice.domain.stream.state import Stream, StreamState
from sluice.pravega.errors import SegmentStoreError
from sluice.pravega.store import EVENT_COUNT_ATTRIBUTE, SegmentStore

MAX_CALLS_S = 100
CALLS_PER_SEGMENT = 2
PACE_S = CALLS_PER_SEGMENT / MAX_CALLS_S
INTERVAL_S = 2.0
"""A segment is measured not more often than that; after a failure not before three times as long."""

LISTED_INTERVAL_S = 10.0
"""The same of a stream that only lists show, once its rate is known."""

ANSWER_S = 3.0
"""How long a segment store may take. So measurements that wait for one that hangs do not hold up the others."""

WATCHED_S = 15.0
"""How long a stream is measured after the last look at it."""

MAX_STREAMS = 100
MAX_LISTED = 300
"""The same, with those that only lists show."""

MAX_SEGMENTS = 10_000


class Sample(msgspec.Struct, frozen=True):
    """What a segment had at a time, in seconds of the event loop; `events` is None where none was counted yet."""

    at_s: float
    length: int
    events: int | None


class SegmentRate(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is None is not known: before the second measurement, or while the segment store does not answer.

    Feeds send it so, without what is not known.
    """

    id: int
    bytes_per_s: float | None = None
    events_per_s: float | None = None
    length: int | None = None


class StreamRates(msgspec.Struct, frozen=True):
    """The rates of the segments that are written to, by key range; `complete` if all of them are known."""

    segments: list[SegmentRate]
    complete: bool


def rate(id: int, before: Sample | None, last: Sample | None) -> SegmentRate:
    """The rate between two samples of a segment. A count that fell, as after a failure of a store, says nothing.

    Nor does one that stands still while the segment grows: stores leave out the events of transactions.
    """
    if last is None:
        return SegmentRate(id)
    if before is None or last.at_s <= before.at_s:
        return SegmentRate(id, length=last.length)
    span_s = last.at_s - before.at_s
    grown = last.length - before.length
    events = _more(before.events, last.events)
    is_known = events is not None and (events > 0 or events == grown == 0)
    return SegmentRate(
        id,
        bytes_per_s=grown / span_s if grown >= 0 else None,
        events_per_s=events / span_s if events is not None and is_known else None,
        length=last.length,
    )


def _more(before: int | None, last: int | None) -> int | None:
    """Before the first event there is no count."""
    return None if last is None and before is not None else (last or 0) - (before or 0)


class _Segment(msgspec.Struct, eq=False):
    """A segment that is measured: its last two samples, and whether the last attempt failed."""

    stream: StreamId
    id: int
    before: Sample | None = None
    last: Sample | None = None
    has_failed: bool = False


class _Stream(msgspec.Struct, eq=False):
    """A stream that is looked at, and until when closely, in seconds of the event loop."""

    until_s: float
    closely_until_s: float = 0.0
    segments: dict[int, _Segment] = {}


class Rates:
    """`find` gives a stream as far as it is known here, `now_ms` the time, epoch ms. Call `stop` at the end.

    What is measured is `kept` once a minute.
    """

    def __init__(
        self, store: SegmentStore, find: Callable[[StreamId], Stream | None], now_ms: Callable[[], int]
    ) -> None:
        self.kept = KeptLengths(now_ms)
        self._store = store
        self._find = find
        self._loop = asyncio.get_running_loop()
        self._streams: dict[StreamId, _Stream] = {}
        self._due: list[tuple[float, int, _Segment]] = []
        self._turns = 0
        self._news = asyncio.Event()
        self._measuring: asyncio.Task[None] | None = None
        self._calls: set[asyncio.Task[None]] = set()

    def look(self, id: StreamId, *, closely: bool = True) -> StreamRates:
        """The rates as they are known, and have them measured for a while. Raises OverloadedError.

        Not `closely`: it is one of many in a list.
        """
        watched = self._streams.get(id)
        segments = self._active(id)
        if watched is None or (closely and watched.closely_until_s < self._loop.time()):
            self._forget_old()
            self._check_room(len(segments) if watched is None else 0, closely=closely)
            watched = self._streams.setdefault(id, _Stream(0.0))
        watched.until_s = self._loop.time() + WATCHED_S
        if closely:
            watched.closely_until_s = watched.until_s
        self._follow(id, watched, segments)
        if self._measuring is None or self._measuring.done():
            self._measuring = self._loop.create_task(self._measure_all(), name="rates")
        self._news.set()
        found = [rate(s, (one := watched.segments[s]).before, one.last) for s in segments]
        if closely and found and all(one.length is not None for one in found):
            self.kept.note(id, {one.id: one.length or 0 for one in found})
        failed = any(watched.segments[s].has_failed for s in segments)
        return StreamRates(found, not failed and all(one.bytes_per_s is not None for one in found))

    async def stop(self) -> None:
        """Measure no more."""
        tasks = [*self._calls, *([self._measuring] if self._measuring is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _check_room(self, segments: int, *, closely: bool) -> None:
        """Whether one more can be measured: what lists show takes nothing from what is looked at closely."""
        now_s = self._loop.time()
        counted = [one for one in self._streams.values() if not closely or one.closely_until_s >= now_s]
        held = sum(len(stream.segments) for stream in self._streams.values())
        if len(counted) >= (MAX_STREAMS if closely else MAX_LISTED) or held + segments > MAX_SEGMENTS:
            raise OverloadedError("the rates of so many streams are looked at that no more can be measured")

    def _forget_old(self) -> None:
        """A stream without segments that are written to has none that becomes due."""
        now_s = self._loop.time()
        for id in [id for id, stream in self._streams.items() if stream.until_s < now_s]:
            del self._streams[id]

    def _active(self, id: StreamId) -> tuple[int, ...]:
        stream = self._find(id)
        if stream is None or stream.state in (StreamState.CREATING, StreamState.SEALED, StreamState.RESTORING):
            return ()
        return tuple(segment.id for segment in stream.active_segments())

    def _follow(self, id: StreamId, watched: _Stream, segments: tuple[int, ...]) -> None:
        """Measure those that are new, and those that are no longer written to no more."""
        known = watched.segments
        watched.segments = {s: known.get(s) or _Segment(id, s) for s in segments}
        for s in segments:
            if s not in known:
                self._schedule(watched.segments[s], self._loop.time())

    def _schedule(self, segment: _Segment, at_s: float) -> None:
        self._turns += 1
        heapq.heappush(self._due, (at_s, self._turns, segment))

    async def _measure_all(self) -> None:
        """Take the segments in the order in which they are due, at the pace of the budget, while any is looked at."""
        while self._due or self._calls:
            now_s = self._loop.time()
            if not self._due or self._due[0][0] > now_s:
                self._news.clear()
                await self._until(self._due[0][0] if self._due else now_s + ANSWER_S)
                continue
            _, _, segment = heapq.heappop(self._due)
            watched = self._streams.get(segment.stream)
            if watched is not None and watched.until_s < now_s:
                del self._streams[segment.stream]
                continue
            if watched is None or watched.segments.get(segment.id) is not segment:
                continue
            self._spawn(self._measure(segment))
            await asyncio.sleep(PACE_S)

    async def _until(self, at_s: float) -> None:
        """Return then, or when a caller requests something."""
        try:
            async with asyncio.timeout_at(at_s):
                await self._news.wait()
        except TimeoutError:
            return

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def _measure(self, segment: _Segment) -> None:
        name = segment_name(*segment.stream, segment.id)
        try:
            async with asyncio.timeout(ANSWER_S):
                info, events = await asyncio.gather(
                    self._store.segment_info(name), self._store.attribute(name, EVENT_COUNT_ATTRIBUTE)
                )
        except (SegmentStoreError, TimeoutError):
            segment.has_failed = True
        else:
            segment.before, segment.last = segment.last, Sample(self._loop.time(), info.length, events)
            segment.has_failed = False
        self._schedule(segment, self._loop.time() + self._pause_s(segment))
        self._news.set()

    def _pause_s(self, segment: _Segment) -> float:
        now_s, watched = self._loop.time(), self._streams.get(segment.stream)
        is_listed = watched is not None and watched.closely_until_s < now_s
        if is_listed and (segment.before is not None or segment.has_failed):
            return LISTED_INTERVAL_S
        return INTERVAL_S * (3 if segment.has_failed else 1)
