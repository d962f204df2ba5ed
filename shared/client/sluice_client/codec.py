"""How states and updates become bytes and come back. Codecs hold nothing that changes."""

from types import UnionType
from typing import Generic, Protocol, TypeVar

import msgspec

T = TypeVar("T")


class Codec(Protocol[T]):
    """Turns values of one type into bytes and back."""

    def encode(self, value: T) -> bytes:
        """The bytes of a value."""

    def decode(self, data: bytes) -> T:
        """The value of bytes. Raises ValueError if they are none."""


class JsonCodec(Generic[T]):
    """JSON by msgspec: for structs, their unions (tagged), and whatever else msgspec knows.

    mypy cannot infer the type of a union: `codec: JsonCodec[Joined | Left] = JsonCodec(Joined | Left)`.
    """

    def __init__(self, kind: type[T] | UnionType) -> None:
        self._encoder = msgspec.json.Encoder()
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)

    def encode(self, value: T) -> bytes:
        """See Codec."""
        return self._encoder.encode(value)

    def decode(self, data: bytes) -> T:
        """See Codec; msgspec's DecodeError and ValidationError are ValueErrors."""
        return self._decoder.decode(data)
