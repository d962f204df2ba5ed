"""How one field of the original's metadata records is laid out; records declare theirs by annotations.

A record is a frozen struct whose fields stand in the order of its bytes. `Since(n)` says from which revision on a field
and those behind it are written; a field that an older version did not write has its default, so a field may only be
missing if it has one. Rules: controller-metadata-store 2.3 and 2.4. Pure functions.
"""

from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints
from uuid import UUID

import msgspec

from sluice.pravega import envelope as bytes_of
from sluice.pravega.envelope import MalformedPayload, PayloadReader


class Wire(NamedTuple):
    """One encoding: a value to bytes, and back from where a reader stands."""

    encode: Callable[[Any], bytes]
    read: Callable[[PayloadReader], Any]


class Since(NamedTuple):
    """The revision that a field and those behind it belong to."""

    revision: int


class Record(msgspec.Struct, frozen=True):
    """What is written within an envelope."""


class Part(msgspec.Struct, frozen=True):
    """What is written as its bare fields: an entry of a map."""


_R = TypeVar("_R", bound=Record)


def encode(record: Record) -> bytes:
    """All revisions of the record in its envelope."""
    return bytes_of.envelope(*_revisions(record))


def read(type: type[_R], data: PayloadReader) -> _R:
    """The record that begins here. Raises MalformedPayload."""
    revisions = data.envelope()
    return type(**_fields(type, revisions))


def decode(type: type[_R], data: bytes) -> _R:
    """The record in all of these bytes. Raises MalformedPayload."""
    reader = PayloadReader(data)
    try:
        record = read(type, reader)
    except (TypeError, ValueError) as error:
        raise MalformedPayload(f"{type.__name__}: {error}") from error
    if reader.remaining:
        raise MalformedPayload(f"{type.__name__}: {reader.remaining} bytes are left over")
    return record


@cache
def _layout(type: Any) -> tuple[tuple[tuple[str, Wire], ...], ...]:
    """Of each revision the names and encodings of its fields."""
    hints = get_type_hints(type, include_extras=True)
    revisions: list[list[tuple[str, Wire]]] = [[]]
    for name in type.__struct_fields__:
        for mark in hints[name].__metadata__:
            if isinstance(mark, Since) and len(revisions) <= mark.revision:
                revisions.append([])
        revisions[-1].append((name, next(mark for mark in hints[name].__metadata__ if isinstance(mark, Wire))))
    return tuple(map(tuple, revisions))


def _revisions(record: Any) -> list[bytes]:
    return [
        b"".join(wire.encode(getattr(record, name)) for name, wire in fields) for fields in _layout(record.__class__)
    ]


def _fields(type: Any, revisions: list[PayloadReader]) -> dict[str, Any]:
    """The fields that were written; older versions end with an earlier revision, or earlier within one."""
    found = {}
    for data, fields in zip(revisions, _layout(type), strict=False):
        for name, wire in fields:
            if not data.remaining:
                break
            found[name] = wire.read(data)
    return found


def part(type: type[Part]) -> Wire:
    """The bare fields."""
    return Wire(
        lambda value: b"".join(_revisions(value)),
        lambda data: type(**{name: wire.read(data) for name, wire in _layout(type)[0]}),
    )


def optional(type: type[Record]) -> Wire:
    """A record whose envelope says first whether there is one; if not, its revisions hold nothing else."""

    def encode_it(value: Record | None) -> bytes:
        if value is None:
            return bytes_of.envelope(b"\0", *(b"" for _ in _layout(type)[1:]))
        first, *later = _revisions(value)
        return bytes_of.envelope(b"\1" + first, *later)

    def read_it(data: PayloadReader) -> Record | None:
        revisions = data.envelope()
        return type(**_fields(type, revisions)) if revisions[0].boolean() else None

    return Wire(encode_it, read_it)


def ordinal(type: type[IntEnum]) -> Wire:
    """A member of an enumeration, as its number."""
    return Wire(bytes_of.compact_int, lambda data: type(data.compact_int()))


def tuple_of(item: Wire) -> Wire:
    """A collection."""
    return Wire(
        lambda values: bytes_of.collection(map(item.encode, values)), lambda data: tuple(data.collection(item.read))
    )


def dict_of(key: Wire, value: Wire) -> Wire:
    """A map, in the order in which it was written."""
    return Wire(
        lambda values: bytes_of.collection(key.encode(k) + value.encode(v) for k, v in values.items()),
        lambda data: data.mapping(key.read, value.read),
    )


def nested(type: type[Record]) -> Wire:
    """A record in its own envelope."""
    return Wire(encode, lambda data: read(type, data))


INT = Wire(bytes_of.int32, PayloadReader.int32)
LONG = Wire(bytes_of.int64, PayloadReader.int64)
TEXT = Wire(bytes_of.text, PayloadReader.text)
UUID_BYTES = Wire(lambda value: value.bytes, PayloadReader.uuid)

I32 = Annotated[int, INT]
I64 = Annotated[int, LONG]
F64 = Annotated[float, Wire(bytes_of.double, PayloadReader.double)]
Bool = Annotated[bool, Wire(lambda value: bytes((value,)), PayloadReader.boolean)]
Text = Annotated[str, TEXT]
Texts = Annotated[tuple[str, ...], tuple_of(TEXT)]
Uuids = Annotated[tuple[UUID, ...], tuple_of(UUID_BYTES)]
Blob = Annotated[bytes, Wire(bytes_of.byte_array, PayloadReader.byte_array)]
Ids = Annotated[tuple[int, ...], tuple_of(LONG)]
Offsets = Annotated[dict[int, int], dict_of(LONG, LONG)]
"""By segment id: a stream cut, or sizes."""
RAW_TEXT = Wire(str.encode, lambda data: data.raw(data.remaining).decode())
"""Text that is all of a value."""
NOTHING = Wire(lambda _: b"", lambda _: None)
"""A value of no bytes: the key says it all."""
