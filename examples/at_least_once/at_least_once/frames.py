"""Events as they lie in a segment: a type code (0), the length of the event, and its bytes.

Segment-store-wire-protocol 2.1. Pure functions; offsets and lengths are bytes.
"""

import struct
from typing import NamedTuple

_HEADER = struct.Struct(">ii")
_EVENT = 0


class NotAnEvent(Exception):
    """The segment holds something else than events at the offset."""


class StoredEvent(NamedTuple):
    """An event, and the offsets in its segment where it begins and where the next one does."""

    data: bytes
    start: int
    end: int


def split(data: bytes, offset: int) -> tuple[list[StoredEvent], int]:
    """The whole events in `data`, which begins at `offset`, and how many bytes the event behind them takes.

    The latter is 0 if nothing lies behind them, and the length of the header if not even that is there. Raises
    NotAnEvent.
    """
    events: list[StoredEvent] = []
    at = 0
    while at < len(data):
        if len(data) - at < _HEADER.size:
            return events, _HEADER.size
        kind, length = _HEADER.unpack_from(data, at)
        if kind != _EVENT or length < 0:
            raise NotAnEvent(f"type {kind}, length {length} at offset {offset + at}")
        body, end = at + _HEADER.size, at + _HEADER.size + length
        if end > len(data):
            return events, _HEADER.size + length
        events.append(StoredEvent(data[body:end], offset + at, offset + end))
        at = end
    return events, 0
