"""The events in a segment, as clients append them: a header of type 0 and length before each.

Appends end where events end, so what is there of a segment is whole events; should it not be, the rest is left for
when there is more of it. Rules: segment-store-wire-protocol 2.1 and 2.6.
"""

import struct
from collections.abc import AsyncIterator

import msgspec

from sluice.segmentstore.errors import SegmentTruncated
from sluice.segmentstore.store import SegmentStore

MAX_EVENT_BYTES = 8 * 1024 * 1024
READ_BYTES = 64 * 1024

_HEADER = struct.Struct(">ii")
HEADER_BYTES = _HEADER.size


class MalformedEventsError(Exception):
    """What stands at `offset` is no event, so nobody knows where the next one begins."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"{reason} at {offset}")
        self.offset = offset
        self.reason = reason


class Events(msgspec.Struct, frozen=True):
    """Events without their headers, each with the offset that its header is at; `end` is where the last one ends."""

    events: list[tuple[int, bytes]]
    end: int


def split_events(data: bytes, offset: int) -> Events:
    """The whole events that `data` begins with. Raises MalformedEventsError if it begins with what can be none."""
    events: list[tuple[int, bytes]] = []
    at = 0
    while len(data) - at >= HEADER_BYTES:
        kind, length = _HEADER.unpack_from(data, at)
        if kind != 0 or not 0 <= length <= MAX_EVENT_BYTES:
            if events:
                break
            raise MalformedEventsError(offset, f"event header of type {kind} and {length} bytes")
        end = at + HEADER_BYTES + length
        if end > len(data):
            break
        events.append((offset + at, data[at + HEADER_BYTES : end]))
        at = end
    return Events(events, offset + at)


async def read_events(store: SegmentStore, segment: str, offset: int) -> AsyncIterator[Events]:
    """The events from an offset up to the present end of the segment; if it begins later, from there.

    Raises SegmentStoreError, MalformedEventsError.
    """
    pending = b""
    while True:
        try:
            data = (await store.read_segment(segment, offset + len(pending), READ_BYTES)).data
        except SegmentTruncated:
            offset, pending = (await store.segment_info(segment)).start_offset, b""
            continue
        if not data:
            return
        pending += data
        while (found := split_events(pending, offset)).events:
            pending, offset = pending[found.end - offset :], found.end
            yield found
