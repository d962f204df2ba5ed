"""Scales a stream by hand, whatever else is going on."""

import time

from harness import eventually
from sluice.controller_api import controller_pb2 as pb
from support.controller import Controller, info

_ASKS_S = 5.0


def scale_to(gateway: Controller, scope: str, stream: str, count: int, deadline_s: float = 120.0) -> None:
    """Replace all segments by so many of equal ranges; return when it is done.

    One that is not answered, or came too late for the segments it names, is requested once more.
    """

    def begun() -> pb.ScaleStatusRequest | None:
        present = [segment for segment, _, _ in gateway.segments(scope, stream)]
        started = gateway.call("scale", scale_request(scope, stream, present, count), _ASKS_S)
        if started.status != pb.ScaleResponse.STARTED:
            return None
        return pb.ScaleStatusRequest(streamInfo=info(scope, stream), epoch=started.epoch)

    question = eventually(begun, deadline_s, "the scale begins")
    eventually(
        lambda: gateway.call("checkScale", question, _ASKS_S).status == pb.ScaleStatusResponse.SUCCESS,
        deadline_s,
        "the scale is done",
    )


def scale_request(scope: str, stream: str, seals: list[int], count: int) -> pb.ScaleRequest:
    """Replace these segments, which make up the whole stream."""
    ranges = [pb.ScaleRequest.KeyRangeEntry(start=i / count, end=(i + 1) / count) for i in range(count)]
    return pb.ScaleRequest(
        streamInfo=info(scope, stream),
        sealedSegments=seals,
        newKeyRanges=ranges,
        scaleTimestamp=int(time.time() * 1000),
    )
