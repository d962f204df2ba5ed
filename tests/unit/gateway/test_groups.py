"""RPCs on reader groups."""

from typing import Any

import grpc
import pytest
from unit.gateway.conftest import Gateway
from unit.gateway.support import (
    AUTOMATIC,
    GROUP_ID,
    MANUAL,
    NONE,
    SYNC_INTERNAL,
    create_group,
    create_scope,
    create_stream,
    cut_message,
    failure,
    group_info,
    group_message,
    subscribers_of,
)

from sluice.controller_api import controller_pb2 as pb
from sluice.domain.reader_group.state import ZERO_ID

CREATED, UPDATED = pb.CreateReaderGroupResponse, pb.UpdateReaderGroupResponse
CONFIGURED, DELETED = pb.ReaderGroupConfigResponse, pb.DeleteReaderGroupStatus
OTHER_ID = "00000000-0000-4000-8000-000000000001"


async def _prepare(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway)


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (group_message(), "SUCCESS"),
        (group_message("none"), "SUCCESS"),
        (group_message("none", retentionType=MANUAL), "FAILURE"),
        (group_message(scope="none"), "SCOPE_NOT_FOUND"),
        (group_message(name="a_b"), "INVALID_RG_NAME"),
        (group_message(name="_a"), "INVALID_RG_NAME"),
        (group_message(name=""), "INVALID_RG_NAME"),
        (group_message(name="x" * 251), "INVALID_RG_NAME"),
        (group_message(name="x" * 250), "SUCCESS"),
        (group_message(scope="none", name=""), "INVALID_RG_NAME"),
    ],
)
async def test_a_group_is_created_or_refused(
    gateway: Gateway, message: pb.ReaderGroupConfiguration, status: str
) -> None:
    await _prepare(gateway)
    answer = await gateway.stub.createReaderGroup(message)
    assert CREATED.Status.Name(answer.status) == status
    assert answer.HasField("config") == (status == "SUCCESS")


async def test_a_group_is_stored_as_sent_and_told_to_whoever_creates_it_again(gateway: Gateway) -> None:
    await _prepare(gateway)
    await create_stream(gateway, "other")
    sent = group_message(
        retentionType=AUTOMATIC,
        groupRefreshTimeMillis=1,
        automaticCheckpointIntervalMillis=-1,
        startingStreamCuts=[cut_message({0: 1, 1: 2}), cut_message({}, "other")],
        endingStreamCuts=[cut_message({0: 5, 1: -1}), cut_message({}, "other")],
    )
    assert (await gateway.stub.createReaderGroup(sent)).config == sent
    again = await gateway.stub.createReaderGroup(group_message(readerGroupId=OTHER_ID))
    assert again == CREATED(config=sent)
    assert await gateway.stub.getReaderGroupConfig(group_info(id="")) == CONFIGURED(config=sent)
    for stream, segments in (("_RGrg", 1), ("_MARK_RGrg", 1)):
        ranges = await gateway.stub.getCurrentSegments(pb.StreamInfo(scope="sc", stream=stream))
        assert len(ranges.segmentRanges) == segments


async def test_an_id_is_given_here_to_a_group_without_one(gateway: Gateway) -> None:
    await _prepare(gateway)
    ids = set()
    for name in ("a", "b"):
        config = (await gateway.stub.createReaderGroup(group_message(name=name, readerGroupId=ZERO_ID))).config
        assert config.generation == 0
        stored = (await gateway.stub.getReaderGroupConfig(group_info(name))).config
        assert stored.readerGroupId == config.readerGroupId
        ids.add(config.readerGroupId)
    assert len(ids - {ZERO_ID}) == 2


@pytest.mark.parametrize("id", [GROUP_ID, ZERO_ID])
async def test_a_group_begins_with_generation_0(gateway: Gateway, id: str) -> None:
    await _prepare(gateway)
    answer = await gateway.stub.createReaderGroup(group_message(readerGroupId=id, generation=7))
    assert answer.config.generation == 0


async def test_a_group_that_cannot_subscribe_leaves_nothing(gateway: Gateway) -> None:
    await _prepare(gateway)
    answer = await gateway.stub.createReaderGroup(group_message("st", "none", retentionType=MANUAL))
    assert answer == CREATED(status=CREATED.FAILURE)
    assert await subscribers_of(gateway) == []
    assert (await gateway.stub.getReaderGroupConfig(group_info())).status == CONFIGURED.RG_NOT_FOUND
    assert not (await gateway.stub.checkStreamExists(pb.StreamInfo(scope="sc", stream="_RGrg"))).exists
    await create_group(gateway, retentionType=MANUAL)


