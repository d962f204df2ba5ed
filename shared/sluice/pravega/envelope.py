"""Pravega's versioned envelope, and the primitives in it: how its own programs write records.

An envelope is `00`, the type of object if the family has several, the version and the number of revisions; then per
revision its number, length and data. A reader skips revisions that it does not know, and bytes behind the fields
that it knows. Everything is big-endian. Rules: segment-store-cluster A3. Pure functions.
"""

import struct
from collections.abc import Callable, Iterable
from typing import TypeVar
from uuid import UUID

from sluice.pravega.wire.text import decode_text, encode_text

MAX_COMPACT_INT = 2**30 - 1
MAX_COMPACT_LONG = 2**62 - 1

_SHORT = struct.Struct(">H")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_DOUBLE = struct.Struct(">d")

_T = TypeVar("_T")
_K = TypeVar("_K")
_V = TypeVar("_V")


class MalformedPayload(ValueError):
    """The bytes are not the payload they should be."""


def envelope(*revisions: bytes, version: int = 0) -> bytes:
    """An object with these revisions."""
    return b"\0" + _version(version, revisions)


def typed_envelope(type: int, *revisions: bytes) -> bytes:
    """An object of a family, of version 0, with these revisions."""
    return bytes((0, type)) + _version(0, revisions)


def _version(version: int, revisions: tuple[bytes, ...]) -> bytes:
    parts = (bytes((number,)) + int32(len(data)) + data for number, data in enumerate(revisions))
    return bytes((version, len(revisions))) + b"".join(parts)


def int32(number: int) -> bytes:
    """A signed number of four bytes."""
    return _INT.pack(number)


def int64(number: int) -> bytes:
    """A signed number of eight bytes."""
    return _LONG.pack(number)


def double(number: float) -> bytes:
    return _DOUBLE.pack(number)


def compact_int(number: int) -> bytes:
    """A number from 0 to MAX_COMPACT_INT in one, two or four bytes. Raises ValueError for any other."""
    if not 0 <= number <= MAX_COMPACT_INT:
        raise ValueError(f"{number} is no compact int")
    if number <= 0x7F:
        return bytes((number,))
    if number <= 0x3FFF:
        return (number | 0x8000).to_bytes(2, "big")
    return (number | 0xC0000000).to_bytes(4, "big")


def compact_long(number: int) -> bytes:
    """A number from 0 to MAX_COMPACT_LONG in one, two, four or eight bytes. Raises ValueError for any other."""
    if not 0 <= number <= MAX_COMPACT_LONG:
        raise ValueError(f"{number} is no compact long")
    return _compact(number, 62, 0)


def compact_signed_long(number: int) -> bytes:
    """A number of 62 bits with its sign in one, two, four or eight bytes. Raises ValueError for any other."""
    size = ~number if number < 0 else number
    if size >= 1 << 61:
        raise ValueError(f"{number} is no compact signed long")
    return _compact(size, 61, 1 << 63 if number < 0 else 0)


def _compact(number: int, bits: int, sign: int) -> bytes:
    """A number behind two bits that say how many bytes it takes; `bits` of eight bytes are for the number."""
    for width, length in enumerate((1, 2, 4, 8)):
        left_out = 64 - 8 * length
        if number < 1 << (bits - left_out):
            return (sign >> left_out | width << (bits - left_out) | number).to_bytes(length, "big")
    raise AssertionError("the caller has looked at the size")


def text(value: str) -> bytes:
    """Raises ValueError above 65,535 bytes."""
    raw = encode_text(value)
    return _SHORT.pack(len(raw)) + raw


def byte_array(value: bytes) -> bytes:
    return compact_int(len(value)) + value


def collection(elements: Iterable[bytes]) -> bytes:
    """Encoded elements, or entries of a map, behind their number."""
    found = list(elements)
    return compact_int(len(found)) + b"".join(found)


class PayloadReader:
    """A position in some bytes; every method reads one field and moves behind it. All raise MalformedPayload."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def remaining(self) -> int:
        """How many bytes have not been read."""
        return len(self._data) - self._at

    def envelope(self) -> list["PayloadReader"]:
        """The revisions of an object of version 0; one at least."""
        self._expect(0, "format")
        self._expect(0, "version")
        return self._revisions()

    def versioned_envelope(self) -> tuple[int, list["PayloadReader"]]:
        """The version of an object, and its revisions; one at least."""
        self._expect(0, "format")
        return self.byte(), self._revisions()

    def typed_envelope(self) -> tuple[int, list["PayloadReader"]]:
        """The type of an object of a family, and its revisions; one at least."""
        self._expect(0, "format")
        type = self.byte()
        self._expect(0, "version")
        return type, self._revisions()

    def _revisions(self) -> list["PayloadReader"]:
        revisions = [self._revision(number) for number in range(self.byte())]
        if not revisions:
            raise MalformedPayload("no revision")
        return revisions

    def _revision(self, number: int) -> "PayloadReader":
        self._expect(number, "revision")
        return PayloadReader(self.raw(self.int32()))

    def _expect(self, value: int, what: str) -> None:
        found = self.byte()
        if found != value:
            raise MalformedPayload(f"{what} {found} where {value} must be")

    def byte(self) -> int:
        return self.raw(1)[0]

    def int32(self) -> int:
        return int(_INT.unpack(self.raw(4))[0])

    def int64(self) -> int:
        return int(_LONG.unpack(self.raw(8))[0])

    def double(self) -> float:
        return float(_DOUBLE.unpack(self.raw(8))[0])

    def compact_int(self) -> int:
        first = self.byte()
        if first < 0x80:
            return first
        if first < 0xC0:
            return (first & 0x3F) << 8 | self.byte()
        return (first & 0x3F) << 24 | int.from_bytes(self.raw(3), "big")

    def compact_long(self) -> int:
        return self._compact(self.byte(), 62)

    def compact_signed_long(self) -> int:
        first = self.byte()
        number = self._compact(first & 0x7F, 61)
        return ~number if first & 0x80 else number

    def _compact(self, first: int, bits: int) -> int:
        width = first >> (bits - 56)
        length = 1 << width
        raw = bytes((first,)) + self.raw(length - 1)
        return int.from_bytes(raw, "big") & (1 << (bits - 64 + 8 * length)) - 1

    def boolean(self) -> bool:
        return self.byte() != 0

    def uuid(self) -> UUID:
        return UUID(bytes=self.raw(16))

    def text(self) -> str:
        raw = self.raw(int(_SHORT.unpack(self.raw(2))[0]))
        try:
            return decode_text(raw)
        except ValueError as error:
            raise MalformedPayload(str(error)) from error

    def byte_array(self) -> bytes:
        return self.raw(self.compact_int())

    def collection(self, element: Callable[["PayloadReader"], _T]) -> list[_T]:
        """Elements, each read by `element`, which has to read at least one byte."""
        count = self.compact_int()
        if count > self.remaining:
            raise MalformedPayload(f"{count} elements announced in {self.remaining} bytes")
        return [element(self) for _ in range(count)]

    def mapping(self, key: Callable[["PayloadReader"], _K], value: Callable[["PayloadReader"], _V]) -> dict[_K, _V]:
        return dict(self.collection(lambda data: (key(data), value(data))))

    def raw(self, count: int) -> bytes:
        if not 0 <= count <= self.remaining:
            raise MalformedPayload(f"{count} bytes wanted at {self._at} of {len(self._data)}")
        self._at += count
        return self._data[self._at - count : self._at]
