"""Entries in the state stream of a reader group: admin-rest-api 10, reader-groups 2.

The bytes are what the released Java client writes; they are written here in Java's order, which no reader looks at.
"""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import group_state as written

from sluice.pravega.envelope import MalformedPayload, int32
from sluice.pravega.reader_group_config import NO_ID, GroupConfig, Retention
from sluice.pravega.reader_group_state import (
    UPDATES,
    WHOLE_STATE,
    AcquireSegment,
    AddReader,
    CheckpointReader,
    Checkpoints,
    ClearCheckpointsBefore,
    CreateCheckpoint,
    GroupState,
    ReleaseSegment,
    RemoveOutstandingCheckpoints,
    RemoveReader,
    SegmentCompleted,
    Update,
    UpdateCheckpointPublished,
    UpdateDistanceToTail,
    UpdatingConfig,
    decode_entry,
    decode_update,
    encode_update,
)
from sluice.pravega.stream_cut import StreamCut

A, B = "s/t/0.#epoch.0", "s/t/1.#epoch.1"
A1 = "s/t/1.#epoch.0"
CONFIG = GroupConfig(
    starts={"s/t": None},
    ends={"s/t": None},
    generation=0,
    id=UUID("00112233-4455-6677-8899-aabbccddeeff"),
)

_PIECES = {
    "A": "000e732f742f302e2365706f63682e30",
    "B": "000e732f742f312e2365706f63682e31",
    "U": "bff0000000000000bff0000000000000",
    "r": "00027231",
    "c": "000163",
    "t": "0003732f74",
    "M": "0000000000007530 0000000000000bb8 01 0003732f74 00 01 0003732f74 00",
}
_PIECES["C"] = (
    f"00000300 0000001e {_PIECES['M']} 01 00000022 {_PIECES['M']} 00000003"
    " 02 00000019 00 0000000000000000 00112233445566778899aabbccddeeff"
)


def java(line: str) -> bytes:
    """Bytes in hexadecimal, with the letters of `_PIECES` among them."""
    return bytes.fromhex(" ".join(_PIECES.get(word, word) for word in line.split()))


INIT = "0000000300 00000086 6b C 01 A 0000000000000000 00 01 00000029 01 A U 0000000000000000 02 00000001 00"
ADD_READER = java("00000002 00000009 0002000100 00000004 r")


@pytest.mark.parametrize(
    ("update", "bytes_of_java"),
    [
        (AddReader("r1"), "0002000100 00000004 r"),
        (RemoveReader("r1", {}), "0003000100 00000005 r 00"),
        (RemoveReader("r1", {A: 16}), "0003000100 0000001d r 01 A 0000000000000010"),
        (ReleaseSegment("r1", A, 16), "0004000100 0000001c r A 0000000000000010"),
        (AcquireSegment("r1", A), "0005000100 00000014 r A"),
        (
            UpdateDistanceToTail("r1", 30_000, {A: 16}),
            "0006000200 0000000c r 0000000000007530 01 00000029 01 A U 0000000000000010",
        ),
        (
            SegmentCompleted("r1", A, {B: {0}}, {B: (0.0, 0.5)}),
            "0007000200 0000002e r A 01 B 01 0000000000000000 01 00000041 02 A U B 0000000000000000 3fe0000000000000",
        ),
        (CheckpointReader("c", "r1", {A: -1}), "0008000100 00000020 c r 01 A ffffffffffffffff"),
        (CreateCheckpoint("c"), "0009000100 00000003 c"),
        (ClearCheckpointsBefore("c"), "000a000100 00000003 c"),
        (UpdateCheckpointPublished(True), "000b000100 00000001 01"),
        (UpdatingConfig(True), "000c000100 00000001 01"),
        (RemoveOutstandingCheckpoints(), "000d000100 00000000"),
    ],
)
def test_an_update_has_the_bytes_that_java_writes(update: Update, bytes_of_java: str) -> None:
    assert encode_update(update) == java(bytes_of_java)
    assert decode_entry(UPDATES + 2 * (int32(len(java(bytes_of_java))) + java(bytes_of_java))) == [update, update]


def test_a_configuration_has_the_bytes_that_java_writes() -> None:
    assert CONFIG.encoded() == java("C")
    assert GroupConfig.decoded(java("C")) == CONFIG


