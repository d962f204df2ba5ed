"""Whatever command is written is read back, whole, extended or cut short."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.pravega.wire.appends import AppendBlockEnd
from sluice.pravega.wire.command import BY_CODE, Command, Layout
from sluice.pravega.wire.fields import AttributeUpdate, MergedSource, TableEntry, TableKey
from sluice.pravega.wire.frame import MalformedFrame, Unencodable, WireError, decode, encode, payload_size
from sluice.pravega.wire.segments import SealSegment
from sluice.pravega.wire.text import decode_text, encode_text

text = st.text(max_size=30)
long = st.integers(-(2**63), 2**63 - 1)
key = st.builds(TableKey, st.binary(min_size=1, max_size=20), long)
entry = st.builds(TableEntry, key, st.binary(max_size=20))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i8": st.integers(-128, 127),
    "i32": st.integers(-(2**31), 2**31 - 1),
    "i64": long,
    "bool": st.booleans(),
    "str": text,
    "uuid": st.uuids(),
    "blob": st.binary(max_size=50),
    "event": st.binary(max_size=50),
    "rest": st.binary(max_size=50),
    "list<i64>": st.lists(long, max_size=4).map(tuple),
    "list<str>": st.lists(text, max_size=4).map(tuple),
    "list<TableKey>": st.lists(key, max_size=4).map(tuple),
    "list<TableEntry>": st.lists(entry, max_size=4).map(tuple),
    "list<AttributeUpdate>": st.lists(
        st.builds(AttributeUpdate, st.uuids(), st.integers(-128, 127), long, long), max_size=4
    ).map(tuple),
    "list<(str, i64)>": st.lists(st.builds(MergedSource, text, long), max_size=4).map(tuple),
}
layouts = st.sampled_from(sorted(BY_CODE.values(), key=lambda layout: layout.code))


@st.composite
def commands(draw: st.DrawFn) -> Command:
    layout: Layout = draw(layouts)
    return layout.command(**{name: draw(VALUES[wire.name]) for name, wire in layout.fields})


def _takes_the_rest(code: int) -> bool:
    """Nothing is behind its fields, whatever comes."""
    return any(wire.name == "rest" for _, wire in BY_CODE[code].fields)


@given(commands(), st.binary(max_size=20))
def test_a_command_reads_back_and_bytes_behind_its_fields_are_skipped(command: Command, more: bytes) -> None:
    frame = encode(command)
    code, size = payload_size(frame)
    assert size == len(frame) - 8
    assert decode(code, frame[8:] + (b"" if _takes_the_rest(code) else more)) == command


@given(commands(), st.data())
def test_a_command_cut_short_is_an_older_one_or_malformed(command: Command, data: st.DataObject) -> None:
    frame = encode(command)
    code, size = payload_size(frame)
    if size == 0 or _takes_the_rest(code):
        return
    cut = data.draw(st.integers(0, size - 1))
    try:
        read = decode(code, frame[8 : 8 + cut])
    except MalformedFrame:
        return
    assert BY_CODE[code].required < len(BY_CODE[code].fields)
    required = [name for name, _ in BY_CODE[code].fields][: BY_CODE[code].required]
    assert [getattr(read, name) for name in required] == [getattr(command, name) for name in required]


@given(layouts, st.binary(max_size=200))
def test_any_bytes_are_a_command_or_a_named_error(layout: Layout, payload: bytes) -> None:
    try:
        command = decode(layout.code, payload)
    except WireError:
        return
    assert type(command) is layout.command


@given(st.text())
def test_text_reads_back(value: str) -> None:
    assert decode_text(encode_text(value)) == value


def test_text_is_modified_utf_8() -> None:
    assert encode_text("a\0ü\U0001f600") == bytes.fromhex("61 c080 c3bc eda0bd edb880")
    assert decode_text(bytes.fromhex("eda0bd")) == "�"


def test_a_value_that_does_not_fit_is_named() -> None:
    with pytest.raises(Unencodable, match="SealSegment"):
        encode(SealSegment(1, "x" * 65536, ""))
    with pytest.raises(Unencodable, match="SealSegment"):
        encode(SealSegment(1 << 63, "x", ""))
    with pytest.raises(Unencodable, match="16777207"):
        encode(AppendBlockEnd(UUID(int=1), 0, bytes(0xFFFFFF), 1, 1, 1))
