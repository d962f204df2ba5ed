"""Bytes become records: lines whatever pieces they come in, items, bodies; and their routing keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributed_ingest.records import KeyRule, LineSplitter, items_of, records_of

PIECES = st.lists(
    st.lists(st.sampled_from([b"a", b"b", b"\r", b"\n", b"\xef\xbb", b"\xbf"]), max_size=6).map(b"".join), max_size=12
)
MARK = b"\xef\xbb\xbf"


def reference(data: bytes, max_bytes: int) -> tuple[list[bytes], int]:
    lines = [line.removesuffix(b"\r").removeprefix(MARK) for line in data.split(b"\n")]
    return [line for line in lines if 0 < len(line) <= max_bytes], sum(len(line) > max_bytes for line in lines)


DEEP = b"[" * 100_000


@given(PIECES, st.integers(1, 8))
def test_lines_do_not_depend_on_the_pieces_they_come_in(pieces: list[bytes], max_bytes: int) -> None:
    splitter = LineSplitter(max_bytes)
    lines: list[bytes] = []
    so_far = b""
    for piece in pieces:
        lines += splitter.feed(piece)
        so_far += piece
        assert splitter.consumed == so_far.rfind(b"\n") + 1
    lines += splitter.finish()
    assert splitter.consumed == len(so_far)
    assert (lines, splitter.skipped) == reference(so_far, max_bytes)


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        ("none", None),
        ("source", "a.log"),
        ("record", "k\\xff"),
        ("json:user.id", "7"),
        ("json:user.name", "Ann"),
        ("json:user.none", None),
        ("json:list", "[1,2]"),
        ("json:list.x", None),
    ],
)
def test_routing_keys(rule: str, key: str | None) -> None:
    record = b'{"user": {"id": 7, "name": "Ann"}, "list": [1, 2]}'
    assert KeyRule(rule).key(record, "a.log", b"k\xff") == KeyRule(rule).key(MARK + record, "a.log", b"k\xff") == key


def test_a_record_that_is_no_json_has_no_key_in_it() -> None:
    assert KeyRule("json:a").key(b"plain", "a.log") is None
    assert KeyRule("json:a").key(b'{"a": "\xff"}', "a.log") is None
    assert KeyRule("json:a").key(DEEP, "a.log") is None
    assert KeyRule("json:a").may_lack and not KeyRule("none").may_lack


@pytest.mark.parametrize("text", ["", "json", "json:", "json:a..b", "none:a", "Source"])
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(ValueError, match="no rule"):
        KeyRule(text)


def test_items_stand_as_they_were() -> None:
    array = b'[ {"a" : 1} , "b",3]'
    assert items_of(array) == items_of(MARK + array) == [b'{"a" : 1}', b'"b"', b"3"]
    for body in (b'{"a": 1}', b"[1,", b"", DEEP):
        with pytest.raises(ValueError, match="not a JSON array"):
            items_of(body)


def test_bodies() -> None:
    large = b"x" * 9_000_000
    assert records_of(b"a\r\n\nb\n" + large, "lines") == [b"a", b"b", large]
    assert records_of(large + b"\r\n", "lines") == [large]
    assert records_of(b"a\nb", "whole") == [b"a\nb"]
    assert records_of(MARK + b"a\nb", "whole") == [MARK + b"a\nb"]
    assert records_of(b"", "whole") == records_of(b"", "lines") == []
    assert records_of(b"[1, 2]", "items") == [b"1", b"2"]
    assert records_of(large, "whole") == [large]
