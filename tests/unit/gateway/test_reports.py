"""What readers and writers report: subscribers' cuts, writers' times."""

from typing import Any

import grpc
import pytest
from unit.gateway.conftest import Gateway
from unit.gateway.support import (
    GROUP_ID,
    MANUAL,
    SYNC_INTERNAL,
    create_group,
    create_scope,
    create_stream,
    cut_message,
    failure,
    group_message,
    subscribers_of,
)

from sluice.controller_api import controller_pb2 as pb

INFO = pb.StreamInfo(scope="sc", stream="st")
OTHER_ID = "00000000-0000-4000-8000-000000000001"
FIVE = {0: 5, 1: 5}


def _cut(cut: dict[int, int], **changed: Any) -> pb.SubscriberStreamCut:
    stream = changed.pop("stream", "st")
    given = {"subscriber": "sc/rg", "readerGroupId": GROUP_ID, **changed}
    return pb.SubscriberStreamCut(streamCut=cut_message(cut, stream), **given)


async def _subscribe(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway)
    await create_group(gateway, retentionType=MANUAL)


async def test_subscribers_are_listed_in_order(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway)
    assert await subscribers_of(gateway) == []
    for name in ("b", "a"):
        await create_group(gateway, name=name, retentionType=MANUAL)
    await create_group(gateway, name="not")
    assert await subscribers_of(gateway) == ["sc/a", "sc/b"]
    answer = await gateway.stub.listSubscribers(pb.StreamInfo(scope="sc", stream="none"))
    assert answer == pb.SubscribersResponse(status=pb.SubscribersResponse.STREAM_NOT_FOUND)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (_cut(FIVE), "SUCCESS"),
        (_cut({0: 6, 1: 5}), "SUCCESS"),
        (_cut({0: 4, 1: 5}), "STREAM_CUT_NOT_VALID"),
        (_cut({0: 6}), "STREAM_CUT_NOT_VALID"),
        (_cut({0: 6, 1: -1}), "STREAM_CUT_NOT_VALID"),
        (_cut({7: 6}), "STREAM_CUT_NOT_VALID"),
        (_cut({0: -1, 1: -1}), "STREAM_CUT_NOT_VALID"),
        (_cut(FIVE, stream="none"), "STREAM_NOT_FOUND"),
        (_cut(FIVE, subscriber="sc/other"), "SUBSCRIBER_NOT_FOUND"),
        (_cut(FIVE, subscriber="rg"), "SUBSCRIBER_NOT_FOUND"),
        (_cut(FIVE, subscriber=""), "SUBSCRIBER_NOT_FOUND"),
        (_cut(FIVE, readerGroupId=OTHER_ID), "SUBSCRIBER_NOT_FOUND"),
        (_cut(FIVE, readerGroupId=GROUP_ID.upper()), "SUCCESS"),
        (_cut(FIVE, generation=1), "GENERATION_MISMATCH"),
        (_cut(FIVE, generation=-1), "GENERATION_MISMATCH"),
        # What is malformed matters only behind what is not there.
        (_cut({}, stream="none", readerGroupId="x"), "STREAM_NOT_FOUND"),
        (_cut({}, subscriber="sc/other", readerGroupId="x"), "SUBSCRIBER_NOT_FOUND"),
        (_cut({}, readerGroupId=OTHER_ID), "SUBSCRIBER_NOT_FOUND"),
        (_cut({}, generation=1), "GENERATION_MISMATCH"),
    ],
)
async def test_a_cut_is_taken_or_refused(gateway: Gateway, request_: pb.SubscriberStreamCut, status: str) -> None:
    await _subscribe(gateway)
    assert (await gateway.stub.updateSubscriberStreamCut(_cut(FIVE))).status == pb.UpdateSubscriberStatus.SUCCESS
    answer = await gateway.stub.updateSubscriberStreamCut(request_)
    assert pb.UpdateSubscriberStatus.Status.Name(answer.status) == status


@pytest.mark.parametrize("request_", [_cut({}), _cut(FIVE, readerGroupId=""), _cut(FIVE, readerGroupId="x")])
async def test_a_malformed_cut_or_id_is_unknown(gateway: Gateway, request_: pb.SubscriberStreamCut) -> None:
    await _subscribe(gateway)
    code, _ = await failure(gateway.stub.updateSubscriberStreamCut(request_))
    assert code is grpc.StatusCode.UNKNOWN


