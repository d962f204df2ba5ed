"""The topology of a stream as rectangles: a segment covers its key range from its epoch's beginning to its sealing.

In columns, because thousands of them are transferred and drawn. Where there are more than a caller takes, the plane is
sampled: every 2^n-th epoch, and the newest one, by every point of the key space that is a multiple of 2^-m. What holds
no sample is left out, and the others grow up to the next sample, so that together they cover the same plane without a
gap or an overlap. Of all pairs n, m the one is taken that keeps most rectangles. Pure functions.

Rules: stream-and-transaction-semantics 2.2 to 2.7.
"""

from collections.abc import Callable
from enum import IntFlag, StrEnum
from math import ceil

import msgspec

from sluice.domain.segment import Segment, epoch_of, number_of
from sluice.domain.stream.cuts import lies_before
from sluice.domain.stream.history import History
from sluice.domain.stream.state import Stream, StreamState

MAX_RECTANGLES = 20_000

_KEY_BITS = 30
_KEYS = 1 << _KEY_BITS


class Flag(IntFlag):
    """What is true of a rectangle; `MERGED`: its bounds are those of samples."""

    TRUNCATED = 1
    CREATING = 2
    DUPLICATE = 4
    MERGED = 8


class Cause(StrEnum):
    """What an epoch came of. An update of the policy scales, too; a restore goes on at a number never given out."""

    CREATED = "created"
    SCALE = "scale"
    ROLLING = "rolling"
    RESTORED = "restored"


class SegmentColumns(msgspec.Struct, rename="camel"):
    """Of each segment, in the order of the ids. Times in epoch ms.

    `end_epoch` is the first epoch without it and `end` when that began: -1 and 0 of an active one. `bytes` is its
    length when it was sealed, -1 if that is not known. `flags` are of `Flag`.
    """

    id: list[int] = []
    number: list[int] = []
    low: list[float] = []
    high: list[float] = []
    born_epoch: list[int] = []
    born: list[int] = []
    end_epoch: list[int] = []
    end: list[int] = []
    bytes: list[int] = []
    flags: list[int] = []


class EpochColumns(msgspec.Struct):
    """Of each epoch its number, when it began, which epoch it is a duplicate of (itself, if none), what it came of."""

    epoch: list[int] = []
    at: list[int] = []
    reference: list[int] = []
    cause: list[str] = []


class Topology(msgspec.Struct):
    """`merged`: there were too many rectangles or epochs, and samples are shown."""

    segments: SegmentColumns
    epochs: EpochColumns
    merged: bool


class _Life(msgspec.Struct):
    """A segment from the epoch at index `begin` of those requested to that at `end`; `end_epoch` -1 of an active one.

    `began_before` and `ends_behind` say that it reaches beyond those epochs; the indexes are 0 and their number then.
    """

    segment: Segment
    begin: int
    end: int
    born_epoch: int
    end_epoch: int
    low: float
    high: float
    is_merged: bool = False


def snapshot(stream: Stream) -> Stream:
    """The stream as it is, for another thread: what is read of it here never changes any more."""
    return msgspec.structs.replace(stream, history=stream.history.copy())


def topology(stream: Stream, begin: int, end: int, most: int) -> Topology:
    """The rectangles that reach into the span from `begin` to `end`, epoch ms; at most `most` of them.

    What is being created now, up to the largest scale, comes on top.
    """
    history = stream.history
    first, last = max(history.epoch_at(begin), 0), history.epoch_at(end)
    numbers = list(history.numbers(first, last))
    lives = _lives(history, numbers)
    kept = _merged(lives, numbers, most) if len(lives) > most else lives
    kept.sort(key=lambda life: life.segment.id)
    segments = _columns(stream, kept)
    if numbers:
        _add_creating(stream, segments)
    shown = _thinned(numbers, most)
    merged = len(lives) > most or len(shown) < len(numbers)
    return Topology(segments, _epochs(history, shown), merged)


def _lives(history: History, numbers: list[int]) -> list[_Life]:
    if not numbers:
        return []
    index = {number: at for at, number in enumerate(numbers)}
    found = []
    for segment, replaced_in in history.lives(numbers[0], numbers[-1]):
        born = epoch_of(segment.id)
        until = -1 if replaced_in is None else replaced_in
        begin, end = index.get(born, 0), index.get(until, len(numbers))
        found.append(_Life(segment, begin, end, born, until, segment.low, segment.high))
    return found


# Merging.


def _merged(lives: list[_Life], numbers: list[int], most: int) -> list[_Life]:
    """Those that hold a sample of the finest grid of which `most` do, grown to the samples."""
    count = len(numbers)
    coarsest = count.bit_length()
    levels = [(_time_level(life, count, coarsest), _key_level(life)) for life in lives]
    time, key = _grid(levels, coarsest, most)
    kept = [life for life, (t, k) in zip(lives, levels, strict=True) if t >= time and k >= key]
    for life in kept:
        _grow(life, numbers, 1 << time, 1 << (key - 1) if key else 0)
    return kept


def _level(begin: int, end: int) -> int:
    """The highest n with a multiple of 2^n in [begin, end), for 0 < begin; -1 if that is empty."""
    return ((begin - 1) ^ (end - 1)).bit_length() - 1


