"""The epochs of a stream and their segments, from epoch 0 to the newest one.

Nothing in a history is ever forgotten: a reader whose segment was truncated away requests its successors, and may come
as late as it likes. It completes a segment and takes over those successors whose predecessors are all completed, so
each answer has to be the one that others were given before; none may skip an epoch (reader-groups 4.6 and 7.3).

What lies behind the head is read rarely, so it is stored in chunks of encoded epochs, as Pravega keeps its history
time series. Every answer is the same before and after: epochs and segments are immutable, only their form changes.
Adding an epoch costs the same however many there are. Rules: stream-and-transaction-semantics 2.2 to 2.7.

Numbers of epochs grow, but not always by one: a restored stream goes on at a number that was never given out (`jumps`).
So an epoch also has a *position*, how many come before it; chunks and searches go by positions.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import takewhile
from typing import Any, TypeVar

import msgspec

from sluice.domain.segment import Segment, epoch_of

V = TypeVar("V")


class _Nothing(dict[Any, Any]):
    """An empty dict that stays empty, and is encoded as fast as any other."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("this mapping is shared by all that have nothing in it")

    __setitem__ = update = setdefault = __ior__ = _refuse


NONE: Mapping[Any, Any] = _Nothing()
"""The empty mapping that most streams share: a new mapping replaces it when something is added."""

CHUNK_EPOCHS = 64
"""How many epochs a chunk has. Fewer behind the head stay as they are."""

_CACHED_CHUNKS = 16


