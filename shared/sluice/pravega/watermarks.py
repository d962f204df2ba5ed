"""Watermarks as the events that readers of a stream find in its mark stream.

Rules: background-and-other-workflows 3.6, stream-and-transaction-semantics appendix A. Pure functions.
"""

from sluice.domain.segment import Segment
from sluice.domain.stream.upper_bound import Watermark
from sluice.pravega.envelope import MalformedPayload, PayloadReader, collection, double, envelope, int64


def encode_watermark(watermark: Watermark) -> bytes:
    cut = collection(_segment(segment) + int64(offset) for segment, offset in watermark.cut.items())
    return envelope(int64(watermark.lower) + int64(watermark.upper) + cut)


def decode_watermark(payload: bytes) -> Watermark:
    """Raises MalformedPayload."""
    data = PayloadReader(payload).envelope()[0]
    return Watermark(data.int64(), data.int64(), data.mapping(_read_segment, PayloadReader.int64))


def _segment(segment: Segment) -> bytes:
    return envelope(int64(segment.id) + double(segment.low) + double(segment.high))


def _read_segment(data: PayloadReader) -> Segment:
    revision = data.envelope()[0]
    segment = Segment(revision.int64(), revision.double(), revision.double())
    if not 0.0 <= segment.low < segment.high <= 1.0:
        raise MalformedPayload(f"segment {segment.id} has the key range {segment.low} to {segment.high}")
    return segment
