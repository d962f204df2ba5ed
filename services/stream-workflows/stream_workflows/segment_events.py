"""Reading the events of a segment that the control plane writes, or that is written for it.

Appends end where events end, so what is there of a segment is whole events; should it not be, the rest is left for
when there is more of it.
"""

from collections.abc import AsyncIterator

from sluice.pravega.errors import SegmentTruncated
from sluice.pravega.event_frames import MAX_EVENT_BYTES, EventSplitter, SplitEvents
from sluice.pravega.store import SegmentStore

READ_BYTES = 64 * 1024


async def read_events(store: SegmentStore, segment: str, offset: int) -> AsyncIterator[SplitEvents]:
    """The events from an offset up to the present end of the segment; if it begins later, from there.

    Raises SegmentStoreError, MalformedEvents.
    """
    events = EventSplitter(offset, MAX_EVENT_BYTES)
    while True:
        try:
            data = (await store.read_segment(segment, events.offset + events.pending_bytes, READ_BYTES)).data
        except SegmentTruncated:
            events = EventSplitter((await store.segment_info(segment)).start_offset, MAX_EVENT_BYTES)
            continue
        if not data:
            return
        for found in events.feed(data):
            yield found
