"""Events as they lie in a segment: each behind a header of type 0 and its length, both 32 bits, big-endian.

The format has no largest event: those above MAX_EVENT_BYTES are merged into the segment as a whole, in one frame.
Offsets and lengths are bytes; offsets are those of headers. Rules: segment-store-wire-protocol 2.1. No I/O.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from sluice.pravega.envelope import MalformedPayload

MAX_EVENT_BYTES = 8 * 1024 * 1024
"""What one append may hold of an event, without its header. Entries and events of the control plane are no larger."""
LARGEST_EVENT_BYTES = 2**31 - 1
"""What the length in a header can be."""

_EVENT = 0
_HEADER = struct.Struct(">ii")
HEADER_BYTES = _HEADER.size
_TYPE_BYTES = _EVENT.to_bytes(4)


class MalformedEvents(MalformedPayload):
    """What stands at `offset` is no event, so that no one knows where the next one begins."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"{reason} at {offset}")
        self.offset = offset
        self.reason = reason


class StoredEvent(NamedTuple):
    """An event, and the offsets in its segment where it begins and where the next one does."""

    data: bytes
    start: int
    end: int


class SplitEvents(NamedTuple):
    """Events that follow each other, and the offset where the last one ends.

    `next_bytes` is what the event at `end` takes: 0 if nothing of it is there, HEADER_BYTES if its length is not known.
    """

    events: list[StoredEvent]
    end: int
    next_bytes: int


def frame_event(event: bytes) -> bytes:
    """The event behind its header."""
    return _HEADER.pack(_EVENT, len(event)) + event


def frame_events(events: Sequence[bytes]) -> bytes:
    """The events one after the other, each behind its header; what they hold is copied once."""
    return b"".join([part for event in events for part in (_HEADER.pack(_EVENT, len(event)), event)])


def read_header(data: bytes, at: int) -> int:
    """The length of the event whose header is at `at`. Raises MalformedPayload if it is not that of an event."""
    kind, length = _HEADER.unpack_from(data, at)
    if kind != _EVENT or length < 0:
        raise MalformedPayload(_refusal(kind, length))
    return int(length)


def _refusal(kind: int, length: int) -> str:
    if kind != _EVENT or length < 0:
        return f"event header of type {kind} and {length} bytes"
    return f"event of {length} bytes"


def split_events(data: bytes, offset: int, max_event_bytes: int = LARGEST_EVENT_BYTES) -> SplitEvents:
    """The whole events that `data` begins with; `data` begins at `offset`.

    Raises MalformedEvents if it begins with what can be no event, or one that is larger than it may be.
    """
    events: list[StoredEvent] = []
    at, size, next_bytes = 0, len(data), 0
    unpack = _HEADER.unpack_from
    while at < size:
        next_bytes = HEADER_BYTES
        begin = at + HEADER_BYTES
        if begin > size:
            break
        kind, length = unpack(data, at)
        if kind != _EVENT or not 0 <= length <= max_event_bytes:
            if events:
                break
            raise MalformedEvents(offset, _refusal(kind, length))
        end = begin + length
        if end > size:
            next_bytes = HEADER_BYTES + length
            break
        events.append(StoredEvent(data[begin:end], offset + at, offset + end))
        at, next_bytes = end, 0
    return SplitEvents(events, offset + at, next_bytes)


def find_event(data: bytes) -> int | None:
    """Where in `data` an event begins; None if that cannot be found. `data` ends where an event ends.

    It may begin within an event, larger than all of it perhaps. Looked for is the lowest place from which frames follow
    each other to the very end. The first of them may lie within the event that `data` begins in, so the one behind it
    is meant. Frames without data tell nothing, for zeros look like them: these are the first two in a row with data.

    What looks like frames in that first event, up to its end, is taken for events. Takes time in proportion to
    `data`, most for zeros.
    """
    begin = _unbroken(data)
    frames = split_events(data[begin:], begin).events if begin is not None else []
    return next((frame.start for before, frame in pairwise(frames) if before.data and frame.data), None)


def _unbroken(data: bytes) -> int | None:
    """The lowest place from which frames follow each other to the very end."""
    size, unpack = len(data), _HEADER.unpack_from
    seen = bytearray(size)
    begin = data.find(_TYPE_BYTES)
    while begin >= 0:
        at = begin
        # What was seen before leads nowhere.
        while at + HEADER_BYTES <= size and not seen[at]:
            seen[at] = True
            kind, length = unpack(data, at)
            if kind != _EVENT or length < 0:
                break
            at += HEADER_BYTES + length
        if at == size:
            return begin
        begin = data.find(_TYPE_BYTES, begin + 1)
    return None


class EventSplitter:
    """Cuts what is read of a segment piece by piece into events; the first byte is that at `offset`."""

    def __init__(self, offset: int, max_event_bytes: int = LARGEST_EVENT_BYTES) -> None:
        self.offset = offset
        """Where the next event begins."""
        self._max_event_bytes = max_event_bytes
        self._pieces: list[bytes] = []
        self.pending_bytes = 0
        """How much of the next event has been fed."""
        self._next_bytes = 0

    @property
    def missing_bytes(self) -> int:
        """How much of the next event is known to be missing; 0 if nothing of it has been fed."""
        return max(0, self._next_bytes - self.pending_bytes)

    def feed(self, data: bytes) -> Iterator[SplitEvents]:
        """The events that are whole now, if any. Raises MalformedEvents behind them."""
        self._pieces.append(data)
        self.pending_bytes += len(data)
        # A large event is put together once, not anew with each piece of it.
        while self.pending_bytes >= max(1, self._next_bytes):
            pending = b"".join(self._pieces)
            found = split_events(pending, self.offset, self._max_event_bytes)
            rest = pending[found.end - self.offset :]
            self._pieces, self.pending_bytes, self._next_bytes = [rest], len(rest), found.next_bytes
            self.offset = found.end
            if found.events:
                yield found
