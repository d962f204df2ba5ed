"""Auto-scale reports as segment stores write them: segment-store-cluster A9."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.auto_scale import auto_scale_event, controller_event

from sluice.domain.ids import StreamId
from sluice.domain.stream.traffic import Direction, Traffic
from sluice.pravega.auto_scale_reports import OtherEvent, decode_report, encode_report
from sluice.pravega.envelope import MalformedPayload

REPORT = bytes.fromhex(
    "00 02 00 01 00 0000002a 0005 73636f7065 0006 73747265616d"
    "0000000000000000 00 0000018bcfe56800 02 00 0102030405060708"
)
SHORT_REPORT = bytes.fromhex(
    "00 02 00 01 00 00000021 0001 61 0001 62 0000000100000002 00 0000018bcfe56800 02 00 0000000000000001"
)


def test_the_reports_of_the_reference() -> None:
    found = decode_report(REPORT)
    assert found == Traffic(StreamId("scope", "stream"), 0, Direction.UP, 1_700_000_000_000, 2, silent=False)
    assert auto_scale_event("scope", "stream", request=0x0102030405060708) == REPORT
    assert encode_report(found, 0x0102030405060708) == REPORT
    found = decode_report(SHORT_REPORT)
    assert (found.stream, found.segment) == (StreamId("a", "b"), 4294967298)


def test_a_report_of_too_little_load() -> None:
    found = decode_report(auto_scale_event("s", "t", 7, down=True, splits=0, silent=True))
    assert (found.segment, found.direction, found.splits, found.silent) == (7, Direction.DOWN, 0, True)


def test_newer_revisions_and_trailing_bytes_are_skipped() -> None:
    data = SHORT_REPORT[9:] + b"more"
    newer = bytes((0, 2, 0, 2, 0)) + struct.pack(">i", len(data)) + data + bytes((1, 0, 0, 0, 2, 9, 9))
    assert decode_report(newer) == decode_report(SHORT_REPORT)


@pytest.mark.parametrize("type", [1, 3, 4, 5, 14])
def test_another_event_of_the_family_is_named_by_its_type(type: int) -> None:
    with pytest.raises(OtherEvent) as other:
        decode_report(controller_event(type, b"anything"))
    assert other.value.type == type


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{}",
        SHORT_REPORT[:-1],
        SHORT_REPORT[:20],
        bytes((0, 2, 0, 0)),
        bytes((0, 2, 1)) + SHORT_REPORT[3:],
        bytes((1,)) + SHORT_REPORT[1:],
        bytes((0, 2, 0, 1, 1)) + SHORT_REPORT[5:],
        bytes((0, 2, 0, 1, 0)) + struct.pack(">i", -1),
        SHORT_REPORT.replace(b"\x00\x01a", b"\x00\x01\xff"),
        controller_event(2, SHORT_REPORT[9:23] + b"\x02" + SHORT_REPORT[24:]),
    ],
)
def test_bytes_that_are_no_report_are_malformed(payload: bytes) -> None:
    with pytest.raises(MalformedPayload):
        decode_report(payload)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_report_or_refused(payload: bytes) -> None:
    try:
        decode_report(payload)
    except (MalformedPayload, OtherEvent):
        return