def _time_level(life: _Life, count: int, coarsest: int) -> int:
    return coarsest if life.begin == 0 or life.end >= count else _level(life.begin, life.end)


def _key_level(life: _Life) -> int:
    """One more than that of the keys; 0 if it holds no sample at all."""
    low, high = _key(life.low), _key(life.high)
    return _KEY_BITS + 1 if low == 0 and high > 0 else _level(low, high) + 1


def _key(key: float) -> int:
    """The first sample of the finest grid at the key or behind it."""
    return ceil(key * _KEYS)


def _grid(levels: list[tuple[int, int]], coarsest: int, most: int) -> tuple[int, int]:
    """The levels of time and key at which most rectangles are kept, but not more than `most`."""
    sums = [[0] * (_KEY_BITS + 3) for _ in range(coarsest + 2)]
    for time, key in levels:
        sums[time][key] += 1
    best = (-1, coarsest, _KEY_BITS + 1)
    for time in range(coarsest, -1, -1):
        for key in range(_KEY_BITS + 1, -1, -1):
            sums[time][key] += sums[time + 1][key] + sums[time][key + 1] - sums[time + 1][key + 1]
            # Of two that keep as many, the finer grid.
            if best[0] <= sums[time][key] <= most:
                best = (sums[time][key], time, key)
    return best[1], best[2]


def _grow(life: _Life, numbers: list[int], stride: int, key_stride: int) -> None:
    """Move its bounds to the first samples at or behind them."""
    begin, end = _next_sample(life.begin, len(numbers), stride), _next_sample(life.end, len(numbers), stride)
    if begin != life.begin:
        life.begin, life.born_epoch, life.is_merged = begin, numbers[begin], True
    if end != life.end:
        life.end, life.end_epoch, life.is_merged = end, numbers[end], True
    if key_stride:
        low, high = (-(-_key(key) // key_stride) * key_stride / _KEYS for key in (life.low, life.high))
        life.is_merged = life.is_merged or (low, high) != (life.low, life.high)
        life.low, life.high = low, high


def _next_sample(at: int, count: int, stride: int) -> int:
    """The newest epoch is a sample, too; what lies behind all of them stays there."""
    return at if at >= count else min(-(-at // stride) * stride, count - 1)


def _thinned(numbers: list[int], most: int) -> list[int]:
    """At most `most` of them, and the newest one among them."""
    stride = -(-len(numbers) // most)
    return numbers[::-1][::stride][::-1]


# Columns.


def _columns(stream: Stream, lives: list[_Life]) -> SegmentColumns:
    history, is_truncated = stream.history, lies_before(stream, stream.cut)
    is_creating = stream.state is StreamState.CREATING
    created_at, reference = _remembering(history.created_at), _remembering(history.reference)
    columns = SegmentColumns()
    for life in lives:
        segment = life.segment
        epoch = epoch_of(segment.id)
        flags = Flag.TRUNCATED * is_truncated(segment) | Flag.MERGED * life.is_merged
        flags |= Flag.DUPLICATE * (reference(epoch) != epoch) | Flag.CREATING * is_creating
        is_active = life.end_epoch < 0
        columns.id.append(segment.id)
        columns.number.append(number_of(segment.id))
        columns.low.append(life.low)
        columns.high.append(life.high)
        columns.born_epoch.append(life.born_epoch)
        columns.born.append(created_at(life.born_epoch))
        columns.end_epoch.append(life.end_epoch)
        columns.end.append(0 if is_active else created_at(life.end_epoch))
        columns.bytes.append(history.sealed_sizes.get(segment.id, -1))
        columns.flags.append(int(flags))
    return columns


def _add_creating(stream: Stream, columns: SegmentColumns) -> None:
    """The segments that a scale or an update is creating, as far as no epoch has them."""
    replacement = stream.workflow.replacement if stream.workflow is not None else None
    if replacement is None:
        return
    for segment in replacement.creates:
        if stream.history.find(segment.id) is not None:
            continue
        columns.id.append(segment.id)
        columns.number.append(number_of(segment.id))
        columns.low.append(segment.low)
        columns.high.append(segment.high)
        columns.born_epoch.append(epoch_of(segment.id))
        columns.born.append(replacement.at)
        columns.end_epoch.append(-1)
        columns.end.append(0)
        columns.bytes.append(-1)
        columns.flags.append(int(Flag.CREATING))


def _epochs(history: History, numbers: list[int]) -> EpochColumns:
    columns = EpochColumns()
    for number in numbers:
        reference = history.reference(number)
        columns.epoch.append(number)
        columns.at.append(history.created_at(number))
        columns.reference.append(reference)
        columns.cause.append(_cause(history, number, reference))
    return columns


def _cause(history: History, number: int, reference: int) -> Cause:
    if number == history.first:
        return Cause.CREATED
    if not history.has(number - 1):
        return Cause.RESTORED
    return Cause.ROLLING if reference != number else Cause.SCALE


def _remembering(of: Callable[[int], int]) -> Callable[[int], int]:
    """The same, computed once for each epoch: many segments share one."""
    known: dict[int, int] = {}

    def found(epoch: int) -> int:
        if epoch not in known:
            known[epoch] = of(epoch)
        return known[epoch]

    return found
