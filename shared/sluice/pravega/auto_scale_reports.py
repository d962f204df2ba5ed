"""Auto-scale reports: the events by which segment stores say that a segment has too much to do, or too little.

They are one type of a family that has all events of Pravega's controller. Rules: segment-store-cluster A9. Pure.
"""

from sluice.domain.ids import StreamId
from sluice.domain.stream.traffic import Direction, Traffic
from sluice.pravega.envelope import MalformedPayload, PayloadReader, compact_int, int64, text, typed_envelope

AUTO_SCALE = 2
"""The type of a report in the family of the controller's events."""


class OtherEvent(Exception):
    """An event of the controller's family that is no auto-scale report."""

    def __init__(self, type: int) -> None:
        super().__init__(f"event of type {type}")
        self.type = type


def decode_report(payload: bytes) -> Traffic:
    """Raises OtherEvent, MalformedPayload."""
    type, revisions = PayloadReader(payload).typed_envelope()
    if type != AUTO_SCALE:
        raise OtherEvent(type)
    data = revisions[0]
    scope, stream, segment = data.text(), data.text(), data.int64()
    direction = data.byte()
    if direction not in (0, 1):
        raise MalformedPayload(f"direction {direction}")
    at, splits, silent = data.int64(), data.compact_int(), data.byte()
    return Traffic(
        stream=StreamId(scope, stream),
        segment=segment,
        direction=Direction.DOWN if direction else Direction.UP,
        at=at,
        splits=splits,
        silent=bool(silent),
    )


def encode_report(report: Traffic, request_id: int) -> bytes:
    """The report as a segment store writes it."""
    scope, stream = report.stream
    load = bytes((report.direction is Direction.DOWN,)) + int64(report.at) + compact_int(report.splits)
    about = text(scope) + text(stream) + int64(report.segment)
    return typed_envelope(AUTO_SCALE, about + load + bytes((report.silent,)) + int64(request_id))
