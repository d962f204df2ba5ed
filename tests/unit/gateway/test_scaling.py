"""Scaling by hand, and what readers and writers are told afterwards."""

import pytest
from unit.gateway.conftest import Gateway
from unit.gateway.support import SYNC_INTERNAL, create_scope, create_stream, failure

from sluice.controller_api import controller_pb2 as pb
from sluice.domain.segment import Segment
from sluice.domain.stream.events import Replacement, StreamScaleCancelled, StreamScaleStarted

INFO = pb.StreamInfo(scope="sc", stream="st")
NEW = 1 << 32


def _scale(seals: list[int], *ranges: tuple[float, float], info: pb.StreamInfo = INFO) -> pb.ScaleRequest:
    entries = [pb.ScaleRequest.KeyRangeEntry(start=start, end=end) for start, end in ranges]
    return pb.ScaleRequest(streamInfo=info, sealedSegments=seals, newKeyRanges=entries, scaleTimestamp=5)


SPLIT = _scale([0], (0.0, 0.25), (0.25, 0.5))


async def _check(gateway: Gateway, epoch: int, info: pb.StreamInfo = INFO) -> str:
    answer = await gateway.stub.checkScale(pb.ScaleStatusRequest(streamInfo=info, epoch=epoch))
    return pb.ScaleStatusResponse.ScaleStatus.Name(answer.status)


async def test_a_split_is_announced_done_and_followed(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway)
    assert await _check(gateway, 0) == "IN_PROGRESS"
    answer = await gateway.stub.scale(SPLIT)
    assert (answer.status, answer.epoch) == (pb.ScaleResponse.STARTED, 0)
    assert [(s.segmentId.streamInfo, s.segmentId.segmentId, s.minKey, s.maxKey) for s in answer.segments] == [
        (INFO, NEW | 2, 0.0, 0.25),
        (INFO, NEW | 3, 0.25, 0.5),
    ]
    assert await _check(gateway, 0) == "SUCCESS"
    current = await gateway.stub.getCurrentSegments(INFO)
    assert [r.segmentId.segmentId for r in current.segmentRanges] == [NEW | 2, NEW | 3, 1]
    following = await gateway.stub.getSegmentsImmediatelyFollowing(pb.SegmentId(streamInfo=INFO, segmentId=0))
    assert [(e.segment.segmentId.segmentId, e.segment.minKey, list(e.value)) for e in following.segments] == [
        (NEW | 2, 0.0, [0]),
        (NEW | 3, 0.25, [0]),
    ]
    assert all(e.segment.segmentId.streamInfo == INFO for e in following.segments)


async def test_the_same_split_again_finds_its_segments_gone(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway)
    await gateway.stub.scale(SPLIT)
    assert await _check(gateway, 0) == "SUCCESS"
    answer = await gateway.stub.scale(SPLIT)
    assert answer == pb.ScaleResponse(status=pb.ScaleResponse.PRECONDITION_FAILED)


async def test_a_scale_that_is_asked_for_again_while_it_runs_has_started(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway)
    segments = (Segment(NEW | 2, 0.0, 0.25), Segment(NEW | 3, 0.25, 0.5))
    started = StreamScaleStarted(scope="sc", stream="st", replacement=Replacement((0,), segments, 5))
    await gateway.system.stop_deciding()
    await gateway.system.append("sc/st", started)
    asked = len(gateway.sent)
    answer = await gateway.stub.scale(SPLIT)
    assert (answer.status, answer.epoch) == (pb.ScaleResponse.STARTED, 0)
    assert [(s.segmentId.segmentId, s.minKey, s.maxKey) for s in answer.segments] == [
        (NEW | 2, 0.0, 0.25),
        (NEW | 3, 0.25, 0.5),
    ]
    other = await gateway.stub.scale(_scale([0], (0.0, 0.125), (0.125, 0.5)))
    assert other == pb.ScaleResponse(status=pb.ScaleResponse.FAILURE)
    assert len(gateway.sent) == asked, "neither waits behind the one that runs"


async def test_a_scale_that_does_not_fit_fails(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway)
    for request in (_scale([0], (0.0, 0.4)), _scale([], (0.0, 0.5)), _scale([0], (0.5, 0.0))):
        assert (await gateway.stub.scale(request)).status == pb.ScaleResponse.FAILURE
    missing = pb.StreamInfo(scope="sc", stream="none")
    assert (await gateway.stub.scale(_scale([0], (0.0, 0.5), info=missing))).status == pb.ScaleResponse.FAILURE
    assert await _check(gateway, 0, missing) == "INVALID_INPUT"
    assert await _check(gateway, 1) == "INVALID_INPUT"


@pytest.mark.parametrize(
    "request_",
    [
        _scale([0], (0.0, 0.25), (0.0, 0.5)),
        _scale([0], (0.0, float("nan"))),
        _scale([0], (float("inf"), 0.5)),
        _scale([0], (0.0, 0.5), info=pb.StreamInfo(scope="sc")),
    ],
)
async def test_what_cannot_be_a_scale_is_internal(gateway: Gateway, request_: pb.ScaleRequest) -> None:
    assert await failure(gateway.stub.scale(request_)) == SYNC_INTERNAL
    assert gateway.sent == []


async def test_a_scale_that_was_cancelled_has_failed_until_the_next_one_ends(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway)
    replacement = Replacement((0,), (Segment(NEW | 2, 0.0, 0.5),), 5)
    started = StreamScaleStarted(scope="sc", stream="st", replacement=replacement)
    await gateway.system.append("sc/st", started, StreamScaleCancelled(scope="sc", stream="st"))
    assert await _check(gateway, 0) == "INTERNAL_ERROR"
    await gateway.stub.scale(SPLIT)
    assert await _check(gateway, 0) == "SUCCESS"


async def test_a_negative_epoch_is_internal(gateway: Gateway) -> None:
    check = gateway.stub.checkScale(pb.ScaleStatusRequest(streamInfo=INFO, epoch=-1))
    assert await failure(check) == SYNC_INTERNAL
