"""The bytes that a segment store appends when it reports the load of a segment (segment-store-cluster A9)."""

import struct


def auto_scale_event(
    scope: str, stream: str, segment: int = 0, *, down: bool = False, at: int = 1_700_000_000_000, splits: int = 2,
    silent: bool = False, request: int = 1,
) -> bytes:  # fmt: skip
    """A payload; `splits` below 128."""
    names = b"".join(struct.pack(">H", len(text)) + text.encode() for text in (scope, stream))
    facts = struct.pack(">qbqB?q", segment, int(down), at, splits, silent, request)
    return controller_event(2, names + facts)


def controller_event(type: int, data: bytes) -> bytes:
    """Any event of the controller's family, with one revision."""
    return bytes((0, type, 0, 1, 0)) + struct.pack(">i", len(data)) + data
