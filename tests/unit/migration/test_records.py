"""Records and tables of the original: bytes by the documented layout, and back."""

import struct
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.pravega.envelope import MalformedPayload
from sluice_cli.migration import records as r
from sluice_cli.migration.tables import StreamMetadata, Transactions, UnreadableEntry, decode_table, encode_table
from sluice_cli.migration.wire import Record, decode, encode

T = 1700000000000
WHOLE = r.SegmentRecord(0, T, 0, 0.0, 1.0)
ID = UUID("00000001-0000-0000-0000-000000000007")

SEGMENT = "0000010000000020000000000000018bcfe56800000000000000000000000000" + "3ff0000000000000"
VECTORS = [
    (WHOLE, SEGMENT),
    (
        r.EpochRecord(0, 0, (WHOLE,), T, 0, 0),
        "00000200000000390000000000000000" + "01" + SEGMENT + "0000018bcfe56800" + "0100000010" + "00" * 16,
    ),
    (r.StateRecord(r.StreamState.ACTIVE), "0000010000000001" + "02"),
    (r.StateRecord(r.StreamState.SEALED), "0000010000000001" + "08"),
    (r.NO_TRANSITION, "000001000000000e" + "80000000" + "8000000000000000" + "0000"),
    (
        r.EpochTransition(
            0,
            T,
            (0,),
            (
                r.NewSegment(1 << 32 | 1, (r.Range(0.0, 0.5),)),
                r.NewSegment(1 << 32 | 2, (r.Range(0.5, 1.0),)),
            ),
        ),
        "0000010000000048" + "000000000000018bcfe56800010000000000000000020000000100000001010000000000000000"
        "3fe00000000000000000000100000002013fe00000000000003ff0000000000000",
    ),
    (r.NO_COMMITS, "0000010000000009" + "800000000080000000"),
    (r.NOT_TRUNCATED, "000001000000000d" + "00000000" + "00" * 9),
    (r.SealedSizes({0: 1000}), "0000010000000011" + "01" + "00" * 8 + "00000000000003e8"),
    (
        r.ActiveTransaction(T, T + 30_000, T + 86_400_000, r.TransactionStatus.OPEN),
        "0000030000000019" + "0000018bcfe568000000018bcfe5dd300000018bd50bc40001"
        "0100000012" + "000080000000000000008000000000000000" + "020000000100",
    ),
    (
        r.StreamConfiguration("s", "a", r.ScalingPolicy(r.ScaleKind.FIXED, 0, 0, 1), None, False),
        "000004000000002b" + "000173000161" + "000001000000000e0100000000000000000000000001"
        "000002000000000100"
        + "0100000000"
        + "00"
        + "0100000008"
        + "00" * 8
        + "0200000003000000"
        + "0300000008"
        + "00" * 8,
    ),
]


@pytest.mark.parametrize(("record", "text"), VECTORS, ids=lambda value: type(value).__name__)
def test_a_record_has_the_documented_bytes(record: Record, text: str) -> None:
    assert encode(record).hex() == text
    assert decode(type(record), bytes.fromhex(text)) == record


