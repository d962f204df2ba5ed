"""What goes between a process and its helper: frames of MessagePack, each with its length before it.

Arguments and results are MessagePack inside of these, which only the job itself decodes. Pure.
"""

import msgspec

LENGTH_BYTES = 4


class Submit(msgspec.Struct, frozen=True, tag=True):
    """Do the job of that name; `id` is the sender's."""

    id: int
    job: str
    arguments: bytes


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Nothing waits for the job any more."""

    id: int


class Done(msgspec.Struct, frozen=True, tag=True):
    """The job's result."""

    id: int
    result: bytes


class Failed(msgspec.Struct, frozen=True, tag=True):
    """Why there is none: the name of an error of `sluice.lookback.errors`, its message, and its hint."""

    id: int
    error: str
    message: str
    hint: str


_encode = msgspec.msgpack.Encoder().encode
question_of = msgspec.msgpack.Decoder(Submit | Cancel).decode
answer_of = msgspec.msgpack.Decoder(Done | Failed).decode


def frame(message: Submit | Cancel | Done | Failed) -> bytes:
    """The message with its length before it."""
    encoded = _encode(message)
    return len(encoded).to_bytes(LENGTH_BYTES, "big") + encoded


def length_of(prefix: bytes) -> int:
    """How many bytes follow."""
    return int.from_bytes(prefix, "big")
