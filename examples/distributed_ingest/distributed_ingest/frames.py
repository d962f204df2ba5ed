"""What the process that writes receives and answers: frames of MessagePack with their length in front. Pure.

The parent sends `Batch`, the child answers each, in their order, with `Answer`.
"""

import struct

import msgspec

LENGTH = struct.Struct("!I")


class Batch(msgspec.Struct, array_like=True, frozen=True):
    """Events to write; `until_s` is the CLOCK_BOOTTIME after which writing must not begin."""

    until_s: float
    events: list[tuple[bytes, str | None]]


class Answer(msgspec.Struct, array_like=True, frozen=True):
    """What became of a batch: stored for good, unless there is an error. `last`: the process ends with this answer."""

    error: str | None = None
    last: bool = False


def frame(message: Batch | Answer) -> bytes:
    """Return a message with its length."""
    data = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(data)) + data
