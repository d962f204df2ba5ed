"""The wire types: how one field of a command is written and read.

Each type is a pair of functions: `put` appends a value to a buffer, `take` reads one at a position and returns it with
the position behind it. Commands name these types in their annotations (`command.py`), so a layout is declared once and
nowhere written out by hand. Notation and encodings: segment-store-wire-protocol 1.2 and 5.1. Pure functions; a field
that does not fit its frame raises struct.error or ValueError, which `frame.py` turns into its own named errors.
"""

import struct
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple
from uuid import UUID

import msgspec

from sluice.pravega.event_frames import HEADER_BYTES, frame_event, read_header
from sluice.pravega.wire.text import decode_text, encode_text

Put = Callable[[bytearray, Any], None]
Take = Callable[[bytes, int], tuple[Any, int]]

NO_VERSION = -(1 << 63)
"""Key version that demands nothing (5.1)."""
NOT_EXISTS = -1
"""Key version that demands that the key does not exist, and that reads give for an absent key (5.1, 5.5)."""

_BYTE = struct.Struct(">b")
_SHORT = struct.Struct(">H")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")


class WireType(NamedTuple):
    """One encoding: its name in the reference's notation, and the two functions."""

    name: str
    put: Put
    take: Take


class TableKey(msgspec.Struct, frozen=True, gc=False):
    """A key with the version it has or must have."""

    key: bytes
    version: int = NO_VERSION


class TableEntry(msgspec.Struct, frozen=True, gc=False):
    """A key and its value. Read back for an absent key: version NOT_EXISTS and an empty value."""

    key: TableKey
    value: bytes


class AttributeUpdate(msgspec.Struct, frozen=True, gc=False):
    """What becomes of an attribute; the kind says on what condition."""

    attribute_id: UUID
    kind: int
    value: int
    expected: int


class MergedSource(msgspec.Struct, frozen=True, gc=False):
    """One source of a merged batch, and a length of the target at or after its merge, in bytes."""

    source: str
    target_length: int


def _number(name: str, layout: struct.Struct) -> WireType:
    pack, unpack_from, size = layout.pack, layout.unpack_from, layout.size

    def put(out: bytearray, value: int) -> None:
        out += pack(value)

    def take(data: bytes, at: int) -> tuple[int, int]:
        return unpack_from(data, at)[0], at + size

    return WireType(name, put, take)


def _put_bool(out: bytearray, value: bool) -> None:
    out.append(1 if value else 0)


def _take_bool(data: bytes, at: int) -> tuple[bool, int]:
    return _BYTE.unpack_from(data, at)[0] != 0, at + 1


def _put_text(out: bytearray, value: str) -> None:
    raw = encode_text(value)
    out += _SHORT.pack(len(raw))
    out += raw


def _take_text(data: bytes, at: int) -> tuple[str, int]:
    start = at + 2
    end = start + _SHORT.unpack_from(data, at)[0]
    if end > len(data):
        raise ValueError(f"a string reaches {end - len(data)} bytes past the end")
    return decode_text(data[start:end]), end


def _put_uuid(out: bytearray, value: UUID) -> None:
    out += value.bytes


def _take_uuid(data: bytes, at: int) -> tuple[UUID, int]:
    return UUID(bytes=data[at : at + 16]), at + 16


def _put_blob(out: bytearray, value: bytes) -> None:
    out += _INT.pack(len(value))
    out += value


def _take_blob(data: bytes, at: int) -> tuple[bytes, int]:
    size = _INT.unpack_from(data, at)[0]
    start = at + 4
    if size < 0 or start + size > len(data):
        raise ValueError(f"{size} bytes announced, {len(data) - start} left")
    return data[start : start + size], start + size


def _put_rest(out: bytearray, value: bytes) -> None:
    out += value


def _take_rest(data: bytes, at: int) -> tuple[bytes, int]:
    return data[at:], len(data)


def _put_event(out: bytearray, value: bytes) -> None:
    out += frame_event(value)


def _take_event(data: bytes, at: int) -> tuple[bytes, int]:
    start = at + HEADER_BYTES
    end = start + read_header(data, at)
    if end > len(data):
        raise ValueError(f"an event reaches {end - len(data)} bytes past the end")
    return data[start:end], end


