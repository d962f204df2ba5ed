"""The bytes of a revisioned stream: entries one after the other, each with the header of an event.

The Java client writes and reads the same (segment-store-wire-protocol 2.1 and 7.6). The header is the type code 0 and
the length of the entry, both 32 bits, big-endian.
"""

import struct
from collections.abc import Iterator

from sluice.client.errors import EntryMalformed, EntryTooLarge

_HEADER = struct.Struct(">ii")
_EVENT = 0
MAX_ENTRY_BYTES = 8 * 1024 * 1024


def stored_bytes(entry: bytes) -> int:
    """How many bytes an entry takes in the stream. Raises EntryTooLarge."""
    if len(entry) > MAX_ENTRY_BYTES:
        raise EntryTooLarge(f"{len(entry)} bytes")
    return _HEADER.size + len(entry)


class EntryReader:
    """Cuts what was read from a stream into entries; the first byte is that at `offset`."""

    def __init__(self, segment: str, offset: int) -> None:
        self._segment = segment
        self._offset = offset
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The entries that are whole now, each with the offset after it. Raises EntryMalformed."""
        data = self._rest + data
        at = 0
        try:
            while len(data) - at >= _HEADER.size:
                kind, length = _HEADER.unpack_from(data, at)
                if kind != _EVENT or not 0 <= length <= MAX_ENTRY_BYTES:
                    raise EntryMalformed(f"{self._segment} at {self._offset}: type {kind}, length {length}")
                end = at + _HEADER.size + length
                if end > len(data):
                    break
                self._offset += end - at
                yield self._offset, data[at + _HEADER.size : end]
                at = end
        finally:
            self._rest = data[at:]

    def finish(self) -> None:
        """Says that there is nothing more. Raises EntryMalformed if an entry is not whole."""
        if self._rest:
            raise EntryMalformed(f"{self._segment} at {self._offset}: {len(self._rest)} bytes of an entry")
