"""Documents with versions: what processes share, and the limits that all stores keep alike.

A document is a JSON object under an id. Ids are paths of plain characters, so that those that belong together share a
prefix. Pure functions and values.
"""

import re
from typing import Any, NamedTuple

import msgspec

from sluice_coordination.errors import StoreFailedError

Body = dict[str, Any]
"""A JSON object."""

MAX_BODY_BYTES = 1024 * 1024
MAX_LISTED = 10_000
"""The most documents under one prefix."""

_ID = re.compile(r"[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*")
_PREFIX = re.compile(r"[A-Za-z0-9._~/-]*")
_MAX_ID = 400


class Version(NamedTuple):
    """Which write of a document this is. Later writes of a document have higher ones, also after a deletion.

    `term` rises when the store changes its writer (a search server's primary term; 0 elsewhere), `number` with each
    write. As an int it is one number of 63 bits, as text that number with leading zeros: each is in the order of the
    versions, as long as a store with terms has fewer than 2**44 writes.
    """

    term: int
    number: int

    def __int__(self) -> int:
        return (self.term << 44) + self.number

    def __str__(self) -> str:
        return f"{int(self):019}"


class Document(NamedTuple):
    """What a store holds under an id. The body belongs to the caller, who may change it."""

    body: Body
    version: Version


def check_id(id: str) -> str:
    """Return the id; raise ValueError if it is not one."""
    if len(id) > _MAX_ID or not _ID.fullmatch(id):
        raise ValueError(f"a document's id is a path of letters, digits and ._~- with at most {_MAX_ID}, not {id!r}")
    return id


def check_prefix(prefix: str) -> str:
    """Return the beginning of ids; raise ValueError if no id begins so."""
    if len(prefix) > _MAX_ID or not _PREFIX.fullmatch(prefix):
        raise ValueError(f"no document's id begins with {prefix!r}")
    return prefix


def encode_body(body: Body) -> bytes:
    """Return the JSON of a body; raise ValueError if it is too large, TypeError if it is not JSON."""
    data = msgspec.json.encode(body)
    if len(data) > MAX_BODY_BYTES:
        raise ValueError(f"a document has at most {MAX_BODY_BYTES} bytes, not {len(data)}")
    return data


def decode_body(data: bytes | str, where: str) -> Body:
    """Return the body; raise StoreFailedError if it is not a JSON object."""
    try:
        return msgspec.json.decode(data, type=Body)
    except msgspec.DecodeError as error:
        raise StoreFailedError(f"{where} is not a JSON object: {error}") from error


def check_count(count: int, prefix: str) -> None:
    """Raise StoreFailedError if there are too many documents for one list."""
    if count > MAX_LISTED:
        raise StoreFailedError(f"{count} documents under {prefix!r}, a list has at most {MAX_LISTED}")
