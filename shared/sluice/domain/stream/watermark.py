"""Watermarks: from the times that writers report, a time and a position that all of them have passed.

A watermark says: a reader that has read up to `cut` has read everything written before `lower`. It follows from the
writers' latest reports alone, in one step on one state. Rules: background-and-other-workflows 3.4 and 3.5.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from sluice.domain.decision import Decision, Reader
from sluice.domain.ids import StreamId
from sluice.domain.stream import events as ev
from sluice.domain.stream.cuts import RangeIndex
from sluice.domain.stream.state import Stream, WatermarkBounds, WriterTime, find_stream
from sluice.domain.stream.upper_bound import UpperBound, Watermark


class WriterActivity(msgspec.Struct, frozen=True):
    """Who counts in this round.

    `active` are the writers whose reports bound the watermark; `silent_since` has those among them that have yet to
    pass the previous one, with when they were first met so (epoch ms); `gone` are to be forgotten.
    """

    active: dict[str, WriterTime]
    gone: dict[str, WriterTime]
    silent_since: dict[str, int]


def writer_activity(
    stream: Stream, previous: Watermark | None, silent_since: Mapping[str, int], now: int
) -> WriterActivity:
    """Sort the writers (3.4). With a time-out of 0 a writer that has not gone on is forgotten in the same round."""
    active: dict[str, WriterTime] = {}
    gone: dict[str, WriterTime] = {}
    silent: dict[str, int] = {}
    for writer, report in stream.writers.items():
        reported = msgspec.structs.replace(report)
        if previous is None or reported.timestamp > previous.lower:
            active[writer] = reported
            continue
        since = silent_since.get(writer, now)
        if reported.alive and now - since < stream.config.timestamp_aggregation_timeout_ms:
            active[writer], silent[writer] = reported, since
        else:
            gone[writer] = reported
    return WriterActivity(active, gone, silent)


def next_watermark(stream: Stream, found: WriterActivity, previous: Watermark | None) -> Watermark | None:
    """The watermark of this round; None if a writer has yet to pass the previous one, or none counts (3.5).

    What a writer says of segments that the stream does not have counts for nothing.
    """
    if found.silent_since or not found.active:
        return None
    times = [reported.timestamp for reported in found.active.values()]
    bound = UpperBound()
    for reported in found.active.values():
        for segment, offset in reported.position.items():
            known = stream.history.find(segment)
            if known is not None:
                bound.add(known, offset)
    missing = bound.gaps()
    for segment_before, offset in previous.cut.items() if previous is not None else ():
        bound.add(stream.history.find(segment_before.id) or segment_before, offset)
    if not _fill(stream, bound, missing):
        return None
    return Watermark(min(times), max(times), bound.cut())


def _fill(stream: Stream, bound: UpperBound, missing: list[tuple[float, float]]) -> bool:
    """Cover what no writer spoke of by segments of the newest epoch there is; False if that epoch is not known.

    Two segments of one epoch never overlap, and one of an older epoch gives way, so each pass has more of this epoch
    and the last one covers everything. That holds for segments of the history. The mark segment may name others, with
    any ranges: where these leave a gap that no pass can cover it is False, too.
    """
    newest = bound.newest_epoch()
    if not stream.history.has(newest):
        return False
    epoch = RangeIndex(stream.history.segments_of(newest))
    while True:
        for low, high in missing:
            for segment in epoch.overlapping(low, high):
                bound.add(segment, 0)
        gaps = bound.gaps()
        if not gaps or gaps == missing:
            return not gaps
        missing = gaps


def record_emitted(reader: Reader, id: StreamId, creation_id: str, watermark: Watermark, at: int) -> Decision:
    """Show a watermark that stands in the mark stream, unless a later one is known."""
    stream = find_stream(reader, id)
    if stream is None or stream.creation_id != creation_id:
        return Decision()
    if stream.watermark is not None and stream.watermark.lower >= watermark.lower:
        return Decision()
    return Decision((ev.WatermarkEmitted(*id, lower=watermark.lower, upper=watermark.upper, at=at),))


def forget_writers(reader: Reader, id: StreamId, gone: Mapping[str, WriterTime]) -> Decision:
    """Drop the writers that have not reported since `gone` was read."""
    stream = find_stream(reader, id)
    same = tuple(sorted(w for w, reported in gone.items() if stream and stream.writers.get(w) == reported))
    return Decision((ev.WritersForgotten(*id, writers=same),) if same else ())


def _emitted(state: Stream, event: ev.WatermarkEmitted) -> Stream:
    state.watermark = WatermarkBounds(event.lower, event.upper, event.at)
    return state


def _forgotten(state: Stream, event: ev.WritersForgotten) -> Stream:
    state.writers = {name: reported for name, reported in state.writers.items() if name not in event.writers}
    return state


EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    ev.WatermarkEmitted: _emitted,
    ev.WritersForgotten: _forgotten,
}
