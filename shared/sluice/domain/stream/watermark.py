"""Watermarks: from the times that writers report, a time and a position that all of them have passed.

A watermark says: a reader that has read up to `cut` has read everything written before `lower`. It follows from the
writers' latest reports alone, in one step on one state. Rules: background-and-other-workflows 3.4 and 3.5.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from sluice.domain.decision import Decision, Reader
from sluice.domain.ids import StreamId
from sluice.domain.segment import Segment, epoch_of
from sluice.domain.stream import events as ev
from sluice.domain.stream.cuts import RangeIndex
from sluice.domain.stream.state import Stream, WatermarkBounds, WriterMark, find_stream


class Watermark(msgspec.Struct, frozen=True):
    """Bounds in the writers' own time, and a cut that covers the key space: byte offsets of segments."""

    lower: int
    upper: int
    cut: dict[Segment, int]


class WriterActivity(msgspec.Struct, frozen=True):
    """Who counts in this round.

    `active` are the writers whose reports bound the watermark; `silent_since` has those among them that have yet to
    pass the previous one, with when they were first met so (epoch ms); `gone` are to be forgotten.
    """

    active: dict[str, WriterMark]
    gone: dict[str, WriterMark]
    silent_since: dict[str, int]


def writer_activity(
    stream: Stream, previous: Watermark | None, silent_since: Mapping[str, int], now: int
) -> WriterActivity:
    """Sort the writers (3.4). With a time-out of 0 a writer that has not gone on is forgotten in the same round."""
    active: dict[str, WriterMark] = {}
    gone: dict[str, WriterMark] = {}
    silent: dict[str, int] = {}
    for writer, report in stream.writers.items():
        mark = msgspec.structs.replace(report)
        if previous is None or mark.timestamp > previous.lower:
            active[writer] = mark
            continue
        since = silent_since.get(writer, now)
        if mark.alive and now - since < stream.config.timestamp_aggregation_timeout_ms:
            active[writer], silent[writer] = mark, since
        else:
            gone[writer] = mark
    return WriterActivity(active, gone, silent)


def next_watermark(stream: Stream, found: WriterActivity, previous: Watermark | None) -> Watermark | None:
    """The watermark of this round; None if there is nothing new to say (3.5).

    What a writer says of segments that the stream does not have counts for nothing.
    """
    if found.silent_since or not found.active:
        return None
    times = [mark.timestamp for mark in found.active.values()]
    if previous is not None and min(times) <= previous.lower:
        return None
    bound = UpperBound()
    for mark in found.active.values():
        for segment, offset in mark.position.items():
            known = stream.history.find(segment)
            if known is not None:
                bound.add(known, offset)
    missing = list(bound.gaps())
    for segment_before, offset in previous.cut.items() if previous is not None else ():
        bound.add(segment_before, offset)
    if not _fill(stream, bound, missing):
        return None
    return Watermark(min(times), max(times), bound.cut())


def _fill(stream: Stream, bound: "UpperBound", missing: list[tuple[float, float]]) -> bool:
    """Cover what no writer spoke of by segments of the newest epoch there is; False if that epoch is not known.

    Two segments of one epoch never overlap, and one of an older epoch gives way, so each pass has more of this epoch
    and the last one covers everything.
    """
    while True:
        newest = max((epoch_of(s) for s in bound.ids()), default=-1)
        if not stream.history.has(newest):
            return False
        epoch = RangeIndex(stream.history.segments_of(newest))
        for low, high in missing:
            for segment in list(epoch.overlapping(low, high)):
                bound.add(segment, 0)
        missing = list(bound.gaps())
        if not missing:
            return True


class UpperBound:
    """The furthest of several positions, in whatever order they are given: segments, by range, that do not overlap.

    A segment counts if no newer one was given over any of its range. What it covers beyond the newer one is a gap then,
    which no older segment may fill: a writer that has been slow to see a scale names segments of several epochs, and a
    cut with the oldest of them would lie behind what others have reported.
    """

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._lows: list[float] = []
        self._offsets: dict[int, int] = {}
        self._passed: dict[int, Segment] = {}

    def add(self, segment: Segment, offset: int) -> None:
        """The further offset counts; a segment replaces older ones over its range, never newer ones."""
        known = self._offsets.get(segment.id)
        if known is not None:
            self._offsets[segment.id] = max(known, offset)
            return
        if segment.id in self._passed:
            return
        first = bisect_right(self._lows, segment.low) - 1
        if first < 0 or self._segments[first].high <= segment.low:
            first += 1
        last = bisect_left(self._lows, segment.high)
        over = self._segments[first:last]
        kept = [s for s in over if s.id > segment.id]
        if not kept and not any(_is_newer_over(s, segment) for s in self._passed.values()):
            kept = [segment]
            self._offsets[segment.id] = offset
        else:
            self._passed[segment.id] = segment
        for older in over:
            if older.id < segment.id:
                del self._offsets[older.id]
                self._passed[older.id] = older
        self._segments[first:last] = kept
        self._lows[first:last] = [s.low for s in kept]

    def gaps(self) -> Iterator[tuple[float, float]]:
        """The ranges of the key space that are not covered."""
        reached = 0.0
        for segment in self._segments:
            if segment.low != reached:
                yield reached, segment.low
            reached = segment.high
        if reached != 1.0:
            yield reached, 1.0

    def ids(self) -> Iterator[int]:
        return iter(self._offsets)

    def cut(self) -> dict[Segment, int]:
        """The offsets by segment, in the order of the key ranges."""
        return {s: self._offsets[s.id] for s in self._segments}


def _is_newer_over(segment: Segment, other: Segment) -> bool:
    return segment.id > other.id and segment.low < other.high and other.low < segment.high


def note_emitted(reader: Reader, id: StreamId, creation_id: str, mark: Watermark, at: int) -> Decision:
    """Show a watermark that stands in the mark stream, unless a later one is known."""
    stream = find_stream(reader, id)
    if stream is None or stream.creation_id != creation_id:
        return Decision()
    if stream.watermark is not None and stream.watermark.lower >= mark.lower:
        return Decision()
    return Decision((ev.WatermarkEmitted(*id, lower=mark.lower, upper=mark.upper, at=at),))


def forget_writers(reader: Reader, id: StreamId, gone: Mapping[str, WriterMark]) -> Decision:
    """Drop the writers that have not reported since `gone` was read."""
    stream = find_stream(reader, id)
    same = tuple(sorted(w for w, mark in gone.items() if stream and stream.writers.get(w) == mark))
    return Decision((ev.WritersForgotten(*id, writers=same),) if same else ())


def _emitted(state: Stream, event: ev.WatermarkEmitted) -> Stream:
    state.watermark = WatermarkBounds(event.lower, event.upper, event.at)
    return state


def _forgotten(state: Stream, event: ev.WritersForgotten) -> Stream:
    state.writers = {name: mark for name, mark in state.writers.items() if name not in event.writers}
    return state


EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    ev.WatermarkEmitted: _emitted,
    ev.WritersForgotten: _forgotten,
}
