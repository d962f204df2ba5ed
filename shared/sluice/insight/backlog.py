"""What a reader group has yet to read of a stream, in bytes. Pure functions.

A group's position maps segments to offsets; with the segments that wait until others are read it covers all keys. What
comes behind is every segment that is newer than one of those over its keys. Rules: reader-groups 6.5.
"""

from collections.abc import Iterable, Mapping

import msgspec

from sluice.domain.errors import InvalidArgumentError, NotFoundError
from sluice.domain.segment import epoch_of
from sluice.domain.stream import queries
from sluice.domain.stream.cuts import RangeIndex, index_of_positions, is_equal_or_after
from sluice.domain.stream.state import Stream


class Backlog(msgspec.Struct, frozen=True):
    """`known` are the bytes of sealed segments; of `growing` ones, by id, what comes behind these offsets is unread."""

    known: int
    growing: dict[int, int]


def start_of(stream: Stream, start: Mapping[int, int]) -> dict[int, int]:
    """Where reading from this cut begins, which is the head if the cut is empty or lies before that.

    Empty if it is no cut of the stream: nothing can be read from there.
    """
    head = queries.head(stream)
    try:
        return head if not start or is_equal_or_after(stream, head, start) else dict(start)
    except (NotFoundError, InvalidArgumentError):
        return {}


def backlog(stream: Stream, position: Mapping[int, int], waiting: Iterable[int], end: Mapping[int, int]) -> Backlog:
    """What lies behind a position of the stream, up to the cut `end`, or to the stream's end if that is empty.

    Offsets are bytes, -1 for a segment that is, or is to be, read to its end; those that are `waiting` come when others
    are read. Segments that the stream never had are left out, and what was truncated away counts nothing.
    """
    history, active = stream.history, set(stream.active_epoch.segments)
    cut = {**dict.fromkeys(waiting, -1), **{id: max(at, 0) for id, at in position.items()}}
    cut = {id: at for id, at in cut.items() if history.find(id) is not None}
    if not cut:
        return Backlog(0, {})
    index = index_of_positions(stream, cut)
    last = RangeIndex(s for id in end if (s := history.find(id)) is not None)
    known, growing = 0, {}
    for segment in history.within(min(map(epoch_of, cut)), history.count - 1):
        over = [s.id for s in index.overlapping(segment.low, segment.high)]
        if segment.id not in cut and not (over and min(over) < segment.id):
            continue
        if any(s.id < segment.id for s in last.overlapping(segment.low, segment.high)):
            continue
        begin, until = position.get(segment.id, 0), end.get(segment.id)
        if begin < 0:
            continue
        if until is not None and until >= 0:
            known += max(until - begin, 0)
        elif segment.id in active and segment.id not in history.sealed_sizes:
            growing[segment.id] = begin
        else:
            known += max(history.sealed_sizes.get(segment.id, 0) - begin, 0)
    return Backlog(known, growing)
