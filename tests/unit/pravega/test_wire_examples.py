"""Every byte example of the wire protocol's reference, both ways (wire protocol 1.3, 1.4, 2.4, 3.1, 5.2)."""

from uuid import UUID

import pytest

from sluice.pravega.wire import appends, hello, refusals, segments, tables
from sluice.pravega.wire.command import Command
from sluice.pravega.wire.fields import AttributeUpdate, TableEntry, TableKey
from sluice.pravega.wire.frame import MalformedFrame, UnknownCommand, decode, encode, payload_size

WRITER = UUID("00112233445566778899aabbccddeeff")
W = WRITER.hex
TWO_EVENTS = bytes.fromhex("0000000000000003616263000000000000000568656c6c6f")
SEGMENT = "s/t/0.#epoch.0"
NAME = "000e732f742f302e2365706f63682e30"

EXAMPLES: list[tuple[str, Command]] = [
    ("ffffff81 00000008 00000011 00000005", hello.Hello(17, 5)),
    ("ffffff81 00000008 0000000f 00000005", hello.Hello(15, 5)),
    ("00000064 00000000", hello.KeepAlive()),
    (
        f"00000004 0000002c {W} 0000000b 00000000 00000001 0000000000000001 0000000100000000",
        appends.AppendBlockEnd(WRITER, 11, b"", 1, 1, 1 << 32),
    ),
    (
        f"00000004 00000034 {W} 0000000b 00000008 00000568656c6c6f 00000002 0000000000000002 0000000100000000",
        appends.AppendBlockEnd(WRITER, 11, bytes.fromhex("00000568656c6c6f"), 2, 2, 1 << 32),
    ),
    (
        f"00000004 00000044 {W} 00000018 00000018 {TWO_EVENTS.hex()} 00000002 0000000000000002 0000000000000007",
        appends.AppendBlockEnd(WRITER, 24, TWO_EVENTS, 2, 2, 7),
    ),
    (
        f"00000007 00000030 {W} 0000000000000002 8000000000000000 0000000000000007 0000000000000018",
        appends.DataAppended(WRITER, 2, -(1 << 63), 7, 24),
    ),
    (
        f"00000009 00000026 {NAME} 0000000000000000 00000400 0000 0000000000000005",
        appends.ReadSegment(SEGMENT, 0, 1024, "", 5),
    ),
    (
        f"0000000a 0000003e {NAME} 0000000000000000 00 00 00000018 {TWO_EVENTS.hex()} 0000000000000005",
        appends.SegmentRead(SEGMENT, 0, False, False, TWO_EVENTS, 5),
    ),
    (
        "0000004a 0000004b 0000000000000003 0016732f745f6b767461626c652f302e2365706f63682e30 0000 00000001"
        "0000000e 00000002 6b31 ffffffffffffffff 00000007 00000003 76616c ffffffffffffffff",
        tables.UpdateTableEntries(3, "s/t_kvtable/0.#epoch.0", "", (TableEntry(TableKey(b"k1", -1), b"val"),)),
    ),
]


@pytest.mark.parametrize(("text", "command"), EXAMPLES)
def test_example(text: str, command: Command) -> None:
    frame = bytes.fromhex(text)
    code, size = payload_size(frame)
    assert size == len(frame) - 8
    assert encode(command) == frame
    assert decode(code, frame[8:]) == command


# The reference gives no bytes for these: they are its field tables, written out where an order is easily got wrong.
ORDERS: list[tuple[str, Command]] = [
    (
        f"0000000000000001 {NAME} 00000064 02 0001 74 0000000000000008",
        segments.CreateSegment(1, SEGMENT, 100, 2, "t", 8),
    ),
    (f"0000000000000001 {NAME} 00000064 02 0001 74", segments.UpdateSegmentPolicy(1, SEGMENT, 100, 2, "t")),
    (
        f"0000000000000001 {NAME} 00000002 0001 61 0001 62 0000",
        segments.MergeSegmentsBatch(1, SEGMENT, ("a", "b"), ""),
    ),
    (f"0000000000000001 {W} {NAME} 0000", segments.CreateTransientSegment(1, WRITER, SEGMENT, "")),
    (
        f"0000000000000001 {NAME} 0001 61 0000 00000001 {W} 04 0000000000000007 0000000000000006",
        segments.MergeSegments(1, SEGMENT, "a", "", (AttributeUpdate(WRITER, 4, 7, 6),)),
    ),
    (
        f"0000000000000001 {NAME} {W} 0000000000000002 0000000000000001 0000",
        segments.UpdateSegmentAttribute(1, SEGMENT, WRITER, 2, 1, ""),
    ),
    (
        f"{W} 0000000000000001 0000000000000002 00000000 00000003 616263 0000000000000005",
        appends.ConditionalAppend(WRITER, 1, 2, b"abc", 5),
    ),
    (f"0000000000000001 {W} {NAME} 0000", appends.SetupAppend(1, WRITER, SEGMENT, "")),
    (f"0000000000000001 {NAME} {W} 0000000000000009", appends.AppendSetup(1, SEGMENT, WRITER, 9)),
    (f"{W} 0000000000000001 0000 0000000000000009", refusals.InvalidEventNumber(WRITER, 1, "", 9)),
    (
        f"0000000000000001 {NAME} 0000 00 00000020 0000000000000003",
        tables.CreateTableSegment(1, SEGMENT, "", False, 32, 3),
    ),
    (f"0000000000000001 {NAME} 01 0000", tables.DeleteTableSegment(1, SEGMENT, True, "")),
    (
        f"0000000000000001 {NAME} 0000 00000007 00000001 61 00000000 00000001 62 00000001 63",
        tables.ReadTableEntries(1, SEGMENT, "", 7, b"a", b"", b"b", b"c"),
    ),
    (
        f"0000000000000001 {NAME} 00000001 0000000d 00000001 6b 0000000000000009 00000005 00000001 76 00000001 74",
        tables.TableEntriesRead(1, SEGMENT, (TableEntry(TableKey(b"k", 9), b"v"),), b"t"),
    ),
]


