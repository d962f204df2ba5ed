"""Reading the events of a segment from an offset, without waiting for more to be written.

What a retention policy truncated away before it was read is gone: reading goes on behind it and says how much was
skipped. No state.
"""

import logging
from functools import partial

import msgspec

from sluice.pravega import SegmentMissing, SegmentStore, SegmentTruncated
from sluice.pravega.event_frames import StoredEvent, split_events
from sluice_client.attempts import patiently

_log = logging.getLogger(__name__)


class Piece(msgspec.Struct, frozen=True):
    """What was read of a segment: events one after the other, the next one would begin at `end`.

    `finished`: the segment is sealed and nothing follows.
    """

    segment: str
    events: list[StoredEvent]
    end: int
    finished: bool = False


async def read_piece(store: SegmentStore, segment: str, offset: int, length: int, patience_s: float) -> Piece:
    """The whole events in the next `length` bytes, one at least if there is one, however large.

    Raises SegmentStoreError when the patience is over, MalformedEvents.
    """
    try:
        found = await patiently(lambda: store.read_segment(segment, offset, length), patience_s)
        pieces, size, ended = [found.data], len(found.data), found.end_of_segment
        whole = split_events(found.data, offset)
        while not whole.events and size < whole.next_bytes and not ended:
            rest = partial(store.read_segment, segment, offset + size, whole.next_bytes - size)
            more = await patiently(rest, patience_s)
            if not more.data:
                break
            pieces.append(more.data)
            size, ended = size + len(more.data), more.end_of_segment
            if size >= whole.next_bytes:
                # A large event is put together once.
                whole = split_events(b"".join(pieces), offset)
    except SegmentTruncated as truncated:
        start = int(getattr(truncated.reply, "start_offset", offset))
        _log.warning("%s was truncated: skipped the %d bytes before offset %d", segment, start - offset, start)
        return Piece(segment, [], start)
    except SegmentMissing:
        _log.warning("%s was deleted: skipped what followed offset %d", segment, offset)
        return Piece(segment, [], offset, finished=True)
    return Piece(segment, whole.events, whole.end, finished=ended and whole.end == offset + size)
