"""Values that programs keep: the bytes and texts of the released Java client (reader-groups 12)."""

from collections.abc import Callable

import pytest

from sluice.pravega.stream_cut import StreamCut, cuts_of
from sluice_client.groups.encoding import Checkpoint, EventPointer, Position

A, B = "s/t/0.#epoch.0", "s/t/1.#epoch.1"
SEGMENT = "000e732f742f302e2365706f63682e30"
CUT = "0003732f74"


@pytest.mark.parametrize(
    ("value", "java"),
    [
        (
            Position({A: 9_999_999}, {A: (0.0, 1.0)}),
            f"00000200 00000015 01 {SEGMENT} 8098967f 01 00000021 01 {SEGMENT} 0000000000000000 3ff0000000000000",
        ),
        (Position({}), "00000200 00000001 00 01 00000001 00"),
        (
            Position({A: -1}),
            f"00000200 00000019 01 {SEGMENT} fffffffffffffffe 01 00000021 01 {SEGMENT} {2 * 'bff0000000000000'}",
        ),
        (
            Checkpoint("c", {"s/t": StreamCut("s", "t", {A: 3})}),
            f"00000100 00000019 000163 01 {CUT} 00010100 00000008 {CUT} 01 00 03",
        ),
        (EventPointer(A, 1000, 100), f"00000100 00000013 {SEGMENT} 43e8 64"),
    ],
)
def test_a_value_has_the_bytes_that_java_writes(value: Position | Checkpoint | EventPointer, java: str) -> None:
    assert value.to_bytes() == bytes.fromhex(java)
    assert type(value).from_bytes(bytes.fromhex(java)) == value


def test_a_cut_of_java_is_read_from_bytes_and_from_text() -> None:
    java = "H4sIAAAAAAAAADOwyq0sTs4vSNUH0iVFqYm5VgY6RjrGQNJQx9DK0MBAx9RAR9cQAIHt0aIoAAAA"
    offsets = {"0.#epoch.0": 100, "2.#epoch.1": 50, "3.#epoch.1": -1}
    cut = StreamCut("myscope", "mystream", {f"myscope/mystream/{segment}": at for segment, at in offsets.items()})
    assert StreamCut.from_text(java) == cut == StreamCut.from_text(cut.text) == StreamCut.from_bytes(cut.to_bytes())


def test_a_pointer_is_read_from_its_text() -> None:
    assert EventPointer.from_text(str(EventPointer(B, 16, 24))) == EventPointer(B, 16, 24)


def test_positions_are_a_cut_for_each_stream() -> None:
    other = "s/u/0.#epoch.0"
    assert cuts_of({A: 1, other: 2, B: 3}) == {
        "s/t": StreamCut("s", "t", {A: 1, B: 3}),
        "s/u": StreamCut("s", "u", {other: 2}),
    }


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (StreamCut.from_text, ""),
        (StreamCut.from_text, "AAAA"),
        (StreamCut.from_text, "H4sIAAAAAAAAAzO0BgBjICKmAgAAAA=="),
        (EventPointer.from_text, "nothing"),
        (EventPointer.from_text, f"{A}:5"),
    ],
)
def test_other_texts_are_refused(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(ValueError, match="not the text of"):
        read(text)
