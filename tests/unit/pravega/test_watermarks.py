"""Watermarks as bytes: background-and-other-workflows 3.6."""

from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.domain.segment import Segment
from sluice.domain.stream.upper_bound import Watermark
from sluice.pravega.envelope import MalformedPayload
from sluice.pravega.watermarks import decode_watermark, encode_watermark

WATERMARK = bytes.fromhex(
    "0000010000000039 00000000000003e8 00000000000007d0 01 00000100 00000018"
    "0000000000000000 0000000000000000 3ff0000000000000 0000000000000049"
)

ranges = st.tuples(st.floats(0, 1), st.floats(0, 1)).filter(lambda bounds: bounds[0] != bounds[1]).map(sorted)
segments = st.builds(lambda number, bounds: Segment(number, *bounds), st.integers(0, 2**62), ranges)
offsets = st.integers(-(2**63), 2**63 - 1)


def test_the_watermark_of_the_reference() -> None:
    mark = Watermark(1000, 2000, {Segment(0, 0.0, 1.0): 73})
    assert encode_watermark(mark) == WATERMARK and len(WATERMARK) == 65
    assert decode_watermark(WATERMARK) == mark


@given(st.builds(Watermark, offsets, offsets, st.dictionaries(segments, offsets, max_size=200)))
def test_a_watermark_is_read_as_it_was_written(mark: Watermark) -> None:
    assert decode_watermark(encode_watermark(mark)) == mark


@pytest.mark.parametrize("cut", range(len(WATERMARK)))
def test_a_watermark_cut_short_is_malformed(cut: int) -> None:
    with pytest.raises(MalformedPayload):
        decode_watermark(WATERMARK[:cut])


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.5), (0.5, 0.25), (-0.5, 1.0), (0.0, 1.5), (nan, 1.0), (0.0, nan)])
def test_a_watermark_with_a_range_that_no_segment_has_is_malformed(low: float, high: float) -> None:
    with pytest.raises(MalformedPayload):
        decode_watermark(encode_watermark(Watermark(1000, 2000, {Segment(0, low, high): 73})))


@given(st.binary(max_size=80))
def test_any_bytes_are_a_watermark_or_refused(payload: bytes) -> None:
    try:
        decode_watermark(payload)
    except MalformedPayload:
        return
