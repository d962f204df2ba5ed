"""The envelope of a request: the command with its id, its time and its sender.

The value is JSON for operators and programs alike; the headers repeat the same facts as CloudEvents attributes, for
tools that look at headers only.
"""

import msgspec

from sluice.domain.commands import Command
from sluice.engine.formats import FIRST_FORMAT, NewerFormatError, refuse_newer
from sluice.exceptions import in_words

REQUEST_FORMAT = FIRST_FORMAT
"""The newest format of a request that this release carries out."""


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """`at` in epoch ms at the sender; `by` is service/instance, `principal` whom it sends it for, empty if unknown.

    `format` says which releases may carry it out (see `sluice.engine.formats`).
    """

    id: str
    at: int
    by: str
    command: Command
    format: int = FIRST_FORMAT
    principal: str = ""


class _Identified(msgspec.Struct):
    id: str


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Request)
_identified = msgspec.json.Decoder(_Identified)


def encode_request(request: Request) -> bytes:
    return _encoder.encode(request)


def decode_request(value: bytes) -> Request:
    """Raises msgspec.DecodeError or msgspec.ValidationError for what is not a request, or of a newer format."""
    try:
        request = _decoder.decode(value)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(in_words(error)) from error
    except msgspec.ValidationError:
        refuse_newer(value, REQUEST_FORMAT)
        raise
    if request.format > REQUEST_FORMAT:
        raise NewerFormatError(request.format, REQUEST_FORMAT)
    return request


def request_id(value: bytes) -> str | None:
    """The id of a request, also of one that this release cannot read; None for what has none."""
    try:
        return _identified.decode(value).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
