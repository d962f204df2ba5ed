"""The payloads of events that stream-workflows shares with Pravega's own programs.

Clients read watermarks that we write; we read the traffic reports that segment stores write.
Rules: background-and-other-workflows 3.6, segment-store-cluster A9, stream-and-transaction-semantics appendix A.
Pure functions.
"""

import struct

from sluice.domain.events import Segment
from sluice.domain.stream.traffic import Direction, Traffic
from sluice.domain.stream.watermark import Watermark
from stream_workflows.envelope import MalformedPayload, PayloadReader, compact, envelope

AUTO_SCALE = 2
"""The type of a traffic report in the family of the controller's events."""

_BOUNDS = struct.Struct(">qq")
_SEGMENT = struct.Struct(">qdd")
_OFFSET = struct.Struct(">q")


class OtherEvent(Exception):
    """An event of the controller's family that is no traffic report."""

    def __init__(self, type: int) -> None:
        super().__init__(f"event of type {type}")
        self.type = type


def encode_watermark(watermark: Watermark) -> bytes:
    entries = b"".join(
        envelope(_SEGMENT.pack(s.id, s.low, s.high)) + _OFFSET.pack(offset) for s, offset in watermark.cut.items()
    )
    bounds = _BOUNDS.pack(watermark.lower, watermark.upper)
    return envelope(bounds + compact(len(watermark.cut)) + entries)


def decode_watermark(payload: bytes) -> Watermark:
    """Raises MalformedPayload."""
    data = PayloadReader(payload).envelope()
    lower, upper = data.int64(), data.int64()
    cut = {}
    for _ in range(data.compact()):
        segment = data.envelope()
        key = Segment(segment.int64(), segment.double(), segment.double())
        cut[key] = data.int64()
    return Watermark(lower, upper, cut)


def decode_report(payload: bytes) -> Traffic:
    """Raises OtherEvent, MalformedPayload."""
    type, data = PayloadReader(payload).typed_envelope()
    if type != AUTO_SCALE:
        raise OtherEvent(type)
    scope, stream, segment = data.text(), data.text(), data.int64()
    direction = data.byte()
    if direction not in (0, 1):
        raise MalformedPayload(f"direction {direction}")
    at, splits, silent = data.int64(), data.compact(), data.byte()
    return Traffic(
        scope=scope,
        stream=stream,
        segment=segment,
        direction=Direction.DOWN if direction else Direction.UP,
        at=at,
        splits=splits,
        silent=bool(silent),
    )
