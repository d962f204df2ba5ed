"""The exact state of a journal partition as bytes: what a snapshot holds, and what a back-up carries away.

It is a sequence of parts: the head, then every aggregate by name, then every projection by name. Two followers that
have folded the same records give the same bytes, and a view that is restored from them goes on exactly as they do.
"""

from enum import StrEnum
from typing import Any

import msgspec

from sluice.engine.lately import CapturedLately
from sluice.engine.record import RequestPosition


class CaptureInvalidError(Exception):
    """These parts are not the state of a partition."""


class PartKind(StrEnum):
    HEAD = "head"
    AGGREGATE = "aggregate"
    PROJECTION = "projection"


class Part(msgspec.Struct, frozen=True, gc=False):
    """One part of a partition's state; `value` is its canonical encoding.

    The head has no name. `version` is that of an aggregate, 0 for other parts. The value of an aggregate without a
    state is empty: it has its version still. A value may be larger than a record of Kafka.
    """

    kind: PartKind
    name: str
    version: int
    value: bytes


class DecidedOfTopic(msgspec.Struct, frozen=True, array_like=True):
    """Of one topic of requests: its name and id, below which position all is decided, and what is at or above it."""

    topic: str
    floor: RequestPosition
    decided: list[RequestPosition]


class Head(msgspec.Struct, frozen=True, array_like=True):
    """What a partition's state has beside aggregates and projections; see PartitionView for its meaning."""

    next_offset: int
    last_ms: int
    outcome_hash: int
    looked_ms: int
    to_look: list[str]
    under_way: list[tuple[str, int]]
    sources: list[DecidedOfTopic]
    lately: CapturedLately = CapturedLately()


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Head).decode


def head_part(head: Head) -> Part:
    return Part(PartKind.HEAD, "", 0, _encode(head))


def head_of(part: Part) -> Head:
    """Raises CaptureInvalidError."""
    if part.kind is not PartKind.HEAD:
        raise CaptureInvalidError(f"the first part is no head, but {part.kind.value} {part.name!r}")
    head: Head = decoded("head", part, _decode)
    return head


def decoded(what: str, part: Part, decode: Any) -> Any:
    """What the part's value says. Raises CaptureInvalidError."""
    try:
        return decode(part.value)
    except (msgspec.MsgspecError, ValueError) as error:
        raise CaptureInvalidError(f"{what} {part.name!r} cannot be decoded: {error}") from error
