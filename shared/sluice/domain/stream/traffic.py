"""Traffic reports: what segment stores report of a segment's load, and how far their report stream was forwarded.

Segment stores append their reports to a stream of ours as any client would. Each report is forwarded to
retention-spark, with what the stream's epoch says about the segment; here nothing is decided about scaling.
Rules: segment-store-cluster A9, stream-and-transaction-semantics 9.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec

from sluice.domain.config import ScaleType
from sluice.domain.decision import Decision, Reader
from sluice.domain.ids import StreamId
from sluice.domain.segment import Segment
from sluice.domain.stream import cuts
from sluice.domain.stream import events as ev
from sluice.domain.stream.queries import head
from sluice.domain.stream.state import Stream, find_stream


class Direction(Enum):
    UP = "UP"
    DOWN = "DOWN"


class Traffic(msgspec.Struct, frozen=True):
    """A segment store's report: the segment has too much to do, or too little; `at` in epoch ms at the store.

    `splits` is into how many segments it should be divided, 0 for DOWN; `silent` means that nothing was written at all.
    """

    stream: StreamId
    segment: int
    direction: Direction
    at: int
    splits: int
    silent: bool


class PolicyInForce(msgspec.Struct, frozen=True):
    """A scaling policy with nothing left out, for readers that do not know its defaults."""

    scale_type: ScaleType
    target_rate: int
    scale_factor: int
    min_segments: int


class ScaleReport(msgspec.Struct, frozen=True):
    """A traffic report with what is true of its segment now; `id` is the same each time the report is sent.

    `range` is the segment's [low, high), `active` whether it belongs to the active epoch. That is number `epoch`, since
    `epoch_since` (epoch ms), with `epoch_segments` segments; `neighbours` are those next to this one.
    """

    id: str
    by: str
    at: int
    scope: str
    stream: str
    creation_id: str
    segment: int
    direction: Direction
    splits: int
    silent: bool
    range: tuple[float, float]
    active: bool
    epoch: int
    epoch_since: int
    epoch_segments: int
    neighbours: tuple[Segment, ...]
    policy: PolicyInForce

    @property
    def stream_id(self) -> StreamId:
        return StreamId(self.scope, self.stream)


Reporter = Callable[[Traffic, str], ScaleReport | None]
"""Makes the scale report of a traffic report and an id; None if the stream does not have the segment."""


def reporter(stream: Stream, by: str) -> Reporter:
    """For reports on the stream as it is now: there may be as many as it has segments, so neighbours are looked up."""
    epoch, scaling = stream.active_epoch, stream.config.scaling
    active = stream.active_segments()
    at_low, at_high = {s.low: s for s in active}, {s.high: s for s in active}
    ids = set(epoch.segments)
    policy = PolicyInForce(scaling.scale_type, scaling.target_rate, scaling.scale_factor, scaling.min_segments)

    def report(traffic: Traffic, id: str) -> ScaleReport | None:
        segment = stream.history.find(traffic.segment)
        if segment is None:
            return None
        is_active = segment.id in ids
        beside = (at_high.get(segment.low), at_low.get(segment.high)) if is_active else ()
        return ScaleReport(
            id=id,
            by=by,
            at=traffic.at,
            scope=stream.id.scope,
            stream=stream.id.name,
            creation_id=stream.creation_id,
            segment=segment.id,
            direction=traffic.direction,
            splits=traffic.splits,
            silent=traffic.silent,
            range=(segment.low, segment.high),
            active=is_active,
            epoch=epoch.number,
            epoch_since=epoch.created_at,
            epoch_segments=len(epoch.segments),
            neighbours=tuple(s for s in beside if s is not None),
            policy=policy,
        )

    return report


def position(stream: Stream, segment: int) -> int:
    """Up to which offset a segment's reports have been passed on."""
    return max((stream.forwarded or {}).get(segment, 0), head(stream).get(segment, 0), 0)


def unforwarded(stream: Stream) -> dict[int, int]:
    """The segments that hold, or may come to hold, reports that were not passed on, with the offsets to go on from."""
    there = cuts.segments_between(stream, stream.cut, {})
    return {s: position(stream, s) for s in sorted(there) if not _is_done(stream, s)}


def forwarded_cut(stream: Stream) -> dict[int, int]:
    """Where the stream may be truncated: over the newest epoch before which everything has been passed on."""
    history = stream.history
    for done in history.numbers(cuts.first_epoch(stream, stream.cut), stream.active):
        last = (s for s in history.epoch(done).segments if history.last_epoch(s) == done)
        if not all(_is_done(stream, s) for s in last):
            break
    return {s: position(stream, s) for s in history.epoch(done).segments}


def forwarded_bytes(stream: Stream) -> int:
    """How many bytes lie between the head and `forwarded_cut`."""
    cut = forwarded_cut(stream)
    if stream.cut and not cuts.is_equal_or_after(stream, cut, stream.cut):
        return 0
    return cuts.size_between(stream, stream.cut, cut, cuts.segments_between(stream, stream.cut, cut))


def _is_done(stream: Stream, segment: int) -> bool:
    size = stream.history.sealed_sizes.get(segment)
    return size is not None and position(stream, segment) >= size


def record_forwarded(reader: Reader, id: StreamId, creation_id: str, segment: int, offset: int) -> Decision:
    """No event if another owner has forwarded as far already."""
    stream = find_stream(reader, id)
    if stream is None or stream.creation_id != creation_id or (stream.forwarded or {}).get(segment, 0) >= offset:
        return Decision()
    return Decision((ev.ReportsForwarded(*id, segment=segment, offset=offset),))


def _forwarded(state: Stream, event: ev.ReportsForwarded) -> Stream:
    if state.forwarded is None:
        state.forwarded = {}
    state.forwarded[event.segment] = event.offset
    return state


EVOLVE: dict[type, Callable[[Any, Any], Any]] = {ev.ReportsForwarded: _forwarded}
