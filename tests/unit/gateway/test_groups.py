"""RPCs on reader groups."""

from typing import Any

import grpc
import pytest
from unit.gateway.conftest import Gateway
from unit.gateway.support import (
    AUTOMATIC,
    MANUAL,
    NONE,
    create_group,
    create_scope,
    create_stream,
    cut_message,
    failure,
    group_info,
    group_message,
    repeated,
    subscribers_of,
)

from sluice.controller_api import controller_pb2 as pb
from sluice.domain.reader_group.state import ZERO_ID

CREATED, UPDATED = pb.CreateReaderGroupResponse, pb.UpdateReaderGroupResponse
CONFIGURED, DELETED = pb.ReaderGroupConfigResponse, pb.DeleteReaderGroupStatus


@pytest.mark.usefixtures("stream")
async def test_a_group_without_an_id_is_given_one_and_begins_with_generation_0(gateway: Gateway) -> None:
    ids = set()
    for name in ("a", "b"):
        sent = group_message(name=name, readerGroupId=ZERO_ID, generation=7)
        config = (await gateway.stub.createReaderGroup(sent)).config
        assert config.generation == 0
        assert await gateway.stub.getReaderGroupConfig(group_info(name)) == CONFIGURED(config=config)
        ids.add(config.readerGroupId)
    assert len(ids - {ZERO_ID}) == 2


async def test_a_group_without_a_name_is_a_missing_one(gateway: Gateway) -> None:
    await create_scope(gateway)
    assert (await gateway.stub.getReaderGroupConfig(group_info(""))).status == CONFIGURED.RG_NOT_FOUND
    assert (await gateway.stub.updateReaderGroup(group_message(name=""))).status == UPDATED.RG_NOT_FOUND
    assert (await gateway.stub.deleteReaderGroup(group_info(""))).status == DELETED.RG_NOT_FOUND


async def test_a_group_may_hold_back_the_stream_of_its_own_state(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_group(gateway, "_RGrg", retentionType=MANUAL)
    assert await subscribers_of(gateway, "_RGrg") == ["sc/rg"]
    assert await gateway.stub.updateReaderGroup(group_message("_RGrg")) == UPDATED(generation=1)
    assert await subscribers_of(gateway, "_RGrg") == []
    update = group_message("_RGrg", retentionType=AUTOMATIC, generation=1)
    assert await gateway.stub.updateReaderGroup(update) == UPDATED(generation=2)
    assert await subscribers_of(gateway, "_RGrg") == ["sc/rg"]
    assert (await gateway.stub.deleteReaderGroup(group_info())).status == DELETED.SUCCESS


async def test_a_creation_that_is_refused_leaves_the_streams_that_were_there_before(gateway: Gateway) -> None:
    await create_scope(gateway)
    before = gateway.system.store.segments.keys() | set()
    await gateway.stub.createReaderGroup(group_message("missing", retentionType=MANUAL))
    assert gateway.system.store.segments.keys() == before, "what it has created itself is gone"
    await create_stream(gateway, "_RGrg")
    answer = await gateway.stub.createReaderGroup(group_message("missing", retentionType=MANUAL))
    assert answer.status == CREATED.FAILURE
    stream = pb.StreamInfo(scope="sc", stream="_RGrg")
    assert (await gateway.stub.checkStreamExists(stream)).exists
    mine = {"sc/_RGrg/1.#epoch.0", "sc/_MARK_RGrg/1.#epoch.0"}
    assert gateway.system.store.segments.keys() - before == mine
    await create_stream(gateway, "missing")
    await create_group(gateway, "missing")
    assert (await gateway.stub.deleteReaderGroup(group_info())).status == DELETED.SUCCESS
    assert not (await gateway.stub.checkStreamExists(stream)).exists, "with a group that was there its state goes"


@pytest.mark.usefixtures("stream")
async def test_a_deletion_that_is_repeated_while_it_runs_succeeds(gateway: Gateway) -> None:
    await create_group(gateway)
    answer = await repeated(gateway, lambda: gateway.stub.deleteReaderGroup(group_info()))
    assert answer.status == DELETED.SUCCESS
    assert (await gateway.stub.deleteReaderGroup(group_info())).status == DELETED.RG_NOT_FOUND


@pytest.mark.usefixtures("stream")
async def test_a_group_with_another_id_is_a_missing_one(gateway: Gateway) -> None:
    await create_group(gateway)
    other = pb.ReaderGroupInfo(scope="sc", readerGroup="rg", readerGroupId=ZERO_ID)
    assert (await gateway.stub.deleteReaderGroup(other)).status == DELETED.RG_NOT_FOUND
    assert (await gateway.stub.getReaderGroupConfig(group_info())).status == CONFIGURED.SUCCESS


async def test_in_a_missing_scope_no_group_and_no_subscriber_is_found(gateway: Gateway) -> None:
    stub = gateway.stub
    calls: tuple[Any, ...] = (
        stub.getReaderGroupConfig(group_info()),
        stub.updateReaderGroup(group_message()),
        stub.deleteReaderGroup(group_info()),
        stub.listSubscribers(pb.StreamInfo(scope="sc", stream="st")),
        stub.updateSubscriberStreamCut(pb.SubscriberStreamCut(streamCut=cut_message({}), subscriber="sc/rg")),
    )
    for call in calls:
        assert await failure(call) == (grpc.StatusCode.NOT_FOUND, "scope sc does not exist")
    assert gateway.sent == []


@pytest.mark.usefixtures("stream")
@pytest.mark.parametrize(("before", "after"), [(NONE, NONE), (NONE, MANUAL), (MANUAL, AUTOMATIC), (AUTOMATIC, NONE)])
async def test_an_update_moves_subscriptions_and_generation(gateway: Gateway, before: int, after: int) -> None:
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
