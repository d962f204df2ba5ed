"""The envelope of a request: the command with its id, its time and its sender.

The value is JSON for operators and programs alike; the headers repeat the same facts as CloudEvents attributes, for
tools that look at headers only.
"""

import msgspec

from sluice.domain.commands import Command


class Request(msgspec.Struct, frozen=True):
    """`at` in epoch ms at the sender; `by` is service/instance."""

    id: str
    at: int
    by: str
    command: Command


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Request)


def encode_request(request: Request) -> bytes:
    return _encoder.encode(request)


def decode_request(value: bytes) -> Request:
    """Raises msgspec.DecodeError or msgspec.ValidationError for what is not a request."""
    try:
        return _decoder.decode(value)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(repr(error)) from error
