"""Reader groups with their subscriptions, key-value tables, and scopes that go with all that is in them."""

from collections.abc import Iterator
from typing import Any

import pytest
from support.controller import Controller, controller, cut, info, unique
from support.wait import eventually

from harness import System
from sluice.controller_api import controller_pb2 as pb

pytestmark = pytest.mark.integration

ID = "0f0e0d0c-0b0a-4908-8706-050403020100"
MANUAL = 1


@pytest.fixture
def client(system: System) -> Iterator[Controller]:
    with controller(system.grpc_address) as client:
        yield client


@pytest.fixture
def scope(client: Controller) -> str:
    name = unique("sc")
    assert client.create_scope(name) == "SUCCESS"
    return name


def _group(scope: str, *streams: str, **more: Any) -> pb.ReaderGroupConfiguration:
    given = {
        "readerGroupName": "rg",
        "readerGroupId": ID,
        "groupRefreshTimeMillis": 3000,
        "automaticCheckpointIntervalMillis": 30_000,
        "maxOutstandingCheckpointRequest": 3,
        "startingStreamCuts": [cut(scope, stream, {}) for stream in streams],
        "endingStreamCuts": [cut(scope, stream, {}) for stream in streams],
    }
    return pb.ReaderGroupConfiguration(scope=scope, **{**given, **more})


def _subscribers(client: Controller, scope: str, stream: str) -> list[str]:
    return list(client.call("listSubscribers", info(scope, stream)).subscribers)


def _create_table(client: Controller, scope: str, table: str, partitions: int) -> str:
    config = pb.KeyValueTableConfig(
        scope=scope, kvtName=table, partitionCount=partitions, primaryKeyLength=8, secondaryKeyLength=4
    )
    return client.status("createKeyValueTable", config)


def _tables(client: Controller, scope: str) -> list[str]:
    """All of the scope's tables, page by page."""
    request = pb.KVTablesInScopeRequest(scope=pb.ScopeInfo(scope=scope))
    names: list[str] = []
    while (answer := client.call("listKeyValueTablesInScope", request)).kvtables:
        names += [table.kvtName for table in answer.kvtables]
        request.continuationToken.CopyFrom(answer.continuationToken)
    return names


def test_a_reader_group_subscribes_reports_moves_on_and_goes(client: Controller, scope: str) -> None:
    for stream in ("a", "b"):
        assert client.create_stream(scope, stream, 2) == "SUCCESS"
    created = client.call("createReaderGroup", _group(scope, "a", retentionType=MANUAL))
    assert created.status == pb.CreateReaderGroupResponse.SUCCESS
    assert created.config == _group(scope, "a", retentionType=MANUAL)
    # Whoever creates it again is told what there is.
    assert client.call("createReaderGroup", _group(scope, "b")).config == created.config
    assert {"_RGrg", "_MARK_RGrg"} <= set(client.streams(scope))
    assert len(client.segments(scope, "_RGrg")) == 1
    me = f"{scope}/rg"
    assert (_subscribers(client, scope, "a"), _subscribers(client, scope, "b")) == ([me], [])

    here = pb.SubscriberStreamCut(subscriber=me, readerGroupId=ID, streamCut=cut(scope, "a", {0: 5, 1: 0}))
    assert client.status("updateSubscriberStreamCut", here) == "SUCCESS"
    behind = pb.SubscriberStreamCut(subscriber=me, readerGroupId=ID, streamCut=cut(scope, "a", {0: 4, 1: 0}))
    assert client.status("updateSubscriberStreamCut", behind) == "STREAM_CUT_NOT_VALID"

    moved = client.call("updateReaderGroup", _group(scope, "b", retentionType=MANUAL))
    assert (moved.status, moved.generation) == (pb.UpdateReaderGroupResponse.SUCCESS, 1)
    assert client.status("updateReaderGroup", _group(scope, "b", retentionType=MANUAL)) == "INVALID_CONFIG"
    assert (_subscribers(client, scope, "a"), _subscribers(client, scope, "b")) == ([], [me])
    rg = pb.ReaderGroupInfo(scope=scope, readerGroup="rg")
    assert client.call("getReaderGroupConfig", rg).config == _group(scope, "b", retentionType=MANUAL, generation=1)

    gone = pb.ReaderGroupInfo(scope=scope, readerGroup="rg", readerGroupId=ID)
    assert client.status("deleteReaderGroup", gone) == "SUCCESS"
    assert client.status("deleteReaderGroup", gone) == "RG_NOT_FOUND"
    assert client.status("getReaderGroupConfig", rg) == "RG_NOT_FOUND"
    assert _subscribers(client, scope, "b") == []
    assert client.streams(scope) == ["_MARKa", "_MARKb", "a", "b"]


