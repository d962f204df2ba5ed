"""The epochs of a stream and their segments, from epoch 0 to the newest one.

Nothing in a history is ever forgotten: a reader whose segment was truncated away requests its successors, and may come
as late as it likes. It completes a segment and takes over those successors whose predecessors are all completed, so
each answer has to be the one that others were given before; none may skip an epoch (reader-groups 4.6 and 7.3).

What lies behind the head is read rarely, so it is stored in chunks of encoded epochs, as Pravega keeps its history
time series. Every answer is the same before and after: epochs and segments are immutable, only their form changes.
Adding an epoch costs the same however many there are. Rules: stream-and-transaction-semantics 2.2 to 2.7.

Epochs are found by their numbers, which only grow: nothing asks how far apart they are.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import takewhile
from operator import attrgetter, itemgetter
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


_NUMBER, _CREATED_AT, _FIRST = attrgetter("number"), attrgetter("created_at"), itemgetter(0)


def _created_in(epoch: Epoch) -> Iterator[int]:
    return takewhile(lambda s: epoch_of(s) == epoch.number, reversed(epoch.segments))


class _Chunk(msgspec.Struct, array_like=True):
    """Epochs in columns, and by id what lived in any of them: its range, and the first epoch without it.

    `end` is the first epoch behind the chunk. What lived in that, too, reads as replaced just behind it.
    """

    end: int
    numbers: list[int]
    created_at: list[int]
    references: list[int]
    segments: dict[int, tuple[float, float, int]]

    def at(self, number: int) -> int:
        """The index of the last epoch up to a number."""
        return bisect_right(self.numbers, number) - 1

    def segment(self, id: int) -> Segment:
        low, high, _ = self.segments[id]
        return Segment(id, low, high)

    def epoch(self, number: int) -> Epoch:
        at = self.at(number)
        alive = tuple(s for s, (_, _, until) in self.segments.items() if epoch_of(s) <= number < until)
        return Epoch(number, self.references[at], self.created_at[at], alive)

    def is_past(self, segment: int) -> bool:
        """Whether a segment of an epoch before the chunk's end was replaced in this chunk or before."""
        return segment not in self.segments or self.segments[segment][2] <= self.end


_encode = msgspec.msgpack.Encoder().encode
_decode_chunk = lru_cache(_CACHED_CHUNKS)(msgspec.msgpack.Decoder(_Chunk).decode)


def _decode(chunk: tuple[int, bytes]) -> _Chunk:
    return _decode_chunk(chunk[1])


