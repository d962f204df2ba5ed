"""Revisions, entries and records as values: there and back, and what is no such thing."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.pravega import synchronizer_records as records
from sluice.pravega.envelope import MalformedPayload
from sluice_client import EntryMalformed, EntryTooLarge, JsonCodec, Revision
from sluice_client.entries import MAX_ENTRY_BYTES, EntryReader, stored_bytes

SEGMENT = "s/t/0.#epoch.0"


def test_the_text_of_a_revision_is_that_of_the_java_client() -> None:
    assert str(Revision(SEGMENT, 42)) == "s/t/0.#epoch.0:42:0"


@given(st.integers(0, 2**63 - 1))
def test_a_revision_comes_back_from_its_text(offset: int) -> None:
    assert Revision.from_text(str(Revision(SEGMENT, offset))) == Revision(SEGMENT, offset)


@pytest.mark.parametrize("text", ["", SEGMENT, f"{SEGMENT}:1", f"{SEGMENT}:1:1", f"{SEGMENT}:-1:0", f"{SEGMENT}:x:0"])
def test_what_is_not_the_text_of_a_revision(text: str) -> None:
    with pytest.raises(ValueError, match="not a revision"):
        Revision.from_text(text)


def test_revisions_of_one_stream_are_ordered_and_those_of_two_are_not() -> None:
    one, two = Revision(SEGMENT, 1), Revision(SEGMENT, 2)
    assert one < two and two > one and one <= one and two >= one and one != two
    assert len({one, two, Revision(SEGMENT, 1)}) == 2
    with pytest.raises(ValueError, match="two streams"):
        assert one < Revision("s/u/0.#epoch.0", 2)
    with pytest.raises(ValueError, match="offset -1"):
        Revision(SEGMENT, -1)


@given(st.lists(st.binary(max_size=40)), st.lists(st.integers(1, 30)))
def test_entries_come_out_whole_however_they_were_read(entries: list[bytes], sizes: list[int]) -> None:
    data = b"".join(bytes(4) + len(entry).to_bytes(4, "big") + entry for entry in entries)
    reader, found, at = EntryReader(SEGMENT, 100), [], 0
    for size in [*sizes, len(data)]:
        found += list(reader.feed(data[at : at + size]))
        at += size
    reader.finish()
    assert [entry for _, entry in found] == entries
    ends = [100 + sum(8 + len(entry) for entry in entries[: n + 1]) for n in range(len(entries))]
    assert [end for end, _ in found] == ends


@pytest.mark.parametrize("data", [b"\x00\x00\x00\x01" + bytes(4), bytes(4) + b"\xff" * 4])
def test_bytes_that_are_no_entry(data: bytes) -> None:
    with pytest.raises(EntryMalformed, match="at 7"):
        list(EntryReader(SEGMENT, 7).feed(data))


def test_a_part_of_an_entry_at_the_end() -> None:
    reader = EntryReader(SEGMENT, 0)
    assert list(reader.feed(bytes(7) + b"\x02a")) == []
    with pytest.raises(EntryMalformed, match="9 bytes"):
        reader.finish()


def test_the_largest_entry() -> None:
    assert stored_bytes(bytes(MAX_ENTRY_BYTES)) == MAX_ENTRY_BYTES + 8
    with pytest.raises(EntryTooLarge, match="8388609"):
        stored_bytes(bytes(MAX_ENTRY_BYTES + 1))


@given(st.lists(st.binary(max_size=20)))
def test_records_tell_states_from_updates(updates: list[bytes]) -> None:
    record = records.updates_record(updates)
    assert records.state_in(record) is None
    assert list(records.updates_in(record)) == updates
    assert records.state_in(records.state_record(record)) == record


@pytest.mark.parametrize("entry", [b"", b"\x01", b"\x02S", b"hello"])
def test_an_entry_of_another_program_is_no_record(entry: bytes) -> None:
    assert records.state_in(entry) is None
    with pytest.raises(MalformedPayload, match="no entry of a state synchronizer"):
        list(records.updates_in(entry))


@pytest.mark.parametrize("cut", [1, 3, 5])
def test_a_record_of_updates_that_was_cut_off(cut: int) -> None:
    record = records.updates_record([b"ab"])[:-cut]
    with pytest.raises(MalformedPayload, match="updates of"):
        list(records.updates_in(record))


class Joined(msgspec.Struct, frozen=True, tag=True):
    name: str


class Left(msgspec.Struct, frozen=True, tag=True):
    name: str


def test_codecs_bring_back_what_they_were_given() -> None:
    codec: JsonCodec[Joined | Left] = JsonCodec(Joined | Left)
    assert [codec.decode(codec.encode(value)) for value in (Joined("a"), Left("b"))] == [Joined("a"), Left("b")]
    with pytest.raises(ValueError, match="Expected"):
        codec.decode(b"[]")
