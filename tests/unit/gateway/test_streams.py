"""RPCs on streams as a whole."""

import pytest
from unit.gateway.conftest import Gateway
from unit.gateway.support import SYNC_INTERNAL, create_scope, create_stream, failure

from sluice.controller_api import controller_pb2 as pb
from sluice.domain.scope.commands import CreateScope
from sluice.domain.stream.commands import CreateStream, SealStream
from sluice.kafka.topics import REQUESTS_STREAMS

INFO = pb.StreamInfo(scope="sc", stream="st")
ONE = pb.ScalingPolicy(minNumSegments=1)


@pytest.mark.parametrize(
    ("info", "status"),
    [
        (INFO, "SUCCESS"),
        (pb.StreamInfo(scope="sc", stream="there"), "STREAM_EXISTS"),
        (pb.StreamInfo(scope="none", stream="st"), "SCOPE_NOT_FOUND"),
        (pb.StreamInfo(scope="sc", stream="my_stream"), "INVALID_STREAM_NAME"),
        (pb.StreamInfo(scope="sc", stream=""), "INVALID_STREAM_NAME"),
        (pb.StreamInfo(scope="none", stream=""), "INVALID_STREAM_NAME"),
    ],
)
async def test_a_stream_is_created_or_refused(gateway: Gateway, info: pb.StreamInfo, status: str) -> None:
    await create_scope(gateway)
    await create_stream(gateway, "there")
    answer = await gateway.stub.createStream(pb.StreamConfig(streamInfo=info, scalingPolicy=ONE))
    assert pb.CreateStreamStatus.Status.Name(answer.status) == status


async def test_a_stream_without_segments_is_refused(gateway: Gateway) -> None:
    await create_scope(gateway)
    answer = await gateway.stub.createStream(pb.StreamConfig(streamInfo=INFO))
    assert answer.status == pb.CreateStreamStatus.FAILURE


async def test_the_configuration_comes_back_as_created_and_as_updated(gateway: Gateway) -> None:
    await create_scope(gateway)
    config = pb.StreamConfig(
        streamInfo=INFO,
        scalingPolicy=pb.ScalingPolicy(
            scaleType="BY_RATE_IN_EVENTS_PER_SEC", targetRate=10, scaleFactor=2, minNumSegments=1
        ),
        retentionPolicy=pb.RetentionPolicy(retentionType="TIME", retentionParam=60_000, retentionMax=2**63 - 1),
        tags=pb.Tags(tag=["a"]),
    )
    await gateway.stub.createStream(config)
    assert await gateway.stub.getStreamConfiguration(INFO) == config
    update = pb.StreamConfig(streamInfo=INFO, scalingPolicy=config.scalingPolicy, tags=pb.Tags())
    assert (await gateway.stub.updateStream(update)).status == pb.UpdateStreamStatus.SUCCESS
    answer = await gateway.stub.getStreamConfiguration(INFO)
    assert answer == update
    assert answer.HasField("tags")
    assert not answer.HasField("retentionPolicy")


async def test_a_stream_lives_is_sealed_and_goes(gateway: Gateway) -> None:
    status, deleted = pb.UpdateStreamStatus, pb.DeleteStreamStatus
    await create_scope(gateway)
    await create_stream(gateway)
    assert (await gateway.stub.checkStreamExists(INFO)).exists
    assert (await gateway.stub.deleteStream(INFO)).status == deleted.STREAM_NOT_SEALED
    assert (await gateway.stub.sealStream(INFO)).status == status.SUCCESS
    assert (await gateway.stub.sealStream(INFO)).status == status.SUCCESS
    update = pb.StreamConfig(streamInfo=INFO, scalingPolicy=ONE)
    assert (await gateway.stub.updateStream(update)).status == status.STREAM_SEALED
    assert (await gateway.stub.truncateStream(pb.StreamCut(streamInfo=INFO, cut={0: 1}))).status == status.STREAM_SEALED
    assert (await gateway.stub.deleteStream(INFO)).status == deleted.SUCCESS
    assert not (await gateway.stub.checkStreamExists(INFO)).exists
    assert (await gateway.stub.deleteStream(INFO)).status == deleted.STREAM_NOT_FOUND


async def test_changes_of_a_missing_stream_say_so(gateway: Gateway) -> None:
    missing = pb.UpdateStreamStatus.STREAM_NOT_FOUND
    assert (await gateway.stub.updateStream(pb.StreamConfig(streamInfo=INFO))).status == missing
    assert (await gateway.stub.truncateStream(pb.StreamCut(streamInfo=INFO, cut={0: 1}))).status == missing
    assert (await gateway.stub.sealStream(INFO)).status == missing


async def test_a_cut_moves_the_head(gateway: Gateway) -> None:
    status = pb.UpdateStreamStatus
    await create_scope(gateway)
    await create_stream(gateway)
    cut = pb.StreamCut(streamInfo=INFO, cut={0: 5, 1: 0})
    assert (await gateway.stub.truncateStream(cut)).status == status.SUCCESS
    assert (await gateway.stub.truncateStream(cut)).status == status.SUCCESS
    for bad in ({}, {0: 1, 1: 0}, {0: 6}, {7: 1}, {-1: 1}):
        answer = await gateway.stub.truncateStream(pb.StreamCut(streamInfo=INFO, cut=bad))
        assert answer.status == status.FAILURE, bad
    head = await gateway.stub.getSegments(pb.GetSegmentsRequest(streamInfo=INFO))
    assert {s.segmentId.segmentId: s.offset for s in head.segments} == {0: 5, 1: 0}


async def test_requests_go_to_their_topic_under_the_key_they_belong_to(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway)
    await gateway.stub.sealStream(INFO)
    assert [topic for topic, _ in gateway.sent] == [REQUESTS_STREAMS.name] * 3
    assert [(type(r.command), r.command.key) for _, r in gateway.sent] == [
        (CreateScope, "sc"),
        (CreateStream, "sc/st"),
        (SealStream, "sc/st"),
    ]
    assert len({r.id for _, r in gateway.sent}) == 3


@pytest.mark.parametrize("info", [pb.StreamInfo(scope="sc"), pb.StreamInfo(stream="st")])
async def test_empty_names_are_internal(gateway: Gateway, info: pb.StreamInfo) -> None:
    stub = gateway.stub
    calls = (
        stub.updateStream(pb.StreamConfig(streamInfo=info)),
        stub.truncateStream(pb.StreamCut(streamInfo=info)),
        stub.sealStream(info),
        stub.deleteStream(info),
        stub.checkStreamExists(info),
        stub.getStreamConfiguration(info),
    )
    for call in calls:
        assert await failure(call) == SYNC_INTERNAL
    assert await failure(stub.createStream(pb.StreamConfig(streamInfo=pb.StreamInfo(stream="st")))) == SYNC_INTERNAL
    bad = pb.StreamConfig(streamInfo=INFO, rolloverSizeBytes=-1)
    assert await failure(stub.createStream(bad)) == SYNC_INTERNAL
    assert await failure(stub.updateStream(bad)) == SYNC_INTERNAL
    assert gateway.sent == []