@pytest.mark.parametrize(("text", "command"), ORDERS)
def test_order_of_fields(text: str, command: Command) -> None:
    payload = bytes.fromhex(text)
    frame = encode(command)
    assert frame[8:] == payload
    assert decode(payload_size(frame)[0], payload) == command


ABSENT: list[tuple[int, str, Command]] = [
    (4, f"{W} 0000000b 00000000 00000001 0000000000000001", appends.AppendBlockEnd(WRITER, 11, b"", 1, 1, -1)),
    (7, f"{W} 0000000000000002", appends.DataAppended(WRITER, 2, -1, -1, -1)),
    (7, f"{W} 0000000000000002 0000000000000001", appends.DataAppended(WRITER, 2, 1, -1, -1)),
    (8, f"{W} 0000000000000002", appends.ConditionalCheckFailed(WRITER, 2, -1)),
    (50, "0000000000000001 0001 73 0000", refusals.WrongHost(1, "s", "", "")),
    (51, "0000000000000001 0001 73", refusals.SegmentIsSealed(1, "s", "", -1)),
    (52, "0000000000000001 0001 73", refusals.SegmentAlreadyExists(1, "s", "")),
    (53, "0000000000000001 0001 73 0001 78", refusals.NoSuchSegment(1, "s", "x", -1)),
    (55, f"{W} 0000000000000001", refusals.InvalidEventNumber(WRITER, 1, "", -1)),
    (56, "0000000000000001 0001 73 0000000000000007", refusals.SegmentIsTruncated(1, "s", 7, "", -1)),
    (57, "0000000000000001 0001 73", refusals.OperationUnsupported(1, "s", "")),
    (60, "0000000000000001", refusals.AuthTokenCheckFailed(1, "", -1)),
    (20, "0000000000000001 0001 73 00000000 00 0000", segments.CreateSegment(1, "s", 0, 0, "", 0)),
    (70, "0000000000000001 0001 73 0000", tables.CreateTableSegment(1, "s", "", False, 0, 0)),
    (85, "0000000000000001 0001 73 0000 00000007 00000001 61", tables.ReadTableEntries(1, "s", "", 7, b"a")),
    (
        12,
        "0000000000000001 0001 73 01 00 00 0000000000000002 0000000000000003",
        segments.StreamSegmentInfo(1, "s", True, False, False, 2, 3, 0),
    ),
]


@pytest.mark.parametrize(("code", "text", "command"), ABSENT)
def test_absent_fields_have_their_defaults(code: int, text: str, command: Command) -> None:
    assert decode(code, bytes.fromhex(text)) == command


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (21, "0000000000000001"),
        (21, "00000000000001"),
        (21, "0000000000000001 0005 7320"),
        (21, "0000000000000001 0001 ff"),
        (10, f"{NAME} 0000000000000000 00 00 7fffffff 00"),
        (10, f"{NAME} 0000000000000000 00 00 ffffffff 00"),
        (75, "0000000000000001 7fffffff"),
        (75, "0000000000000001 ffffffff"),
        (5, f"{W} 0000000000000001 0000000000000002 00000001 00000000"),
        (7, "0011"),
        (53, "0000000000000001 0001 73 00"),
    ],
)
def test_a_malformed_payload_is_named(code: int, text: str) -> None:
    with pytest.raises(MalformedFrame):
        decode(code, bytes.fromhex(text))


@pytest.mark.parametrize("code", [0, 6, 13, 99, -7, 12345])
def test_an_unknown_type_is_named(code: int) -> None:
    with pytest.raises(UnknownCommand, match=str(code)):
        decode(code, b"")


@pytest.mark.parametrize("header", ["00000015 01000000", "00000015 ffffffff"])
def test_a_frame_has_a_bound(header: str) -> None:
    with pytest.raises(MalformedFrame):
        payload_size(bytes.fromhex(header))
