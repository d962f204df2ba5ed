"""Pages of long lists: at most a thousand items, and an opaque token behind which the next page begins.

A page may have fewer items than requested before the end is reached: only without `next` it is the last one. Pure
functions.
"""

import base64
import binascii
import sys
from typing import Annotated

from fastapi import Query

from api_gateway.edge.errors import BadRequestError
from sluice.validation import form

MAX_ITEMS = 1000

Limit = Annotated[int, Query(ge=1, le=MAX_ITEMS, description="How many items the answer may have.")]
After = Annotated[
    str,
    Query(
        max_length=2000,
        pattern=form("^[A-Za-z0-9_-]*$", "`next` of the answer before"),
        description="`next` of the answer before; left out for the first page.",
    ),
]

DEFAULT = 100


def begin_of(after: str, prefix: str) -> str:
    """The name behind which the names with this prefix begin, of those behind `after`."""
    if not prefix:
        return after
    return max(after, prefix[:-1] + chr(ord(prefix[-1]) - 1) + chr(sys.maxunicode))


def token_of(position: str) -> str:
    """The token of a page that ends at this position."""
    return base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")


def position_in(token: str) -> str:
    """The position behind which the page begins; empty for the first page. Raises BadRequestError."""
    try:
        return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    except (binascii.Error, ValueError) as error:
        raise BadRequestError(f"after: not a token of a page: {error}") from error


def numbers_in(token: str, count: int) -> tuple[int, ...] | None:
    """The position in a token that is made of so many numbers, None for the first page. Raises BadRequestError."""
    position = position_in(token)
    if not position:
        return None
    parts = position.split(".")
    if len(parts) != count or not all(map(_is_number, parts)):
        raise BadRequestError("after: not a token of a page of this list")
    return tuple(map(int, parts))


def _is_number(text: str) -> bool:
    """A time or offset behind which there can be another one, in 64 bits."""
    return text.isascii() and text.isdigit() and len(text) < 20 and int(text) < sys.maxsize
