"""The envelope and its primitives: segment-store-cluster A3."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.pravega import envelope as written
from sluice.pravega.envelope import MAX_COMPACT_INT, MalformedPayload, PayloadReader


def test_an_envelope_has_its_version_and_numbered_revisions() -> None:
    assert written.envelope(b"a") == bytes.fromhex("00 00 01 00 00000001 61")
    assert written.typed_envelope(7, b"a", b"") == bytes.fromhex("00 07 00 02 00 00000001 61 01 00000000")


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=5), st.integers(0, 127), st.binary(max_size=9))
def test_envelopes_are_read_as_they_were_written(revisions: list[bytes], type: int, behind: bytes) -> None:
    reader = PayloadReader(written.envelope(*revisions) + written.typed_envelope(type, *revisions) + behind)
    assert [data.raw(data.remaining) for data in reader.envelope()] == revisions
    found, family = reader.typed_envelope()
    assert (found, [data.raw(data.remaining) for data in family]) == (type, revisions)
    assert reader.remaining == len(behind)


@pytest.mark.parametrize(
    "data", ["", "01 00 01 00 00000000", "00 01 01 00 00000000", "00 00 00", "00 00 01 01 00000000"]
)
def test_another_format_version_or_revision_is_malformed(data: str) -> None:
    with pytest.raises(MalformedPayload):
        PayloadReader(bytes.fromhex(data)).envelope()


@pytest.mark.parametrize("length", ["00000002", "ffffffff"])
def test_a_revision_longer_than_its_bytes_is_malformed(length: str) -> None:
    with pytest.raises(MalformedPayload):
        PayloadReader(bytes.fromhex(f"00 00 01 00 {length} 61")).envelope()


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (0, "00"), (0x7F, "7f"), (0x80, "8080"), (0x3FFF, "bfff"), (0x4000, "c0004000"), (MAX_COMPACT_INT, "ffffffff"),
    ],
)  # fmt: skip
def test_a_compact_int_takes_as_many_bytes_as_it_needs(number: int, data: str) -> None:
    assert written.compact_int(number).hex() == data
    assert PayloadReader(bytes.fromhex(data)).compact_int() == number


@given(st.integers(0, MAX_COMPACT_INT))
def test_a_compact_int_is_read_as_it_was_written(number: int) -> None:
    reader = PayloadReader(written.compact_int(number))
    assert (reader.compact_int(), reader.remaining) == (number, 0)


@pytest.mark.parametrize("number", [-1, MAX_COMPACT_INT + 1])
def test_a_number_beyond_a_compact_int_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="no compact int"):
        written.compact_int(number)


def test_numbers_are_big_endian_and_signed() -> None:
    data = written.int32(-2) + written.int64(-3) + written.double(1.0)
    assert data == bytes.fromhex("fffffffe fffffffffffffffd 3ff0000000000000")
    reader = PayloadReader(data)
    assert (reader.int32(), reader.int64(), reader.double()) == (-2, -3, 1.0)


@given(st.text(max_size=50), st.binary(max_size=50), st.uuids(), st.dictionaries(st.text(max_size=5), st.binary()))
def test_values_are_read_as_they_were_written(text: str, array: bytes, id: UUID, entries: dict[str, bytes]) -> None:
    mapping = written.collection(written.text(key) + written.byte_array(value) for key, value in entries.items())
    reader = PayloadReader(written.text(text) + written.byte_array(array) + id.bytes + mapping)
    assert (reader.text(), reader.byte_array(), reader.uuid()) == (text, array, id)
    assert reader.mapping(PayloadReader.text, PayloadReader.byte_array) == entries
    assert reader.remaining == 0


@pytest.mark.parametrize("read", [PayloadReader.text, PayloadReader.byte_array, lambda d: d.collection(d.byte)])
def test_a_length_beyond_the_bytes_is_malformed(read: object) -> None:
    with pytest.raises(MalformedPayload):
        read(PayloadReader(b"\x05\x05abc"))  # type: ignore[operator]


def test_a_text_that_is_not_modified_utf_8_is_malformed() -> None:
    with pytest.raises(MalformedPayload):
        PayloadReader(b"\x00\x01\xff").text()
