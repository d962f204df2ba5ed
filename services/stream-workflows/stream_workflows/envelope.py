"""Pravega's versioned envelope: how its own programs put records into segments.

An envelope is `00`, the type of object if the family has several, the version and the number of revisions; then per
revision its number, length and data. Newer revisions and trailing bytes are skipped. Everything is big-endian.
Rules: segment-store-cluster A3. Pure functions.
"""

import struct

from sluice.segmentstore.wire.text import decode_text

_SHORT = struct.Struct(">H")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_DOUBLE = struct.Struct(">d")
_ONE_REVISION = bytes((0, 0, 1, 0))


class MalformedPayload(Exception):
    """The bytes are not the record they should be."""


def envelope(data: bytes) -> bytes:
    """An object of version 0 with one revision."""
    return _ONE_REVISION + _INT.pack(len(data)) + data


def compact(count: int) -> bytes:
    """A compact int: one, two or four bytes by its size, below 2**30."""
    if count <= 0x7F:
        return bytes((count,))
    if count <= 0x3FFF:
        return _SHORT.pack(count | 0x8000)
    return struct.pack(">I", count | 0xC0000000)


class PayloadReader:
    """A position in some bytes; every method reads one thing and moves behind it. All raise MalformedPayload."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def envelope(self) -> "PayloadReader":
        """The data of the first revision of an object."""
        self._expect(0, "format")
        return self._revisions()

    def typed_envelope(self) -> tuple[int, "PayloadReader"]:
        """The type of an object of a family, and the data of its first revision."""
        self._expect(0, "format")
        return self.byte(), self._revisions()

    def _revisions(self) -> "PayloadReader":
        self._expect(0, "version")
        revisions = [self._revision(number) for number in range(self.byte())]
        if not revisions:
            raise MalformedPayload("no revision")
        return PayloadReader(revisions[0])

    def _revision(self, number: int) -> bytes:
        self._expect(number, "revision")
        return self._bytes(self.int32())

    def _expect(self, value: int, what: str) -> None:
        found = self.byte()
        if found != value:
            raise MalformedPayload(f"{what} {found} where {value} must be")

    def compact(self) -> int:
        first = self.byte()
        if first < 0x80:
            return first
        if first < 0xC0:
            return (first & 0x3F) << 8 | self.byte()
        return (first & 0x3F) << 24 | int.from_bytes(self._bytes(3), "big")

    def text(self) -> str:
        raw = self._bytes(int(_SHORT.unpack(self._bytes(2))[0]))
        try:
            return decode_text(raw)
        except ValueError as error:
            raise MalformedPayload(str(error)) from error

    def byte(self) -> int:
        return self._bytes(1)[0]

    def int32(self) -> int:
        return int(_INT.unpack(self._bytes(4))[0])

    def int64(self) -> int:
        return int(_LONG.unpack(self._bytes(8))[0])

    def double(self) -> float:
        return float(_DOUBLE.unpack(self._bytes(8))[0])

    def _bytes(self, count: int) -> bytes:
        end = self._at + count
        if count < 0 or end > len(self._data):
            raise MalformedPayload(f"{count} bytes wanted at {self._at} of {len(self._data)}")
        piece, self._at = self._data[self._at : end], end
        return piece