async def test_after_an_update_cuts_come_with_the_new_generation(gateway: Gateway) -> None:
    await _subscribe(gateway)
    await gateway.stub.updateReaderGroup(group_message(retentionType=MANUAL))
    status = pb.UpdateSubscriberStatus
    assert (await gateway.stub.updateSubscriberStreamCut(_cut(FIVE))).status == status.GENERATION_MISMATCH
    assert (await gateway.stub.updateSubscriberStreamCut(_cut(FIVE, generation=1))).status == status.SUCCESS


async def test_in_a_missing_scope_no_subscriber_is_found(gateway: Gateway) -> None:
    not_found = (grpc.StatusCode.NOT_FOUND, "scope sc does not exist")
    assert await failure(gateway.stub.listSubscribers(INFO)) == not_found
    assert await failure(gateway.stub.updateSubscriberStreamCut(_cut(FIVE))) == not_found
    assert gateway.sent == []


def _time(time: int, position: dict[int, int], writer: str = "w", stream: str = "st") -> pb.TimestampFromWriter:
    return pb.TimestampFromWriter(writer=writer, timestamp=time, position=cut_message(position, stream))


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (_time(10, {0: 5}), "SUCCESS"),
        (_time(11, {0: 5, 1: 0}), "SUCCESS"),
        (_time(9, {0: 6}), "INVALID_TIME"),
        (_time(10, {0: 4}), "INVALID_POSITION"),
        (_time(9, {0: 4}), "INVALID_TIME"),
        (_time(10, {1: 0}), "SUCCESS"),
        (_time(10, {}), "SUCCESS"),
        (_time(-(2**63), {}, writer="other"), "SUCCESS"),
        (_time(2**63 - 1, {0: 5}), "SUCCESS"),
    ],
)
async def test_a_time_is_noted_or_refused(gateway: Gateway, request_: pb.TimestampFromWriter, status: str) -> None:
    await create_scope(gateway)
    await create_stream(gateway)
    first = await gateway.stub.noteTimestampFromWriter(_time(10, {0: 5}))
    assert first.result == pb.TimestampResponse.SUCCESS
    answer = await gateway.stub.noteTimestampFromWriter(request_)
    assert pb.TimestampResponse.Status.Name(answer.result) == status


async def test_a_time_for_no_stream_is_not_found(gateway: Gateway) -> None:
    code, _ = await failure(gateway.stub.noteTimestampFromWriter(_time(1, {0: 1})))
    assert code is grpc.StatusCode.NOT_FOUND


async def test_a_writer_leaves_and_may_come_back(gateway: Gateway) -> None:
    status = pb.RemoveWriterResponse
    leaving = pb.RemoveWriterRequest(writer="w", stream=INFO)
    assert (await gateway.stub.removeWriter(leaving)).result == status.UNKNOWN_WRITER
    await create_scope(gateway)
    await create_stream(gateway)
    assert (await gateway.stub.removeWriter(leaving)).result == status.UNKNOWN_WRITER
    await gateway.stub.noteTimestampFromWriter(_time(10, {0: 5}))
    assert (await gateway.stub.removeWriter(leaving)).result == status.SUCCESS
    assert (await gateway.stub.removeWriter(leaving)).result == status.SUCCESS
    assert (await gateway.stub.noteTimestampFromWriter(_time(11, {0: 5}))).result == pb.TimestampResponse.SUCCESS


@pytest.mark.parametrize("info", [pb.StreamInfo(), pb.StreamInfo(scope="sc"), pb.StreamInfo(stream="st")])
async def test_what_cannot_be_a_request_is_internal(gateway: Gateway, info: pb.StreamInfo) -> None:
    stub, nowhere = gateway.stub, pb.StreamCut(streamInfo=info, cut=FIVE)
    calls: tuple[Any, ...] = (
        stub.listSubscribers(info),
        stub.updateSubscriberStreamCut(pb.SubscriberStreamCut(subscriber="sc/rg", streamCut=nowhere)),
        stub.noteTimestampFromWriter(pb.TimestampFromWriter(writer="w", position=nowhere)),
        stub.removeWriter(pb.RemoveWriterRequest(writer="w", stream=info)),
    )
    for call in calls:
        assert await failure(call) == SYNC_INTERNAL
    assert gateway.sent == []