def test_a_stream_cut_has_the_bytes_that_java_writes() -> None:
    cut = StreamCut("s", "t", {A: 100, B: -1})
    assert cut.to_bytes() == java("00010100 00000012 t 02 00 2064 c000000100000001 80")
    assert StreamCut.from_bytes(cut.to_bytes()) == cut


def test_a_first_state_of_java_has_its_segments_unassigned() -> None:
    first = GroupState(CONFIG, {A: 0}, last_read={A: 0})
    assert decode_entry(WHOLE_STATE + java(INIT) + bytes(61)) == [first], "Java pads it"
    assert decode_entry(UPDATES + java(f"000000c3 {INIT}")) == [first], "a reset"
    assert decode_entry(WHOLE_STATE + encode_update(first)) == [first]


def test_the_checkpoints_of_java_are_read() -> None:
    raw = "00000200 0000002b 01 c 01 c 01 r 01 c 01 B 0000000000000005 00 01 00000001 01"
    state = GroupState(CONFIG, {A: 0}, checkpoints=Checkpoints(("c",), {"c": {"r1"}}, {"c": {B: 5}}))
    assert java(raw) in encode_update(state)
    assert decode_update(encode_update(state)) == state


def test_a_configuration_of_an_old_client_has_no_id() -> None:
    entry = written.initial(written.config(["sc/a"], str(NO_ID), 7, old=True), [A])
    config = GroupConfig(starts={"sc/a": None}, ends={"sc/a": None})
    assert decode_entry(entry) == [GroupState(config, {A: 0}, last_read={A: 0}, ranges={A: (0.0, 1.0)})]


@pytest.mark.parametrize(
    "entry",
    [
        b"\0\0\0\3",
        b"\0\0",
        written.initial(CONFIG.encoded(), []),
        written.initial(CONFIG.encoded(), [A])[:-20],
        b"\0\0\0\1" + encode_update(AddReader("r")),
        ADD_READER[:-1],
        ADD_READER + b"\0",
        java("00000002 00000005 000e000100"),
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


_names = st.text(max_size=6)
_segments = st.sampled_from([A, A1, B])
_offsets = st.dictionaries(_segments, st.integers(-1, 2**63 - 1), max_size=3)
_ranges = st.dictionaries(_segments, st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=3)
_cut_offsets = st.dictionaries(_segments, st.integers(-1, 2**61 - 1), max_size=3)
_cut = st.builds(StreamCut, st.just("s"), st.just("t"), _cut_offsets)
_cuts = st.dictionaries(st.just("s/t"), st.none() | _cut, max_size=1)
_configs = st.builds(
    GroupConfig,
    starts=_cuts,
    ends=_cuts,
    automatic_checkpoint_ms=st.integers(-1, 2**40),
    refresh_ms=st.integers(0, 2**40),
    max_outstanding=st.integers(1, 2**31 - 1),
    retention=st.sampled_from(Retention),
    generation=st.integers(-1, 2**40),
    id=st.uuids(),
)
_checkpoints = st.builds(
    Checkpoints,
    ids=st.lists(_names, max_size=3).map(tuple),
    waiting=st.dictionaries(_names, st.sets(_names, max_size=3), max_size=2),
    positions=st.dictionaries(_names, _offsets, max_size=2),
    last=_offsets,
    published=st.booleans(),
)
_states = st.builds(
    GroupState,
    config=_configs,
    unassigned=_offsets,
    end=_offsets,
    assigned=st.dictionaries(_names, _offsets, max_size=3),
    future=st.dictionaries(_segments, st.sets(st.integers(0, 2**40), max_size=3), max_size=2),
    last_read=_offsets,
    distance=st.dictionaries(_names, st.integers(0, 2**63 - 1), max_size=3),
    checkpoints=_checkpoints,
    updating=st.booleans(),
)


@given(_states, _ranges)
def test_a_state_is_read_as_it_was_written(state: GroupState, ranges: dict[str, tuple[float, float]]) -> None:
    update = UpdateDistanceToTail("r", 5, dict.fromkeys(ranges, 7), ranges)
    assert decode_update(encode_update(state)) == state
    assert decode_update(encode_update(update)) == update
