"""RPCs on segments and cuts, and where segments are."""

from typing import Any

import grpc
from unit.gateway.conftest import Gateway
from unit.gateway.support import SYNC_INTERNAL, creation_started, failure

from sluice.controller_api import controller_pb2 as pb
from sluice.domain.cluster import events as ev
from sluice.domain.host import Host
from sluice.pravega.routing import container_of

INFO = pb.StreamInfo(scope="sc", stream="st")
HOSTS = (Host("store-a", 12345), Host("fd00::b", 12346))
ENDPOINTS = ("store-a", "[fd00::b]")


def _segment(id: int) -> pb.SegmentId:
    return pb.SegmentId(streamInfo=INFO, segmentId=id)


async def test_a_stream_in_creation_has_no_current_segments_yet(gateway: Gateway) -> None:
    await gateway.system.stop_deciding()
    await gateway.system.append("sc/st", creation_started())
    code, details = await failure(gateway.stub.getCurrentSegments(INFO))
    assert code is grpc.StatusCode.INTERNAL
    assert "being created" in str(details)


async def test_a_segment_is_where_its_container_is_whether_it_exists_or_not(gateway: Gateway) -> None:
    assigned = ev.ContainersAssigned(containers={0: HOSTS[0], 1: HOSTS[1], 2: HOSTS[0]}, hosts=HOSTS, at=0)
    await gateway.system.append("cluster", assigned)
    for segment in (0, 1, 2, 3, (5 << 32) | 1):
        container = container_of(f"sc/st/{segment & 0xFFFFFFFF}", 4)
        if container == 3:
            assert await failure(gateway.stub.getURI(_segment(segment))) == SYNC_INTERNAL
        else:
            expected = pb.NodeUri(endpoint=ENDPOINTS[container % 2], port=HOSTS[container % 2].port)
            assert await gateway.stub.getURI(_segment(segment)) == expected


async def test_without_segment_stores_nothing_is_anywhere(gateway: Gateway) -> None:
    assert await failure(gateway.stub.getURI(_segment(0))) == SYNC_INTERNAL


def _servers(answer: pb.ServerResponse) -> list[tuple[str, int]]:
    return [(node.endpoint, node.port) for node in answer.nodeURI]


async def _join(gateway: Gateway, service: str, instance: str, **endpoints: str) -> None:
    joined = ev.MemberJoined(service=service, instance=instance, endpoints=endpoints, at=0)
    await gateway.system.append("cluster", joined)


async def test_the_list_of_controllers_always_has_the_one_that_answers(gateway: Gateway) -> None:
    assert _servers(await gateway.stub.getControllerServerList(pb.ServerRequest())) == [("gw.example", 9090)]
    await _join(gateway, "api-gateway", "g2", grpc="[fd00::2]:9091", rest="[fd00::2]:1")
    await _join(gateway, "api-gateway", "g1", grpc="gw.example:9090")
    await _join(gateway, "api-gateway", "g3")
    await _join(gateway, "txn-manager", "t1", grpc="not.a.gateway:1")
    answer = await gateway.stub.getControllerServerList(pb.ServerRequest())
    assert _servers(answer) == [("gw.example", 9090), ("[fd00::2]", 9091)]


async def test_all_streams_are_one_bucket_of_those_who_work_on_them(gateway: Gateway) -> None:
    request = pb.ControllerToBucketMappingRequest(serviceType="WatermarkingService")
    assert dict((await gateway.stub.getControllerToBucketMapping(request)).mapping) == {}
    for service, instance in (("stream-workflows", "w1"), ("stream-workflows", "w2"), ("api-gateway", "g1")):
        await _join(gateway, service, instance)
    kinds: Any = pb.ControllerToBucketMappingRequest.BucketType.values()
    for kind in kinds:
        request = pb.ControllerToBucketMappingRequest(serviceType=kind)
        answer = await gateway.stub.getControllerToBucketMapping(request)
        assert {name: list(bucket.id) for name, bucket in answer.mapping.items()} == {"w1": [0], "w2": [0]}
