"""Entries in the state stream of a reader group: admin-rest-api 10, reader-groups 2."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import group_state as written

from sluice.pravega.envelope import MalformedPayload, typed_envelope
from sluice.pravega.reader_group_state import (
    AcquireSegment,
    AddReader,
    InitialState,
    LastRead,
    ReaderPositions,
    ReleaseSegment,
    RemoveReader,
    SegmentCompleted,
    StateRecord,
    decode_entry,
)

ID = "0f0e0d0c-0b0a-4908-8706-050403020100"
CONFIG = written.config(["sc/a"], ID, 7)
A0, A1, A2 = "sc/a/0.#epoch.0", "sc/a/1.#epoch.0", "sc/a/2.#epoch.1"
ADD_READER = bytes.fromhex("00000002 0000000c 00 02 00 01 00 00000003 0001 72")


def test_the_bytes_of_an_update() -> None:
    assert written.updates(written.add_reader("r")) == ADD_READER
    assert decode_entry(ADD_READER) == [AddReader("r")]


def test_an_initial_state_has_its_segments_unassigned() -> None:
    entry = written.initial(CONFIG, [A0, A1])
    assert decode_entry(entry) == [InitialState(ID, 7, {}, {A0: 0, A1: 0}, {})]
    assert decode_entry(entry + bytes(64)) == decode_entry(entry), "Java pads it"


def test_a_configuration_of_an_old_client_has_no_id() -> None:
    entry = written.initial(written.config(["sc/a"], ID, 7, old=True), [A0])
    assert decode_entry(entry) == [InitialState(str(UUID(int=0)), -1, {}, {A0: 0}, {})]


def test_a_compacted_state_is_read_as_it_was_written() -> None:
    entry = written.compacted(CONFIG, {"r": [A0], "q": []}, [A1], {A2: (0, 1)})
    assert decode_entry(entry) == [InitialState(ID, 7, {"r": {A0: 0}, "q": {}}, {A1: 0}, {A2: {0, 1}})]


@pytest.mark.parametrize(
    ("update", "record"),
    [
        (written.remove_reader("r", {A0: 5}), RemoveReader("r", {A0: 5})),
        (written.release("r", A0, 7), ReleaseSegment("r", A0, 7)),
        (written.last_read("r", {A0: 8}), LastRead("r", {A0: 8})),
        (written.checkpoint("cp", "r", {A0: -1}), ReaderPositions("cp", "r", {A0: -1})),
        (written.acquire("r", A0), AcquireSegment("r", A0)),
        (written.complete("r", A0, {A2: (0, 1)}), SegmentCompleted("r", A0, {A2: {0, 1}})),
    ],
)
def test_an_update_is_read_as_it_was_written(update: bytes, record: StateRecord) -> None:
    assert decode_entry(written.updates(update, written.add_reader("q"))) == [record, AddReader("q")]


def test_updates_that_change_no_reader_and_no_segment_are_left_out() -> None:
    entry = written.updates(written.create_checkpoint("cp"), written.add_reader("r"), typed_envelope(13, b""))
    assert decode_entry(entry) == [AddReader("r")]


def test_an_initial_state_may_be_among_updates() -> None:
    reset = written.initial(CONFIG, [A0])[4:]
    assert decode_entry(written.updates(reset)) == [InitialState(ID, 7, {}, {A0: 0}, {})]


@pytest.mark.parametrize(
    "entry",
    [
        b"\0\0\0\3",
        b"\0\0",
        written.initial(CONFIG, []),
        written.initial(CONFIG, [A0])[:-20],
        b"\0\0\0\1" + written.add_reader("r"),
        ADD_READER[:-1],
        ADD_READER + b"\0",
    ],
)
def test_bytes_that_are_no_entry_are_malformed(entry: bytes) -> None:
    with pytest.raises(MalformedPayload):
        decode_entry(entry)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_entry_or_malformed(entry: bytes) -> None:
    try:
        decode_entry(entry)
    except MalformedPayload:
        return