def test_a_group_that_cannot_subscribe_is_refused_and_leaves_nothing(client: Controller, scope: str) -> None:
    client.create_stream(scope, "a")
    assert client.status("createReaderGroup", _group(scope, "a", "none", retentionType=MANUAL)) == "FAILURE"
    rg = pb.ReaderGroupInfo(scope=scope, readerGroup="rg")
    eventually(lambda: client.status("getReaderGroupConfig", rg) == "RG_NOT_FOUND", 20, "the group is undone")
    assert _subscribers(client, scope, "a") == []
    assert client.streams(scope) == ["_MARKa", "a"]
    assert client.status("createReaderGroup", _group(scope, "a", retentionType=MANUAL)) == "SUCCESS"


def test_a_table_is_made_found_and_dropped(client: Controller, scope: str) -> None:
    assert _create_table(client, scope, "kv", 3) == "SUCCESS"
    assert _create_table(client, scope, "kv", 1) == "TABLE_EXISTS"
    assert _tables(client, scope) == ["kv"]
    kv = pb.KeyValueTableInfo(scope=scope, kvtName="kv")
    config = client.call("getKeyValueTableConfiguration", kv).config
    assert (config.partitionCount, config.primaryKeyLength, config.secondaryKeyLength) == (3, 8, 4)
    ranges = client.call("getCurrentSegmentsKeyValueTable", kv).segmentRanges
    assert [(r.segmentId.segmentId, r.segmentId.streamInfo.stream) for r in ranges] == [(0, "kv"), (1, "kv"), (2, "kv")]
    assert (ranges[0].minKey, ranges[-1].maxKey) == (0.0, 1.0)
    assert all(client.store_of(scope, "kv_kvtable", r.segmentId.segmentId) for r in ranges)
    assert client.status("deleteScope", pb.ScopeInfo(scope=scope)) == "SCOPE_NOT_EMPTY"
    assert client.status("deleteKeyValueTable", kv) == "SUCCESS"
    assert client.status("deleteKeyValueTable", kv) == "TABLE_NOT_FOUND"
    assert client.status("getCurrentSegmentsKeyValueTable", kv) == "NOT_FOUND"
    assert _tables(client, scope) == []
    assert client.status("deleteScope", pb.ScopeInfo(scope=scope)) == "SUCCESS"


def test_a_scope_goes_with_its_streams_groups_and_tables(client: Controller, scope: str) -> None:
    for stream in ("a", "b", "sealed"):
        client.create_stream(scope, stream, 2)
    assert client.seal(scope, "sealed") == "SUCCESS"
    assert client.status("createReaderGroup", _group(scope, "a", "b", retentionType=MANUAL)) == "SUCCESS"
    assert _create_table(client, scope, "kv", 2) == "SUCCESS"
    whole = pb.ScopeInfo(scope=scope)
    assert client.status("deleteScopeRecursive", whole, 60) == "SUCCESS"
    assert client.status("deleteScopeRecursive", whole, 60) == "SUCCESS"
    assert not client.call("checkScopeExists", whole).exists
    assert client.status("deleteScope", whole) == "SCOPE_NOT_FOUND"
    # The names are free again.
    assert client.create_scope(scope) == "SUCCESS"
    assert (client.streams(scope), _tables(client, scope)) == ([], [])
    assert client.create_stream(scope, "a") == "SUCCESS"
    assert _subscribers(client, scope, "a") == []
    assert [segment for segment, _, _ in client.segments(scope, "a")] == [2]


def test_writers_tell_their_time_and_leave(client: Controller, scope: str) -> None:
    client.create_stream(scope, "a", 2)

    def note(time: int, offset: int, stream: str = "a") -> str:
        request = pb.TimestampFromWriter(writer="w", timestamp=time, position=cut(scope, stream, {0: offset}))
        try:
            answer = client.call("noteTimestampFromWriter", request)
        except Exception as error:  # noqa: BLE001 - the code is what counts
            return str(error.code().name)  # type: ignore[attr-defined]
        return str(pb.TimestampResponse.Status.Name(answer.result))

    assert note(100, 10) == "SUCCESS"
    assert note(99, 10) == "INVALID_TIME"
    assert note(100, 9) == "INVALID_POSITION"
    assert note(1, 1, "none") == "NOT_FOUND"
    leaving = pb.RemoveWriterRequest(writer="w", stream=info(scope, "a"))
    assert client.call("removeWriter", leaving).result == pb.RemoveWriterResponse.SUCCESS
    unknown = pb.RemoveWriterRequest(writer="x", stream=info(scope, "a"))
    assert client.call("removeWriter", unknown).result == pb.RemoveWriterResponse.UNKNOWN_WRITER


def test_somebody_sees_to_the_streams(client: Controller) -> None:
    request = pb.ControllerToBucketMappingRequest(serviceType="WatermarkingService")
    eventually(lambda: client.call("getControllerToBucketMapping", request).mapping, 20, "a worker is known")
    assert {tuple(b.id) for b in client.call("getControllerToBucketMapping", request).mapping.values()} == {(0,)}
