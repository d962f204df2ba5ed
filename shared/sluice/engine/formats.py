"""The format of a record or a request: a number in its value that says which releases may act on it.

Readers pass over fields that they do not know. What they must not pass over is announced by the number: a release
reads every format up to the newest one that it knows, and acts on nothing newer. What has no number is of the first
format, so until there is a second one nothing is written and nothing is transferred. The number is looked at behind
the decoder, and looked for in the value only when that has failed.
"""

import msgspec

FIRST_FORMAT = 1
"""What says no format is of this one, for ever."""


class NewerFormatError(msgspec.ValidationError):
    """It is of a format that this release does not know: a newer one wrote it."""

    def __init__(self, format: int, known: int) -> None:
        super().__init__(f"format {format} is newer than {known}, the newest that this release reads")


class _Numbered(msgspec.Struct):
    format: int = FIRST_FORMAT


_numbered = msgspec.json.Decoder(_Numbered)


def refuse_newer(value: bytes, known: int) -> None:
    """Raise NewerFormatError for a value that says a format newer than `known`; it need not be readable otherwise."""
    try:
        format = _numbered.decode(value).format
    except (msgspec.DecodeError, RecursionError):
        return
    if format > known:
        raise NewerFormatError(format, known)