class History(msgspec.Struct, array_like=True, gc=False):
    """`chunks` come first, each with its first number; then the `recent` epochs, with all of their segments by id.

    `sealed_in` is the first epoch without the segment, `sealed_sizes` are bytes; both of segments in recent epochs.
    Sizes are read from the head on only, so the sizes of others are dropped.
    The segments of an epoch in `after_all` follow all of the epoch before, whatever their key ranges are.
    """

    recent: list[Epoch]
    segments: Mapping[int, Segment]
    sealed_in: Mapping[int, int] = NONE
    sealed_sizes: Mapping[int, int] = NONE
    chunks: tuple[tuple[int, bytes], ...] = ()
    after_all: tuple[int, ...] = ()

    @property
    def first(self) -> int:
        """The number of the first epoch."""
        return self.chunks[0][0] if self.chunks else self.recent[0].number

    @property
    def count(self) -> int:
        """One more than the newest epoch's number."""
        return self.recent[-1].number + 1

    def _recent_at(self, number: int) -> int:
        """The index of the last recent epoch up to a number; -1 if that comes before them."""
        return bisect_right(self.recent, number, key=_NUMBER) - 1

    def _chunk_at(self, number: int) -> int:
        """The index of the last chunk that begins up to a number, else of the first one."""
        return max(bisect_right(self.chunks, number, key=_FIRST) - 1, 0)

    def _chunk_of(self, number: int) -> _Chunk | None:
        """The chunk that has the last epoch up to a number; None if that is a recent one."""
        is_condensed = self.chunks and number < self.recent[0].number
        return _decode(self.chunks[self._chunk_at(number)]) if is_condensed else None

    def has(self, number: int) -> bool:
        """Whether there is an epoch of that number."""
        return self.first <= number and self.before(number + 1) == number

    def before(self, number: int) -> int:
        """The number of the last epoch before a number that is behind the first one."""
        return self._at(number - 1).number

    def after(self, number: int) -> int:
        """The number of the first epoch behind a number that is before the newest one."""
        chunk = self._chunk_of(number)
        if chunk:
            return [*chunk.numbers, chunk.end][chunk.at(number) + 1]
        return self.recent[self._recent_at(number) + 1].number

    def numbers(self, first: int, last: int) -> Iterator[int]:
        """The numbers of the epochs from `first` to `last`."""
        number = first - 1
        while number < min(last, self.count - 1) and (number := self.after(number)) <= last:
            yield number

    def epoch(self, number: int) -> Epoch:
        """The epoch of a number that there is."""
        chunk = self._chunk_of(number)
        return chunk.epoch(number) if chunk else self._at(number)

    def reference(self, number: int) -> int:
        return self._at(number).reference

    def created_at(self, number: int) -> int:
        return self._at(number).created_at

    def _at(self, number: int) -> Epoch:
        """The last epoch up to a number; without its segments, unless it is a recent one."""
        if chunk := self._chunk_of(number):
            at = chunk.at(number)
            return Epoch(chunk.numbers[at], chunk.references[at], chunk.created_at[at], ())
        return self.recent[self._recent_at(number)]

    def epoch_at(self, time: int) -> int:
        """The number of the newest epoch created at `time`, epoch ms, or before; -1 if there is none."""
        if at := bisect_right(self.recent, time, key=_CREATED_AT):
            return self.recent[at - 1].number
        if at := bisect_right(self.chunks, time, key=lambda chunk: _decode(chunk).created_at[0]):
            chunk = _decode(self.chunks[at - 1])
            return chunk.numbers[bisect_right(chunk.created_at, time) - 1]
        return -1

    def find(self, segment: int) -> Segment | None:
        """The segment; None if the stream never had it."""
        found = self.segments.get(segment)
        chunk = self._chunk_of(epoch_of(segment)) if found is None else None
        return chunk.segment(segment) if chunk and segment in chunk.segments else found

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
        born = self._chunk_at(epoch_of(segment))
        last = bisect_left(self.chunks, True, born, key=lambda chunk: _decode(chunk).is_past(segment))
        return _decode(self.chunks[last]).segments[segment][2]

    def last_epoch(self, segment: int) -> int:
        """The number of the last epoch that has the segment."""
        replaced_in = self.replaced_in(segment)
        return self.recent[-1].number if replaced_in is None else self.before(replaced_in)

    def within(self, first: int, last: int) -> Iterator[Segment]:
        """All segments of the epochs from `first` to `last`, each once; none if `first` comes after `last`."""
        if first > last:
            return
        yield from (self.segment(s) for s in self.epoch(first).segments)
        for begin, chunk in self._chunks(first, last):
            yield from (chunk.segment(s) for s in chunk.segments if max(begin, first + 1) <= epoch_of(s) <= last)
        for epoch in self.recent[self._recent_at(first) + 1 : self._recent_at(last) + 1]:
            yield from (self.segments[s] for s in _created_in(epoch))

    def _chunks(self, first: int, last: int) -> Iterator[tuple[int, _Chunk]]:
        """The chunks from that of epoch `first` to that of `last`, each with its first number."""
        if first < self.recent[0].number:
            for chunk in self.chunks[self._chunk_at(first) : self._chunk_at(last) + 1]:
                yield chunk[0], _decode(chunk)

    def lives(self, first: int, last: int) -> Iterator[tuple[Segment, int | None]]:
        """The segments of the epochs from `first` to `last`, each once, in no order, with the first epoch without it.

        None for those in the newest epoch. It passes each chunk once; nothing may be added or condensed meanwhile.
        """
        if first > last:
            return
        goes_on = True
        for _, chunk in self._chunks(first, self.recent[-1].number):
            goes_on = chunk.end <= last
            for id, (low, high, until) in chunk.segments.items():
                if until <= first or epoch_of(id) > last:
                    continue
                if until <= chunk.end:
                    yield Segment(id, low, high), until
                else:
                    goes_on = True
            if not goes_on:
                return
        for id, segment in self.segments.items():
            replaced_in = self.sealed_in.get(id)
            if (replaced_in is None or replaced_in > first) and epoch_of(id) <= last:
                yield segment, replaced_in

    def copy(self) -> "History":
        """The same, which nothing changes any more: what is shared with it never changes."""
        return msgspec.structs.replace(
            self,
            recent=list(self.recent),
            segments=dict(self.segments),
            sealed_in=dict(self.sealed_in),
            sealed_sizes=dict(self.sealed_sizes),
        )

    def add(self, epoch: Epoch, creates: Iterable[Segment], seals: Iterable[int]) -> None:
        """Add the newest epoch: `creates` came into it, and the one before it was the last one of `seals`."""
        self.recent.append(epoch)
        self.segments = _grown(self.segments, {s.id: s for s in creates})
        self.sealed_in = _grown(self.sealed_in, dict.fromkeys(seals, epoch.number))

    def record_sizes(self, sealed_sizes: Mapping[int, int]) -> None:
        self.sealed_sizes = _grown(self.sealed_sizes, sealed_sizes)

    def condense(self, head: int) -> None:
        """Bring epochs before number `head` into chunks, as far as they fill them."""
        whole = self._recent_at(head) // CHUNK_EPOCHS * CHUNK_EPOCHS
        if whole <= 0:
            return
        chunks = [self._chunk(at) for at in range(0, whole, CHUNK_EPOCHS)]
        past = [s for chunk in chunks for s in chunk.segments if chunk.is_past(s)]
        self.segments = _without(self.segments, past)
        self.sealed_in = _without(self.sealed_in, past)
        self.sealed_sizes = _without(self.sealed_sizes, past)
        self.chunks = (*self.chunks, *((chunk.numbers[0], _encode(chunk)) for chunk in chunks))
        del self.recent[:whole]

    def _chunk(self, at: int) -> _Chunk:
        """A chunk of the recent epochs from an index on; there are more behind them."""
        epochs, end = self.recent[at : at + CHUNK_EPOCHS], self.recent[at + CHUNK_EPOCHS].number
        segments = {}
        for s in sorted({s for epoch in epochs for s in epoch.segments}):
            segment = self.segments[s]
            segments[s] = segment.low, segment.high, min(self.sealed_in.get(s, end + 1), end + 1)
        numbers, times = [e.number for e in epochs], [e.created_at for e in epochs]
        return _Chunk(end, numbers, times, [e.reference for e in epochs], segments)


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
