"""RPCs on segments and cuts, and where segments are."""

from typing import Any

import grpc
import pytest
from unit.gateway.conftest import Gateway
from unit.gateway.support import SYNC_INTERNAL, create_scope, create_stream, failure

from sluice.controller_api import controller_pb2 as pb
from sluice.domain.cluster.commands import Host
from sluice.domain.cluster.events import ContainersAssigned, MemberJoined
from sluice.domain.config import StreamConfig
from sluice.domain.segment import Segment
from sluice.domain.stream.events import StreamCreationStarted
from sluice.pravega.routing import container_of

INFO = pb.StreamInfo(scope="sc", stream="st")
HOSTS = (Host("store-a", 12345), Host("store-b", 12346))


def _segment(id: int, info: pb.StreamInfo = INFO) -> pb.SegmentId:
    return pb.SegmentId(streamInfo=info, segmentId=id)


def _ids(answer: pb.SegmentRanges) -> list[int]:
    return [r.segmentId.segmentId for r in answer.segmentRanges]


async def _sealed(gateway: Gateway) -> None:
    assert (await gateway.stub.sealStream(INFO)).status == pb.UpdateStreamStatus.SUCCESS


async def test_current_segments_tile_the_key_space(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway, segments=49)
    answer = await gateway.stub.getCurrentSegments(INFO)
    ranges = answer.segmentRanges
    assert _ids(answer) == list(range(49))
    assert (ranges[0].minKey, ranges[-1].maxKey) == (0.0, 1.0)
    assert [r.minKey for r in ranges][1:] == [r.maxKey for r in ranges][:-1]
    assert all(r.segmentId.streamInfo == INFO for r in ranges)
    assert answer.delegationToken == ""


async def test_a_sealed_stream_has_no_current_segments_but_all_others(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway)
    await _sealed(gateway)
    assert _ids(await gateway.stub.getCurrentSegments(INFO)) == []
    assert _ids(await gateway.stub.getEpochSegments(pb.GetEpochSegmentsRequest(streamInfo=INFO))) == [0, 1]
    head = await gateway.stub.getSegments(pb.GetSegmentsRequest(streamInfo=INFO, timestamp=-5))
    assert [(s.segmentId.streamInfo, s.segmentId.segmentId, s.offset) for s in head.segments] == [
        (INFO, 0, 0),
        (INFO, 1, 0),
    ]
    assert list((await gateway.stub.getSegmentsImmediatelyFollowing(_segment(0))).segments) == []
    assert not (await gateway.stub.isSegmentValid(_segment(0))).response


async def test_both_spellings_answer_alike(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway)
    for segment in (0, 99, -1):
        assert list((await gateway.stub.getSegmentsImmediatelyFollowing(_segment(segment))).segments) == []
        assert list((await gateway.stub.getSegmentsImmediatlyFollowing(_segment(segment))).segments) == []


async def test_validity_of_segments_and_cuts(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway)
    assert (await gateway.stub.isSegmentValid(_segment(1))).response
    assert not (await gateway.stub.isSegmentValid(_segment(2))).response
    assert (await gateway.stub.isStreamCutValid(pb.StreamCut(streamInfo=INFO, cut={0: 1, 1: 2}))).response
    assert not (await gateway.stub.isStreamCutValid(pb.StreamCut(streamInfo=INFO, cut={0: 1}))).response
    code, _ = await failure(gateway.stub.isStreamCutValid(pb.StreamCut(streamInfo=INFO, cut={5: 1})))
    assert code is grpc.StatusCode.UNKNOWN


def _range(start: dict[int, int], end: dict[int, int]) -> pb.StreamCutRange:
    return pb.StreamCutRange(**{"streamInfo": INFO, "from": start, "to": end})  # type: ignore[arg-type]


async def test_segments_between_cuts(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway)
    for start, end in (({0: 0, 1: 0}, {}), ({}, {0: 9, 1: 9}), ({0: 0, 1: 0}, {0: 9, 1: 9})):
        answer = await gateway.stub.getSegmentsBetween(_range(start, end))
        assert sorted(s.segmentId for s in answer.segments) == [0, 1]
        assert all(s.streamInfo == INFO for s in answer.segments)
    code, _ = await failure(gateway.stub.getSegmentsBetween(_range({0: 9, 1: 9}, {0: 0, 1: 0})))
    assert code is grpc.StatusCode.UNKNOWN


async def test_a_stream_in_creation_has_no_current_segments_yet(gateway: Gateway) -> None:
    await gateway.system.stop_deciding()
    begun = StreamCreationStarted(
        scope="sc",
        stream="st",
        creation_id="r",
        config=StreamConfig(),
        created_at=0,
        segments=(Segment(0, 0.0, 1.0),),
    )
    await gateway.system.append("sc/st", begun)
    code, details = await failure(gateway.stub.getCurrentSegments(INFO))
    assert code is grpc.StatusCode.INTERNAL
    assert "being created" in str(details)


