"""RPCs on reader groups."""

import pytest
from unit.gateway.conftest import Gateway
from unit.gateway.support import (
    AUTOMATIC,
    MANUAL,
    create_group,
    create_scope,
    create_stream,
    group_info,
    group_message,
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
