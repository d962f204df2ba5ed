"""The events of the example: JSON that says where it comes from, which one it is, and whether it is whole."""

from typing import Self
from zlib import crc32

import msgspec


class BadEvent(ValueError):
    """These bytes are not an event, or not the one that was written."""


class Event(msgspec.Struct, frozen=True):
    """Number `sequence` of a source, with its routing key; `checksum` is the CRC-32 of the other fields."""

    source: str
    sequence: int
    key: str
    text: str
    checksum: int

    @classmethod
    def of(cls, source: str, sequence: int, key: str, text: str) -> Self:
        """An event with the checksum it must have."""
        return cls(source, sequence, key, text, _checksum(source, sequence, key, text))

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The event in these bytes. Raises BadEvent."""
        try:
            event = msgspec.json.decode(data, type=cls)
        except msgspec.MsgspecError as error:
            raise BadEvent(f"{error}: {data[:100]!r}") from error
        if event.checksum != _checksum(event.source, event.sequence, event.key, event.text):
            raise BadEvent(f"the checksum does not fit: {data[:100]!r}")
        return event

    def encode(self) -> bytes:
        return msgspec.json.encode(self)


def _checksum(*fields: str | int) -> int:
    return crc32("\0".join(map(str, fields)).encode())