longs = st.integers(-(2**63), 2**63 - 1)
ints = st.integers(-(2**31), 2**31 - 1)
floats = st.floats(0, 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
offsets = st.dictionaries(longs, longs, max_size=4)
segments = st.builds(r.SegmentRecord, ints, longs, ints, floats, floats)
lists = st.lists(segments, max_size=3).map(tuple)
ranges = st.builds(r.Range, floats, floats)
cuts = st.dictionaries(texts, st.builds(r.GroupCut, offsets), max_size=3)
ids = st.lists(longs, max_size=4).map(tuple)
names = st.lists(texts, max_size=4).map(tuple)
RECORDS = st.one_of(
    st.builds(
        r.StreamConfiguration,
        texts,
        texts,
        st.none() | st.builds(r.ScalingPolicy, st.sampled_from(r.ScaleKind), ints, ints, ints),
        st.none() | st.builds(r.RetentionPolicy, st.sampled_from(r.RetentionKind), longs, longs),
        st.booleans(),
        longs,
        names,
        st.booleans(),
        names,
        longs,
    ),
    st.builds(r.EpochRecord, ints, ints, lists, longs, longs, longs),
    st.lists(st.builds(r.HistoryRecord, ints, ints, lists, lists, longs), max_size=3).map(
        lambda found: r.HistoryChunk(tuple(found))
    ),
    st.builds(
        r.EpochTransition,
        ints,
        longs,
        ids,
        st.lists(st.builds(r.NewSegment, longs, ranges.map(lambda one: (one,))), max_size=3).map(tuple),
    ),
    st.builds(
        r.Truncation,
        offsets,
        st.lists(st.builds(r.SpanEntry, segments, ints), max_size=3).map(tuple),
        ids,
        ids,
        longs,
        st.booleans(),
    ),
    st.lists(st.builds(r.RetentionReference, longs, longs), max_size=3).map(lambda found: r.RetentionSet(tuple(found))),
    st.builds(r.RetentionCut, longs, longs, offsets),
    st.builds(
        r.ActiveTransaction, longs, longs, longs, st.sampled_from(r.TransactionStatus), texts, longs, longs, offsets
    ),
    st.builds(r.CompletedTransaction, longs, st.sampled_from(r.TransactionStatus)),
    st.builds(r.CommittingTransactions, ints, st.lists(st.uuids(), max_size=3).map(tuple), ints),
    st.builds(r.WriterMark, longs, offsets, st.booleans()),
    st.builds(r.Subscribers, names),
    st.builds(r.Subscriber, texts, longs, longs, offsets),
    st.builds(r.TagRecord, texts, st.binary(max_size=300)),
    st.builds(
        r.GroupConfiguration, longs, longs, ints, st.sampled_from(r.GroupRetention), longs, cuts, cuts, st.booleans()
    ),
    st.builds(r.TableConfiguration, texts, texts, ints, ints, ints),
    st.builds(r.TableEpoch, ints, lists, longs),
    st.builds(r.ThingStateRecord, st.sampled_from(r.ThingState)),
)


@given(RECORDS)
def test_every_record_is_read_as_it_was_written(record: Record) -> None:
    assert decode(type(record), encode(record)) == record


@given(RECORDS, st.data())
def test_a_record_that_is_cut_short_is_malformed(record: Record, data: st.DataObject) -> None:
    whole = encode(record)
    with pytest.raises(MalformedPayload):
        decode(type(record), whole[: data.draw(st.integers(0, len(whole) - 1))])


def test_what_an_older_version_did_not_write_has_its_default() -> None:
    scaling = encode(r.ScalingPolicy(r.ScaleKind.EVENTS, 5, 2, 3))
    first = scaling[:8] + b"\1" + scaling[8:]
    first = first[:4] + struct.pack(">i", len(first) - 8) + first[8:]
    retention = bytes.fromhex("000001000000000a" + "0100" + "0000000000000007")
    data = b"\0\1s\0\1a" + first + retention + b"\0"
    old = decode(r.StreamConfiguration, b"\0\0\1\0" + struct.pack(">i", len(data)) + data)
    assert old == r.StreamConfiguration(
        "s",
        "a",
        r.ScalingPolicy(r.ScaleKind.EVENTS, 5, 2, 3),
        r.RetentionPolicy(r.RetentionKind.TIME, 7),
        False,
    )
    short = bytes.fromhex("000001000000000a" + "000173000174" + "00000004")
    assert decode(r.TableConfiguration, short) == r.TableConfiguration("s", "t", 4)


def test_a_revision_of_a_newer_version_is_passed_over() -> None:
    newer = bytes.fromhex("0000020000000001" + "02" + "0100000003" + "010203")
    assert decode(r.StateRecord, newer) == r.StateRecord(r.StreamState.ACTIVE)


def test_names_of_streams_are_unpacked_from_a_tag() -> None:
    import zlib

    assert r.TagRecord("t", zlib.compress(b"\0\1a\0\2bc")).streams == ("a", "bc")
    assert r.TagRecord("t", b"").streams == ()


ENTRIES = {
    "creationTime": struct.pack(">q", T),
    "configuration": encode(VECTORS[-1][0]),
    "epochTransition": encode(r.NO_TRANSITION),
    "state": encode(r.StateRecord(r.StreamState.ACTIVE)),
    "epochRecord-0": encode(r.EpochRecord(0, 0, (WHOLE,), T, 0, 0)),
    "epochRecord-12": encode(r.EpochRecord(12, 0, (WHOLE,), T, 0, 0)),
    "segmentsSealedSizeMapShard-0": encode(r.SealedSizes({0: 1000})),
    "segmentsSealedSizeMapShard-1": encode(r.SealedSizes({1000 << 32 | 4: 7})),
    "segmentSealedEpochPath-4294967297": struct.pack(">i", 2),
    "currentEpochRecord": struct.pack(">i", 12),
    "subscriberset": encode(r.Subscribers(("s/g",))),
    "subscriber_s/g": encode(r.Subscriber("s/g", 3, T, {0: 5})),
    "waitingRequestProcessor": b"StreamRequestHandler",
}


def test_a_table_is_read_and_written_back_with_the_same_entries() -> None:
    table = decode_table(StreamMetadata, ENTRIES)
    assert (table.creation_ms, table.current_epoch, sorted(table.epochs)) == (T, 12, [0, 12])
    assert table.sealed_sizes == {0: 1000, 1000 << 32 | 4: 7}
    assert table.subscriber_records["s/g"].cut == {0: 5}
    assert table.truncation is None
    assert encode_table(table) == ENTRIES
    transactions = {str(ID): encode(r.ActiveTransaction(T, T, T, r.TransactionStatus.OPEN))}
    assert encode_table(decode_table(Transactions, transactions)) == transactions


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("epochRecord-one", b""),
        ("unheardOf", b""),
        ("currentEpochRecord", b"\0" * 5),
        ("state", b"\0\0\1\0\0\0\0\1\x20"),
    ],
)
def test_an_entry_that_is_not_as_it_should_be_is_named(key: str, value: bytes) -> None:
    with pytest.raises(UnreadableEntry) as refusal:
        decode_table(StreamMetadata, {**ENTRIES, key: value})
    assert refusal.value.key == key