async def test_a_missing_group_has_a_status_and_an_empty_configuration(gateway: Gateway) -> None:
    await create_scope(gateway)
    answer = await gateway.stub.getReaderGroupConfig(group_info())
    assert answer == CONFIGURED(status=CONFIGURED.RG_NOT_FOUND, config=pb.ReaderGroupConfiguration())
    assert answer.HasField("config")
    updated = await gateway.stub.updateReaderGroup(group_message(generation=3))
    assert updated == UPDATED(status=UPDATED.RG_NOT_FOUND, generation=3)
    for id in (GROUP_ID, "", "no id"):
        assert (await gateway.stub.deleteReaderGroup(group_info(id=id))).status == DELETED.RG_NOT_FOUND


async def test_a_group_without_a_name_is_a_missing_one(gateway: Gateway) -> None:
    await create_scope(gateway)
    assert (await gateway.stub.getReaderGroupConfig(group_info(""))).status == CONFIGURED.RG_NOT_FOUND
    assert (await gateway.stub.updateReaderGroup(group_message(name=""))).status == UPDATED.RG_NOT_FOUND
    assert (await gateway.stub.deleteReaderGroup(group_info(""))).status == DELETED.RG_NOT_FOUND


async def test_in_a_missing_scope_no_group_is_found(gateway: Gateway) -> None:
    stub = gateway.stub
    calls: tuple[Any, ...] = (
        stub.getReaderGroupConfig(group_info()),
        stub.updateReaderGroup(group_message()),
        stub.deleteReaderGroup(group_info()),
    )
    for call in calls:
        assert await failure(call) == (grpc.StatusCode.NOT_FOUND, "scope sc does not exist")
    assert gateway.sent == []


@pytest.mark.parametrize(("before", "after"), [(NONE, NONE), (NONE, MANUAL), (MANUAL, AUTOMATIC), (AUTOMATIC, NONE)])
async def test_an_update_moves_subscriptions_and_generation(gateway: Gateway, before: int, after: int) -> None:
    await _prepare(gateway)
    await create_stream(gateway, "other")
    await create_group(gateway, "st", retentionType=before)
    assert await subscribers_of(gateway) == (["sc/rg"] if before else [])
    update = group_message("other", retentionType=after)
    assert await gateway.stub.updateReaderGroup(update) == UPDATED(generation=1)
    assert await subscribers_of(gateway) == []
    assert await subscribers_of(gateway, "other") == (["sc/rg"] if after else [])
    update.generation = 1
    assert (await gateway.stub.getReaderGroupConfig(group_info())).config == update
    assert await gateway.stub.updateReaderGroup(update) == UPDATED(generation=2)


@pytest.mark.parametrize("changed", [{"generation": 1}, {"generation": -1}, {"readerGroupId": OTHER_ID}])
async def test_an_update_of_another_generation_or_group_is_refused(gateway: Gateway, changed: dict[str, Any]) -> None:
    await _prepare(gateway)
    await create_group(gateway)
    message = group_message(**changed)
    refused = await gateway.stub.updateReaderGroup(message)
    assert refused == UPDATED(status=UPDATED.INVALID_CONFIG, generation=message.generation)


async def test_a_group_is_deleted_under_its_id_only(gateway: Gateway) -> None:
    await _prepare(gateway)
    await create_group(gateway, retentionType=MANUAL)
    assert (await gateway.stub.deleteReaderGroup(group_info(id=OTHER_ID))).status == DELETED.RG_NOT_FOUND
    for id in ("", "no id"):
        code, _ = await failure(gateway.stub.deleteReaderGroup(group_info(id=id)))
        assert code is grpc.StatusCode.UNKNOWN
    assert await subscribers_of(gateway) == ["sc/rg"]
    assert (await gateway.stub.deleteReaderGroup(group_info(id=GROUP_ID.upper()))).status == DELETED.SUCCESS
    assert (await gateway.stub.deleteReaderGroup(group_info())).status == DELETED.RG_NOT_FOUND
    assert await subscribers_of(gateway) == []
    assert not (await gateway.stub.checkStreamExists(pb.StreamInfo(scope="sc", stream="_RGrg"))).exists


async def test_a_request_travels_under_the_key_it_belongs_to(gateway: Gateway) -> None:
    await _prepare(gateway)
    await create_group(gateway)
    await gateway.stub.updateReaderGroup(group_message())
    await gateway.stub.deleteReaderGroup(group_info())
    keys = [request.command.key for _, request in gateway.sent[2:]]
    assert keys == ["sc/_RGrg"] * 3


async def test_what_cannot_be_a_request_is_internal(gateway: Gateway) -> None:
    await _prepare(gateway)
    sent = len(gateway.sent)
    # The configuration is looked at before the name is.
    bad = [group_message(scope=""), group_message(readerGroupId=""), group_message(name="a_b", retentionType=3)]
    for message in bad:
        assert await failure(gateway.stub.createReaderGroup(message)) == SYNC_INTERNAL
        assert await failure(gateway.stub.updateReaderGroup(message)) == SYNC_INTERNAL
    assert await failure(gateway.stub.getReaderGroupConfig(group_info(scope=""))) == SYNC_INTERNAL
    assert await failure(gateway.stub.deleteReaderGroup(group_info(scope=""))) == SYNC_INTERNAL
    assert len(gateway.sent) == sent
