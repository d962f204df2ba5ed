"""Scaling by hand, and what readers and writers see afterwards."""

import pytest
from support.wait import SOON_S
from unit.gateway.conftest import Gateway
from unit.gateway.support import SYNC_INTERNAL, failure

from api_gateway.pravega.handlers import scaling
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.segment import Segment
from sluice.domain.stream.events import Replacement, StreamScaleCancelled, StreamScaleStarted

INFO = pb.StreamInfo(scope="sc", stream="st")
NEW = 1 << 32


def _scale(*ranges: tuple[float, float]) -> pb.ScaleRequest:
    entries = [pb.ScaleRequest.KeyRangeEntry(start=start, end=end) for start, end in ranges]
    return pb.ScaleRequest(streamInfo=INFO, sealedSegments=[0], newKeyRanges=entries, scaleTimestamp=5)


SPLIT = _scale((0.0, 0.25), (0.25, 0.5))


async def _check(gateway: Gateway) -> str:
    answer = await gateway.stub.checkScale(pb.ScaleStatusRequest(streamInfo=INFO, epoch=0))
    return pb.ScaleStatusResponse.ScaleStatus.Name(answer.status)


@pytest.mark.usefixtures("stream")
async def test_the_same_scale_while_it_runs_is_replied_to_with_its_segments(gateway: Gateway) -> None:
    segments = (Segment(NEW | 2, 0.0, 0.25), Segment(NEW | 3, 0.25, 0.5))
    started = StreamScaleStarted(scope="sc", stream="st", replacement=Replacement((0,), segments, 5))
    await gateway.system.stop_deciding()
    await gateway.system.append("sc/st", started)
    before = len(gateway.sent)
    answer = await gateway.stub.scale(SPLIT)
    assert (answer.status, answer.epoch) == (pb.ScaleResponse.STARTED, 0)
    assert [(s.segmentId.segmentId, s.minKey, s.maxKey) for s in answer.segments] == [
        (NEW | 2, 0.0, 0.25),
        (NEW | 3, 0.25, 0.5),
    ]
    other = await gateway.stub.scale(_scale((0.0, 0.125), (0.125, 0.5)))
    assert other == pb.ScaleResponse(status=pb.ScaleResponse.FAILURE)
    assert len(gateway.sent) == before, "neither waits behind the one that runs"


@pytest.mark.parametrize("range_", [(0.0, float("nan")), (float("inf"), 0.5)])
async def test_a_range_that_is_not_of_numbers_is_internal(gateway: Gateway, range_: tuple[float, float]) -> None:
    assert await failure(gateway.stub.scale(_scale(range_))) == SYNC_INTERNAL
    assert gateway.sent == []


@pytest.mark.usefixtures("stream")
async def test_a_scale_that_was_cancelled_has_failed_until_the_next_one_ends(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaling, "LONGEST_ANSWER_S", SOON_S)
    replacement = Replacement((0,), (Segment(NEW | 2, 0.0, 0.5),), 5)
    started = StreamScaleStarted(scope="sc", stream="st", replacement=replacement)
    await gateway.system.append("sc/st", started, StreamScaleCancelled(scope="sc", stream="st"))
    assert await _check(gateway) == "INTERNAL_ERROR"
    await gateway.stub.scale(SPLIT)
    assert await _check(gateway) == "SUCCESS"