def _put_key(out: bytearray, value: TableKey) -> None:
    size = len(value.key)
    if size == 0:
        raise ValueError("an empty table key cannot be written unambiguously")
    out += _INT.pack(size + 12)
    _put_blob(out, value.key)
    out += _LONG.pack(value.version)


def _take_key(data: bytes, at: int) -> tuple[TableKey, int]:
    key, at = _take_blob(data, at + 4)
    if not key:
        return TableKey(b"", NO_VERSION), at
    return TableKey(key, _LONG.unpack_from(data, at)[0]), at + 8


def _put_entry(out: bytearray, value: TableEntry) -> None:
    _put_key(out, value.key)
    out += _INT.pack(len(value.value) + 4)
    _put_blob(out, value.value)


def _take_entry(data: bytes, at: int) -> tuple[TableEntry, int]:
    key, at = _take_key(data, at)
    value, at = _take_blob(data, at + 4)
    return TableEntry(key, value), at


def _put_update(out: bytearray, value: AttributeUpdate) -> None:
    _put_uuid(out, value.attribute_id)
    out += _BYTE.pack(value.kind) + _LONG.pack(value.value) + _LONG.pack(value.expected)


def _take_update(data: bytes, at: int) -> tuple[AttributeUpdate, int]:
    attribute_id, at = _take_uuid(data, at)
    value, expected = _LONG.unpack_from(data, at + 1)[0], _LONG.unpack_from(data, at + 9)[0]
    return AttributeUpdate(attribute_id, _BYTE.unpack_from(data, at)[0], value, expected), at + 17


def _put_merged(out: bytearray, value: MergedSource) -> None:
    _put_text(out, value.source)
    out += _LONG.pack(value.target_length)


def _take_merged(data: bytes, at: int) -> tuple[MergedSource, int]:
    source, at = _take_text(data, at)
    return MergedSource(source, _LONG.unpack_from(data, at)[0]), at + 8


def _list_of(item: WireType) -> WireType:
    put_item, take_item = item.put, item.take

    def put(out: bytearray, values: tuple[Any, ...]) -> None:
        out += _INT.pack(len(values))
        for value in values:
            put_item(out, value)

    def take(data: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        count = _INT.unpack_from(data, at)[0]
        at += 4
        if not 0 <= count <= len(data) - at:
            raise ValueError(f"{count} elements announced in {len(data) - at} bytes")
        values = []
        for _ in range(count):
            value, at = take_item(data, at)
            values.append(value)
        return tuple(values), at

    return WireType(f"list<{item.name}>", put, take)


_I64 = _number("i64", _LONG)
_STR = WireType("str", _put_text, _take_text)
_KEY = WireType("TableKey", _put_key, _take_key)
_ENTRY = WireType("TableEntry", _put_entry, _take_entry)
_UPDATE = WireType("AttributeUpdate", _put_update, _take_update)
_MERGED = WireType("(str, i64)", _put_merged, _take_merged)

I8 = Annotated[int, _number("i8", _BYTE)]
I32 = Annotated[int, _number("i32", _INT)]
I64 = Annotated[int, _I64]
Bool = Annotated[bool, WireType("bool", _put_bool, _take_bool)]
Str = Annotated[str, _STR]
Uuid = Annotated[UUID, WireType("uuid", _put_uuid, _take_uuid)]
Blob = Annotated[bytes, WireType("blob", _put_blob, _take_blob)]
Rest = Annotated[bytes, WireType("rest", _put_rest, _take_rest)]
Event = Annotated[bytes, WireType("event", _put_event, _take_event)]
Longs = Annotated[tuple[int, ...], _list_of(_I64)]
Strs = Annotated[tuple[str, ...], _list_of(_STR)]
Keys = Annotated[tuple[TableKey, ...], _list_of(_KEY)]
Entries = Annotated[tuple[TableEntry, ...], _list_of(_ENTRY)]
Updates = Annotated[tuple[AttributeUpdate, ...], _list_of(_UPDATE)]
MergedSources = Annotated[tuple[MergedSource, ...], _list_of(_MERGED)]
