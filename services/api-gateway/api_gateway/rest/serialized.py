"""Reading what Pravega's clients have serialized (background-and-other-workflows 0.2).

A cursor over bytes; everything is big-endian. What does not fit raises MalformedError.
"""

import struct
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from sluice.segmentstore.wire.text import decode_text

_BYTE, _SHORT, _INT, _LONG, _DOUBLE = (struct.Struct(f">{kind}") for kind in "BHiqd")

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class MalformedError(Exception):
    """The bytes are not what they should be."""


class Data:
    """A cursor over bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """How many bytes there are yet."""
        return len(self._data) - self._at

    def raw(self, count: int) -> bytes:
        if not 0 <= count <= self.left:
            raise MalformedError(f"{count} bytes announced, {self.left} left")
        self._at += count
        return self._data[self._at - count : self._at]

    def _number(self, form: struct.Struct) -> int:
        number: int = form.unpack(self.raw(form.size))[0]
        return number

    def byte(self) -> int:
        return self._number(_BYTE)

    def flag(self) -> bool:
        return self.byte() != 0

    def int32(self) -> int:
        return self._number(_INT)

    def int64(self) -> int:
        return self._number(_LONG)

    def double(self) -> float:
        number: float = _DOUBLE.unpack(self.raw(_DOUBLE.size))[0]
        return number

    def text(self) -> str:
        try:
            return decode_text(self.raw(self._number(_SHORT)))
        except ValueError as error:
            raise MalformedError(f"not a text: {error}") from error

    def uuid(self) -> UUID:
        return UUID(bytes=self.raw(16))

    def compact_int(self) -> int:
        """0 to 2^30 - 1 in one, two or four bytes."""
        first = self.byte()
        if first < 0x80:
            return first
        if first < 0xC0:
            return (first & 0x3F) << 8 | self.byte()
        return (first & 0x3F) << 24 | int.from_bytes(self.raw(3), "big")

    def array(self) -> bytes:
        return self.raw(self.compact_int())

    def items(self, take: Callable[["Data"], T]) -> list[T]:
        """A collection."""
        count = self.compact_int()
        if count > self.left:
            raise MalformedError(f"{count} elements announced in {self.left} bytes")
        return [take(self) for _ in range(count)]

    def mapping(self, key: Callable[["Data"], K], value: Callable[["Data"], V]) -> dict[K, V]:
        return dict(self.items(lambda data: (key(data), value(data))))

    def revisions(self) -> list["Data"]:
        """The revisions of a record behind its type byte; unknown ones are at the end."""
        if self.byte() != 0:
            raise MalformedError("a version that nobody knows")
        found = []
        for _ in range(self.byte()):
            self.byte()
            found.append(Data(self.raw(self.int32())))
        return found

    def header(self) -> None:
        """The first byte of every record."""
        if self.byte() != 0:
            raise MalformedError("a format that nobody knows")
