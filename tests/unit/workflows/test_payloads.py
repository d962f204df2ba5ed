"""Bytes that others write or read: the examples of the reference, what is skipped and what is refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.auto_scale import auto_scale_event, controller_event

from sluice.domain.events import Segment
from sluice.domain.stream.traffic import Direction, Traffic
from sluice.domain.stream.watermark import Watermark
from stream_workflows.envelope import MalformedPayload
from stream_workflows.payloads import OtherEvent, decode_report, decode_watermark, encode_watermark
from stream_workflows.segment_events import Events, MalformedEventsError, split_events

WATERMARK = bytes.fromhex(
    "0000010000000039 00000000000003e8 00000000000007d0 01 00000100 00000018"
    "0000000000000000 0000000000000000 3ff0000000000000 0000000000000049"
)
REPORT = bytes.fromhex(
    "00 02 00 01 00 0000002a 0005 73636f7065 0006 73747265616d"
    "0000000000000000 00 0000018bcfe56800 02 00 0102030405060708"
)
SHORT_REPORT = bytes.fromhex(
    "00 02 00 01 00 00000021 0001 61 0001 62 0000000100000002 00 0000018bcfe56800 02 00 0000000000000001"
)


def test_the_watermark_of_the_reference() -> None:
    mark = Watermark(1000, 2000, {Segment(0, 0.0, 1.0): 73})
    assert encode_watermark(mark) == WATERMARK and len(WATERMARK) == 65
    assert decode_watermark(WATERMARK) == mark


segments = st.builds(Segment, st.integers(0, 2**62), st.floats(0, 1, allow_nan=False), st.floats(0, 1, allow_nan=False))
offsets = st.integers(-(2**63), 2**63 - 1)


@given(st.builds(Watermark, offsets, offsets, st.dictionaries(segments, offsets, max_size=200)))
def test_a_watermark_is_read_as_it_was_written(mark: Watermark) -> None:
    assert decode_watermark(encode_watermark(mark)) == mark


def test_a_watermark_over_ten_thousand_segments() -> None:
    mark = Watermark(1, 2, {Segment(i, i / 20_000, (i + 1) / 20_000): i for i in range(20_000)})
    assert decode_watermark(encode_watermark(mark)) == mark


def test_the_reports_of_the_reference() -> None:
    found = decode_report(REPORT)
    assert found == Traffic("scope", "stream", 0, Direction.UP, 1_700_000_000_000, 2, silent=False)
    assert auto_scale_event("scope", "stream", request=0x0102030405060708) == REPORT
    found = decode_report(SHORT_REPORT)
    assert (found.scope, found.stream, found.segment) == ("a", "b", 4294967298)


def test_a_report_of_too_little_load() -> None:
    found = decode_report(auto_scale_event("s", "t", 7, down=True, splits=0, silent=True))
    assert (found.segment, found.direction, found.splits, found.silent) == (7, Direction.DOWN, 0, True)


def test_newer_revisions_and_trailing_bytes_are_skipped() -> None:
    data = SHORT_REPORT[9:] + b"more"
    newer = bytes((0, 2, 0, 2, 0)) + struct.pack(">i", len(data)) + data + bytes((1, 0, 0, 0, 2, 9, 9))
    assert decode_report(newer) == decode_report(SHORT_REPORT)


@pytest.mark.parametrize("type", [1, 3, 4, 5, 14])
def test_other_events_of_the_family_are_told_apart(type: int) -> None:
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
def test_what_is_no_report_is_named_so(payload: bytes) -> None:
    with pytest.raises(MalformedPayload):
        decode_report(payload)


@given(st.binary(max_size=80))
def test_no_bytes_end_in_anything_but_a_named_error(payload: bytes) -> None:
    for decode in (decode_report, decode_watermark):
        try:
            decode(payload)
        except (MalformedPayload, OtherEvent):
            continue


def framed(*events: bytes) -> bytes:
    return b"".join(struct.pack(">ii", 0, len(event)) + event for event in events)


@given(st.lists(st.binary(max_size=20)), st.integers(0, 100))
def test_events_are_split_wherever_the_bytes_end(events: list[bytes], missing: int) -> None:
    data = framed(*events)
    cut = data[: max(0, len(data) - missing)]
    found = split_events(cut, 1000)
    whole = [event for _, event in found.events]
    assert whole == events[: len(whole)] and found.end == 1000 + len(framed(*whole))
    assert len(whole) == len(events) or len(framed(*events[: len(whole) + 1])) > len(cut)
    assert [at for at, _ in found.events] == [1000 + len(framed(*whole[:i])) for i in range(len(whole))]


@pytest.mark.parametrize(
    "garbage", [b"\x00\x00\x00\x01\x00\x00\x00\x01x", b"\x00\x00\x00\x00\xff\xff\xff\xff", b"12345678"]
)
def test_what_can_be_no_event_is_named_with_its_place(garbage: bytes) -> None:
    assert split_events(framed(b"a") + garbage, 100) == Events([(100, b"a")], 109)
    with pytest.raises(MalformedEventsError) as error:
        split_events(garbage, 109)
    assert error.value.offset == 109
