"""What a segment store appends when it reports the load of a segment (segment-store-cluster A9)."""

from sluice.pravega.auto_scale_reports import AUTO_SCALE
from sluice.pravega.envelope import compact_int, int64, text, typed_envelope
from support.controller import Controller
from support.segments import append
from support.wait import SOON_S, eventually

REPORTS = ("_system", "_requeststream")


def report_load(client: Controller, event: bytes, segment: int = 0) -> None:
    """Have the event come as a segment store sends it. The stream for that is made once the system is ready."""
    eventually(lambda: append(client, REPORTS, segment, event), SOON_S, "the report is in its stream")


def auto_scale_event(
    scope: str, stream: str, segment: int = 0, *, down: bool = False, at: int = 1_700_000_000_000, splits: int = 2,
    silent: bool = False, request: int = 1,
) -> bytes:  # fmt: skip
    load = bytes((down,)) + int64(at) + compact_int(splits) + bytes((silent,))
    return controller_event(AUTO_SCALE, text(scope) + text(stream) + int64(segment) + load + int64(request))


def controller_event(type: int, data: bytes) -> bytes:
    """Any event of the controller's family, with one revision."""
    return typed_envelope(type, data)
