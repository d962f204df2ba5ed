"""The bytes of a revisioned stream: entries one after the other, each with the header of an event.

The Java client writes and reads the same (segment-store-wire-protocol 2.1 and 7.6).
"""

from collections.abc import Iterator

from sluice.pravega.event_frames import HEADER_BYTES, MAX_EVENT_BYTES, EventSplitter, MalformedEvents
from sluice_client.errors import EntryMalformed, EntryTooLarge

MAX_ENTRY_BYTES = MAX_EVENT_BYTES


def stored_bytes(entry: bytes, max_bytes: int = MAX_ENTRY_BYTES) -> int:
    """How many bytes an entry takes in the stream. Raises EntryTooLarge."""
    if len(entry) > max_bytes:
        raise EntryTooLarge(f"{len(entry)} bytes")
    return HEADER_BYTES + len(entry)


class EntryReader:
    """Cuts what was read from a stream into entries; the first byte is that at `offset`."""

    def __init__(self, segment: str, offset: int) -> None:
        self._segment = segment
        self._events = EventSplitter(offset, MAX_ENTRY_BYTES)

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The entries that are whole now, each with the offset after it. Raises EntryMalformed."""
        try:
            for found in self._events.feed(data):
                for event in found.events:
                    yield event.end, event.data
        except MalformedEvents as error:
            raise EntryMalformed(f"{self._segment}: {error}") from error

    def finish(self) -> None:
        """Says that there is nothing more. Raises EntryMalformed if an entry is not whole."""
        if pending := self._events.pending_bytes:
            raise EntryMalformed(f"{self._segment} at {self._events.offset}: {pending} bytes of an entry")
