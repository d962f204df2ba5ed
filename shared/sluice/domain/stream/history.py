"""The epochs of a stream and their segments, from epoch 0 to the newest one.

Nothing in a history is ever forgotten: a reader whose segment was truncated away requests its successors, and may come
as late as it likes. It completes a segment and takes over those successors whose predecessors are all completed, so
each answer has to be the one that others were given before; none may skip an epoch (reader-groups 4.6 and 7.3).

What lies behind the head is read rarely, so it is stored in chunks of encoded epochs, as Pravega keeps its history
time series. Every answer is the same before and after: epochs and segments are immutable, only their form changes.
Adding an epoch costs the same however many there are. Rules: stream-and-transaction-semantics 2.2 to 2.7.
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


class Epoch(msgspec.Struct, frozen=True, array_like=True):
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
    """The epochs from `first` on, and by id what lived in any of them: range, and the epoch that it was sealed in.

    One that outlived the chunk reads as sealed just behind `end`, the first epoch after the chunk.
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

    def epoch(self, number: int) -> Epoch:
        at = number - self.first
        present = tuple(s for s, (_, _, until) in self.segments.items() if epoch_of(s) <= number < until)
        return Epoch(number, self.references[at], self.created_at[at], present)

    def is_past(self, segment: int) -> bool:
        """Whether a segment of an epoch before `end` was sealed in this chunk or before."""
        return segment not in self.segments or self.segments[segment][2] <= self.end


_encode = msgspec.msgpack.Encoder().encode
_decode = lru_cache(_CACHED_CHUNKS)(msgspec.msgpack.Decoder(_Chunk).decode)


class History(msgspec.Struct, array_like=True):
    """`chunks` come first, then the `recent` epochs, with all of their segments by id.

    `sealed_in` is the first epoch without the segment, `sealed_sizes` are bytes; both of segments in recent epochs.
    Sizes are read from the head on only, so the sizes of others are dropped.
    """

    recent: list[Epoch]
    segments: Mapping[int, Segment]
    sealed_in: Mapping[int, int] = NONE
    sealed_sizes: Mapping[int, int] = NONE
    chunks: tuple[bytes, ...] = ()

    @property
    def first_recent(self) -> int:
        return len(self.chunks) * CHUNK_EPOCHS

    @property
    def count(self) -> int:
        """How many epochs there ever were: one more than the newest one's number."""
        return self.first_recent + len(self.recent)

    def epoch(self, number: int) -> Epoch:
        """The epoch of a number from 0 up to `count`."""
        at = number - self.first_recent
        return self.recent[at] if at >= 0 else self._chunk_of(number).epoch(number)

    def reference(self, number: int) -> int:
        at = number - self.first_recent
        return self.recent[at].reference if at >= 0 else self._chunk_of(number).references[number % CHUNK_EPOCHS]

    def created_at(self, number: int) -> int:
        at = number - self.first_recent
        return self.recent[at].created_at if at >= 0 else self._chunk_of(number).created_at[number % CHUNK_EPOCHS]

    def epoch_at(self, time: int) -> int:
        """The number of the newest epoch created at `time`, epoch ms, or before; -1 if there is none."""
        return bisect_right(range(self.count), time, key=self.created_at) - 1

    def find(self, segment: int) -> Segment | None:
        """The segment; None if the stream never had it."""
        found = self.segments.get(segment)
        if found is None and 0 <= epoch_of(segment) < self.first_recent:
            chunk = self._chunk_of(epoch_of(segment))
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
        lived = range(epoch_of(segment) // CHUNK_EPOCHS, len(self.chunks))
        last = bisect_left(lived, True, key=lambda at: _decode(self.chunks[at]).is_past(segment))
        return _decode(self.chunks[lived[last]]).segments[segment][2]

    def last_epoch(self, segment: int) -> int:
        """The number of the last epoch that has the segment."""
        replaced_in = self.replaced_in(segment)
        return (self.count if replaced_in is None else replaced_in) - 1

    def within(self, first: int, last: int) -> Iterator[Segment]:
        """All segments of the epochs from `first` to `last`, each once; none if `first` comes after `last`."""
        if first > last:
            return
        yield from (self.segment(s) for s in self.epoch(first).segments)
        number = first + 1
        while number <= last and number < self.first_recent:
            chunk = self._chunk_of(number)
            yield from (chunk.segment(s) for s in chunk.segments if number <= epoch_of(s) <= last)
            number = chunk.end
        for at in range(number, last + 1):
            yield from (self.segments[s] for s in _created_in(self.epoch(at)))

    def add(self, epoch: Epoch, creates: Iterable[Segment], seals: Iterable[int]) -> None:
        """Add the newest epoch: `creates` came into it, and the one before it was the last one of `seals`."""
        self.recent.append(epoch)
        self.segments = _grown(self.segments, {s.id: s for s in creates})
        self.sealed_in = _grown(self.sealed_in, dict.fromkeys(seals, epoch.number))

    def record_sizes(self, sealed_sizes: Mapping[int, int]) -> None:
        self.sealed_sizes = _grown(self.sealed_sizes, sealed_sizes)

    def condense(self, head: int) -> None:
        """Bring epochs before number `head` into chunks, as far as they fill them."""
        whole = (head - self.first_recent) // CHUNK_EPOCHS * CHUNK_EPOCHS
        if whole <= 0:
            return
        chunks = [self._chunk(self.recent[at : at + CHUNK_EPOCHS]) for at in range(0, whole, CHUNK_EPOCHS)]
        past = [s for chunk in chunks for s in chunk.segments if chunk.is_past(s)]
        self.segments = _without(self.segments, past)
        self.sealed_in = _without(self.sealed_in, past)
        self.sealed_sizes = _without(self.sealed_sizes, past)
        self.chunks = (*self.chunks, *map(_encode, chunks))
        del self.recent[:whole]

    def _chunk(self, epochs: list[Epoch]) -> _Chunk:
        first, beyond = epochs[0].number, epochs[-1].number + 2
        segments = {}
        for s in sorted({s for epoch in epochs for s in epoch.segments}):
            segment = self.segments[s]
            segments[s] = segment.low, segment.high, min(self.sealed_in.get(s, beyond), beyond)
        return _Chunk(first, [e.created_at for e in epochs], [e.reference for e in epochs], segments)

    def _chunk_of(self, epoch: int) -> _Chunk:
        return _decode(self.chunks[epoch // CHUNK_EPOCHS])


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