class Epoch(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One generation of segments, their ids ascending. `created_at` grows strictly, in epoch ms.

    `reference` is the number of the epoch that this one is a duplicate of, its own unless it is one.
    """

    number: int
    reference: int
    created_at: int
    segments: tuple[int, ...]


def _created_in(epoch: Epoch) -> Iterator[int]:
    return takewhile(lambda s: epoch_of(s) == epoch.number, reversed(epoch.segments))


class _Chunk(msgspec.Struct, array_like=True):
    """The epochs from position `first` on, and by id what lived in any of them: range, and where it was sealed.

    All is by position. One that outlived the chunk reads as sealed just behind `end`, the first epoch after the chunk.
    """

    first: int
    created_at: list[int]
    references: list[int]
    segments: dict[int, tuple[float, float, int]]

    @property
    def end(self) -> int:
        return self.first + len(self.created_at)

    def segment(self, id: int) -> Segment:
        low, high, _ = self.segments[id]
        return Segment(id, low, high)

    def epoch(self, number: int, position: int) -> Epoch:
        at = position - self.first
        alive = tuple(s for s, (_, _, until) in self.segments.items() if epoch_of(s) <= number and position < until)
        return Epoch(number, self.references[at], self.created_at[at], alive)

    def is_past(self, segment: int) -> bool:
        """Whether a segment of an epoch before the chunk's end was sealed in this chunk or before."""
        return segment not in self.segments or self.segments[segment][2] <= self.end


_encode = msgspec.msgpack.Encoder().encode
_decode = lru_cache(_CACHED_CHUNKS)(msgspec.msgpack.Decoder(_Chunk).decode)


class History(msgspec.Struct, array_like=True, gc=False):
    """`chunks` come first, then the `recent` epochs, with all of their segments by id.

    `sealed_in` is the first epoch without the segment, `sealed_sizes` are bytes; both of segments in recent epochs.
    Sizes are read from the head on only, so the sizes of others are dropped.
    Each of `jumps` is the number of an epoch that does not follow the one before by one, and how many numbers up to it
    were left out in all. In `approximate` epochs the key ranges of the segments are assumed, not known.
    """

    recent: list[Epoch]
    segments: Mapping[int, Segment]
    sealed_in: Mapping[int, int] = NONE
    sealed_sizes: Mapping[int, int] = NONE
    chunks: tuple[bytes, ...] = ()
    jumps: tuple[tuple[int, int], ...] = ()
    approximate: tuple[int, ...] = ()

    @property
    def first_recent(self) -> int:
        """The position of the first of the recent epochs."""
        return len(self.chunks) * CHUNK_EPOCHS

    @property
    def count(self) -> int:
        """One more than the newest epoch's number."""
        return self.recent[-1].number + 1

    def _position(self, number: int) -> int:
        """Where the epoch of a number stands; for a number that was left out, the epoch before."""
        for first, left_out in reversed(self.jumps):
            if number >= first:
                return number - left_out
            if number >= first - (left_out - self._left_out_before(first)):
                return first - left_out - 1
        return number

    def _left_out_before(self, first: int) -> int:
        return max((left_out for number, left_out in self.jumps if number < first), default=0)

    def _number(self, position: int) -> int:
        for first, left_out in reversed(self.jumps):
            if position + left_out >= first:
                return position + left_out
        return position

    def has(self, number: int) -> bool:
        """Whether there is an epoch of that number."""
        return 0 <= number < self.count and self._number(self._position(number)) == number

    def before(self, number: int) -> int:
        """The number of the epoch before this one, which is not the first."""
        return self._number(self._position(number) - 1)

    def after(self, number: int) -> int:
        """The number of the epoch behind this one, which is not the newest."""
        return self._number(self._position(number) + 1)

    def numbers(self, first: int, last: int) -> Iterator[int]:
        """The numbers of the epochs from one that there is to another one; none if `first` comes after `last`."""
        if first > last:
            return iter(())
        return (self._number(at) for at in range(self._position(first), self._position(last) + 1))

    def epoch(self, number: int) -> Epoch:
        """The epoch of a number that there is."""
        at = (position := self._position(number)) - self.first_recent
        return self.recent[at] if at >= 0 else self._chunk_at(position).epoch(number, position)

    def reference(self, number: int) -> int:
        at = (position := self._position(number)) - self.first_recent
        return self.recent[at].reference if at >= 0 else self._chunk_at(position).references[position % CHUNK_EPOCHS]

    def created_at(self, number: int) -> int:
        return self._created_at(self._position(number))

    def _created_at(self, position: int) -> int:
        at = position - self.first_recent
        return self.recent[at].created_at if at >= 0 else self._chunk_at(position).created_at[position % CHUNK_EPOCHS]

    def epoch_at(self, time: int) -> int:
        """The number of the newest epoch created at `time`, epoch ms, or before; -1 if there is none."""
        positions = range(self.first_recent + len(self.recent))
        found = bisect_right(positions, time, key=self._created_at) - 1
        return self._number(found) if found >= 0 else -1

    def find(self, segment: int) -> Segment | None:
        """The segment; None if the stream never had it."""
        found = self.segments.get(segment)
        if found is None and 0 <= (position := self._position(epoch_of(segment))) < self.first_recent:
            chunk = self._chunk_at(position)
            return chunk.segment(segment) if segment in chunk.segments else None
        return found

    def segment(self, segment: int) -> Segment:
        """A segment that the stream is known to have, or had."""
        found = self.find(segment)
        if found is None:
            raise KeyError(segment)
        return found

    def segments_of(self, epoch: int) -> list[Segment]:
        """The segments of an epoch, by key range."""
        return sorted((self.segment(s) for s in self.epoch(epoch).segments), key=lambda s: s.low)

    def replaced_in(self, segment: int) -> int | None:
        """The first epoch without the segment; None if it is in the newest one, or unknown."""
        if segment in self.segments or self.find(segment) is None:
            return self.sealed_in.get(segment)
        lived = range(self._position(epoch_of(segment)) // CHUNK_EPOCHS, len(self.chunks))
        last = bisect_left(lived, True, key=lambda at: _decode(self.chunks[at]).is_past(segment))
        return self._number(_decode(self.chunks[lived[last]]).segments[segment][2])

    def last_epoch(self, segment: int) -> int:
        """The number of the last epoch that has the segment."""
        replaced_in = self.replaced_in(segment)
        return self.recent[-1].number if replaced_in is None else self.before(replaced_in)

    def within(self, first: int, last: int) -> Iterator[Segment]:
        """All segments of the epochs from `first` to `last`, each once; none if `first` comes after `last`."""
        if first > last:
            return
        yield from (self.segment(s) for s in self.epoch(first).segments)
        at, end = self._position(first) + 1, self._position(last) + 1
        while at < end and at < self.first_recent:
            begin, chunk = self._number(at), self._chunk_at(at)
            yield from (chunk.segment(s) for s in chunk.segments if begin <= epoch_of(s) <= last)
            at = chunk.end
        for epoch in self.recent[max(at - self.first_recent, 0) : max(end - self.first_recent, 0)]:
            yield from (self.segments[s] for s in _created_in(epoch))

    def lives(self, first: int, last: int) -> Iterator[tuple[Segment, int | None]]:
        """The segments of the epochs from `first` to `last`, each once, in no order, with the first epoch without it.

        None for those in the newest epoch. It passes each chunk once; nothing may be added or condensed meanwhile.
        """
        if first > last:
            return
        begin, end = self._position(first), self._position(last) + 1
        at, goes_on = begin, True
        while goes_on and at < self.first_recent:
            chunk = self._chunk_at(at)
            goes_on = chunk.end < end
            for id, (low, high, until) in chunk.segments.items():
                if until <= begin or self._position(epoch_of(id)) >= end:
                    continue
                if until <= chunk.end:
                    yield Segment(id, low, high), self._number(until)
                else:
                    goes_on = True
            at = chunk.end
        if not goes_on:
            return
        for id, segment in self.segments.items():
            replaced_in = self.sealed_in.get(id)
            is_past = replaced_in is not None and self._position(replaced_in) <= begin
            if not is_past and self._position(epoch_of(id)) < end:
                yield segment, replaced_in

    def copy(self) -> "History":
        """The same, which nothing changes any more: what is shared with it never changes."""
        return History(
            list(self.recent),
            dict(self.segments),
            dict(self.sealed_in),
            dict(self.sealed_sizes),
            self.chunks,
            self.jumps,
            self.approximate,
        )

    def add(self, epoch: Epoch, creates: Iterable[Segment], seals: Iterable[int]) -> None:
        """Add the newest epoch: `creates` came into it, and the one before it was the last one of `seals`."""
        if epoch.number != self.count:
            left_out = epoch.number - (self.first_recent + len(self.recent))
            self.jumps = (*self.jumps, (epoch.number, left_out))
        self.recent.append(epoch)
        self.segments = _grown(self.segments, {s.id: s for s in creates})
        self.sealed_in = _grown(self.sealed_in, dict.fromkeys(seals, epoch.number))

    def record_sizes(self, sealed_sizes: Mapping[int, int]) -> None:
        self.sealed_sizes = _grown(self.sealed_sizes, sealed_sizes)

    def condense(self, head: int) -> None:
        """Bring epochs before number `head` into chunks, as far as they fill them."""
        whole = (self._position(head) - self.first_recent) // CHUNK_EPOCHS * CHUNK_EPOCHS
        if whole <= 0:
            return
        first = self.first_recent
        chunks = [self._chunk(first + at, self.recent[at : at + CHUNK_EPOCHS]) for at in range(0, whole, CHUNK_EPOCHS)]
        past = [s for chunk in chunks for s in chunk.segments if chunk.is_past(s)]
        self.segments = _without(self.segments, past)
        self.sealed_in = _without(self.sealed_in, past)
        self.sealed_sizes = _without(self.sealed_sizes, past)
        self.chunks = (*self.chunks, *map(_encode, chunks))
        del self.recent[:whole]

    def _chunk(self, first: int, epochs: list[Epoch]) -> _Chunk:
        beyond = first + len(epochs) + 1
        segments = {}
        for s in sorted({s for epoch in epochs for s in epoch.segments}):
            segment, sealed_in = self.segments[s], self.sealed_in.get(s)
            until = beyond if sealed_in is None else min(self._position(sealed_in), beyond)
            segments[s] = segment.low, segment.high, until
        return _Chunk(first, [e.created_at for e in epochs], [e.reference for e in epochs], segments)

    def _chunk_at(self, position: int) -> _Chunk:
        return _decode(self.chunks[position // CHUNK_EPOCHS])


def _grown(mapping: Mapping[int, V], more: Mapping[int, V]) -> Mapping[int, V]:
    """The mapping with more in it; changed in place unless it is empty, and so may be the one that all share."""
    if not mapping:
        return dict(more) if more else mapping
    assert isinstance(mapping, dict)
    mapping.update(more)
    return mapping


def _without(mapping: Mapping[int, V], keys: list[int]) -> Mapping[int, V]:
    """The mapping without the keys; a new one when most is gone, since a dict that was large stays large."""
    if not mapping:
        return mapping
    assert isinstance(mapping, dict)
    for key in keys:
        mapping.pop(key, None)
    return dict(mapping) if len(mapping) < len(keys) else mapping