async def test_a_missing_stream_is_not_found_and_named(gateway: Gateway) -> None:
    stub = gateway.stub
    calls = (
        stub.getCurrentSegments(INFO),
        stub.getEpochSegments(pb.GetEpochSegmentsRequest(streamInfo=INFO)),
        stub.getSegments(pb.GetSegmentsRequest(streamInfo=INFO)),
        stub.getSegmentsImmediatelyFollowing(_segment(0)),
        stub.getSegmentsImmediatlyFollowing(_segment(0)),
        stub.getSegmentsBetween(_range({0: 0}, {})),
        stub.isSegmentValid(_segment(0)),
        stub.isStreamCutValid(pb.StreamCut(streamInfo=INFO, cut={0: 0})),
        stub.getStreamConfiguration(INFO),
    )
    for call in calls:
        assert await failure(call) == (grpc.StatusCode.NOT_FOUND, "stream sc/st does not exist")


async def test_an_epoch_that_never_was_is_not_found(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway)
    code, _ = await failure(gateway.stub.getEpochSegments(pb.GetEpochSegmentsRequest(streamInfo=INFO, epoch=1)))
    assert code is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("info", [pb.StreamInfo(), pb.StreamInfo(scope="sc"), pb.StreamInfo(stream="st")])
async def test_what_cannot_be_a_request_is_internal(gateway: Gateway, info: pb.StreamInfo) -> None:
    stub = gateway.stub
    calls = (
        stub.getCurrentSegments(info),
        stub.getSegments(pb.GetSegmentsRequest(streamInfo=info)),
        stub.getSegmentsImmediatelyFollowing(_segment(0, info)),
        stub.isSegmentValid(_segment(0, info)),
        stub.getURI(_segment(0, info)),
        stub.getEpochSegments(pb.GetEpochSegmentsRequest(streamInfo=INFO, epoch=-1)),
        stub.isStreamCutValid(pb.StreamCut(streamInfo=INFO)),
        stub.getSegmentsBetween(pb.StreamCutRange(streamInfo=INFO)),
    )
    for call in calls:
        assert await failure(call) == SYNC_INTERNAL


async def _assign(gateway: Gateway) -> None:
    assigned = ContainersAssigned(containers={0: HOSTS[0], 1: HOSTS[1], 2: HOSTS[0]}, hosts=HOSTS, at=0)
    await gateway.system.append("cluster", assigned)


@pytest.mark.parametrize("stream", ["st", "table_kvtable", "_RGgroup", "no such_stream"])
async def test_a_segment_is_where_its_container_is_whether_it_exists_or_not(gateway: Gateway, stream: str) -> None:
    await _assign(gateway)
    info = pb.StreamInfo(scope="sc", stream=stream)
    for segment in (0, 1, 2, 3, (5 << 32) | 1):
        container = container_of(f"sc/{stream}/{segment & 0xFFFFFFFF}", 4)
        if container == 3:
            assert await failure(gateway.stub.getURI(_segment(segment, info))) == SYNC_INTERNAL
        else:
            host = HOSTS[container % 2]
            assert await gateway.stub.getURI(_segment(segment, info)) == pb.NodeUri(
                endpoint=host.address, port=host.port
            )


async def test_without_segment_stores_nothing_is_anywhere(gateway: Gateway) -> None:
    assert await failure(gateway.stub.getURI(_segment(0))) == SYNC_INTERNAL


def _servers(answer: pb.ServerResponse) -> list[tuple[str, int]]:
    return [(node.endpoint, node.port) for node in answer.nodeURI]


async def test_the_list_of_controllers_always_has_the_one_that_answers(gateway: Gateway) -> None:
    assert _servers(await gateway.stub.getControllerServerList(pb.ServerRequest())) == [("gw.example", 9090)]
    for service, instance, endpoints in (
        ("api-gateway", "g2", {"grpc": "other.example:9091", "rest": "other.example:1"}),
        ("api-gateway", "g1", {"grpc": "gw.example:9090"}),
        ("api-gateway", "g3", {}),
        ("txn-manager", "t1", {"grpc": "not.a.gateway:1"}),
    ):
        joined = MemberJoined(service=service, instance=instance, endpoints=endpoints, at=0)
        await gateway.system.append("cluster", joined)
    answer = await gateway.stub.getControllerServerList(pb.ServerRequest())
    assert _servers(answer) == [("gw.example", 9090), ("other.example", 9091)]


async def test_without_authentication_tokens_are_empty(gateway: Gateway) -> None:
    assert (await gateway.stub.getDelegationToken(pb.StreamInfo())).delegationToken == ""


async def test_all_streams_are_one_bucket_of_those_who_work_on_them(gateway: Gateway) -> None:
    request = pb.ControllerToBucketMappingRequest(serviceType="WatermarkingService")
    assert dict((await gateway.stub.getControllerToBucketMapping(request)).mapping) == {}
    for service, instance in (("stream-workflows", "w1"), ("stream-workflows", "w2"), ("api-gateway", "g1")):
        joined = MemberJoined(service=service, instance=instance, endpoints={}, at=0)
        await gateway.system.append("cluster", joined)
    kinds: Any = pb.ControllerToBucketMappingRequest.BucketType.values()
    for kind in kinds:
        request = pb.ControllerToBucketMappingRequest(serviceType=kind)
        answer = await gateway.stub.getControllerToBucketMapping(request)
        assert {name: list(bucket.id) for name, bucket in answer.mapping.items()} == {"w1": [0], "w2": [0]}


@pytest.mark.parametrize("kind", [-1, 2])
async def test_a_mapping_of_an_unknown_service_is_internal(gateway: Gateway, kind: Any) -> None:
    request = pb.ControllerToBucketMappingRequest(serviceType=kind)
    assert await failure(gateway.stub.getControllerToBucketMapping(request)) == SYNC_INTERNAL
