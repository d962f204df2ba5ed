"""Frames: a command as bytes and back.

A frame is `i32 type code, i32 payload length, payload` (segment-store-wire-protocol 1.1). Bytes behind the known fields
of a payload are skipped and absent trailing fields get their defaults: that is the protocol's way to grow.
Pure functions.
"""

import struct
from typing import Any

from sluice.pravega.wire import appends, hello, others, refusals, segments, tables
from sluice.pravega.wire.command import BY_CODE, LAYOUTS, Command

MAX_PAYLOAD_BYTES = 0xFFFFFF
"""What may be received in one frame, header not counted."""
MAX_SENT_PAYLOAD_BYTES = MAX_PAYLOAD_BYTES - 8
"""What a store accepts: it counts the header."""
HEADER = struct.Struct(">ii")

_NO_HEADER = bytes(HEADER.size)
_DECLARED_IN = (appends, hello, others, refusals, segments, tables)
_ENCODERS = {command: (lay.code, [(name, wire.put) for name, wire in lay.fields]) for command, lay in LAYOUTS.items()}
_DECODERS = {code: (lay.command, [wire.take for _, wire in lay.fields], lay.required) for code, lay in BY_CODE.items()}


class WireError(Exception):
    """Bytes that are not the protocol, or a command that has no bytes."""


class MalformedFrame(WireError):
    """A frame whose payload is not what its type says, or longer than a frame may be."""


class UnknownCommand(WireError):
    """A frame of a type that no one here sends or expects."""


class Unencodable(WireError):
    """A command with a value that does not fit its field, or too large for a frame."""


def encode(command: Command) -> bytes:
    """The whole frame of a command. Raises Unencodable."""
    code, puts = _ENCODERS[type(command)]
    out = bytearray(_NO_HEADER)
    try:
        for name, put in puts:
            put(out, getattr(command, name))
    except (struct.error, ValueError) as error:
        raise Unencodable(f"{type(command).__name__}: {error}") from error
    size = len(out) - HEADER.size
    if size > MAX_SENT_PAYLOAD_BYTES:
        raise Unencodable(f"{type(command).__name__}: {size} bytes are more than {MAX_SENT_PAYLOAD_BYTES}")
    HEADER.pack_into(out, 0, code, size)
    return bytes(out)


def decode(code: int, payload: bytes) -> Command:
    """The command in the payload of a frame. Raises UnknownCommand or MalformedFrame."""
    decoder = _DECODERS.get(code)
    if decoder is None:
        raise UnknownCommand(f"type {code} with {len(payload)} bytes")
    command, takes, required = decoder
    values: list[Any] = []
    at, end = 0, len(payload)
    try:
        for take in takes:
            if at == end and len(values) >= required:
                break
            value, at = take(payload, at)
            values.append(value)
    except (struct.error, ValueError) as error:
        raise MalformedFrame(f"{command.__name__} in {end} bytes: {error}") from error
    return command(*values)


def payload_size(header: bytes | bytearray, at: int = 0) -> tuple[int, int]:
    """(type code, payload length in bytes) of the frame that begins at `at`.

    Raises MalformedFrame if no frame may be that long.
    """
    code, size = HEADER.unpack_from(header, at)
    if not 0 <= size <= MAX_PAYLOAD_BYTES:
        raise MalformedFrame(f"type {code} announces {size} bytes")
    return code, size
