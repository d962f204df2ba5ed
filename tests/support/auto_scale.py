"""The bytes that a segment store appends when it reports the load of a segment (segment-store-cluster A9)."""

from sluice.pravega.auto_scale_reports import AUTO_SCALE
from sluice.pravega.envelope import compact_int, int64, text, typed_envelope


def auto_scale_event(
    scope: str, stream: str, segment: int = 0, *, down: bool = False, at: int = 1_700_000_000_000, splits: int = 2,
    silent: bool = False, request: int = 1,
) -> bytes:  # fmt: skip
    load = bytes((down,)) + int64(at) + compact_int(splits) + bytes((silent,))
    return controller_event(AUTO_SCALE, text(scope) + text(stream) + int64(segment) + load + int64(request))


def controller_event(type: int, data: bytes) -> bytes:
    """Any event of the controller's family, with one revision."""
    return typed_envelope(type, data)
