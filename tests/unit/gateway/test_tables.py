"""RPCs on key-value tables, with their listing."""

import asyncio
from typing import Any

import grpc
import pytest
from unit.gateway.conftest import Gateway
from unit.gateway.support import (
    SYNC_INTERNAL,
    create_scope,
    create_stream,
    create_table,
    failure,
    table_message,
)

from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import MAX_SEGMENTS, TableConfig
from sluice.domain.segment import Segment
from sluice.domain.table.events import TableCreationStarted

KV = pb.KeyValueTableInfo(scope="sc", kvtName="kv")
CREATED, CONFIGURED, DELETED = pb.CreateKeyValueTableStatus, pb.KeyValueTableConfigResponse, pb.DeleteKVTableStatus
LISTED = pb.KVTablesInScopeResponse


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (table_message(), "SUCCESS"),
        (table_message("there"), "TABLE_EXISTS"),
        (table_message("stream"), "SUCCESS"),
        (table_message(scope="none"), "SCOPE_NOT_FOUND"),
        (table_message("a_b"), "INVALID_TABLE_NAME"),
        (table_message("_a"), "INVALID_TABLE_NAME"),
        (table_message(""), "INVALID_TABLE_NAME"),
        (table_message("x" * 251), "INVALID_TABLE_NAME"),
        (table_message("x" * 250), "SUCCESS"),
        (table_message("", scope="none"), "INVALID_TABLE_NAME"),
        (table_message(partitionCount=MAX_SEGMENTS + 1), "FAILURE"),
    ],
)
async def test_a_table_is_created_or_refused(gateway: Gateway, message: pb.KeyValueTableConfig, status: str) -> None:
    await create_scope(gateway)
    await create_stream(gateway, "stream")
    await create_table(gateway, "there")
    answer = await gateway.stub.createKeyValueTable(message)
    assert CREATED.Status.Name(answer.status) == status


async def test_a_table_is_stored_as_sent(gateway: Gateway) -> None:
    await create_scope(gateway)
    sent = table_message(secondaryKeyLength=3, rolloverSizeBytes=1 << 40)
    await gateway.stub.createKeyValueTable(sent)
    assert await gateway.stub.getKeyValueTableConfiguration(KV) == CONFIGURED(config=sent)


async def test_partitions_tile_the_key_space_under_the_plain_name(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_table(gateway, partitionCount=49)
    ranges = (await gateway.stub.getCurrentSegmentsKeyValueTable(KV)).segmentRanges
    assert [r.segmentId.segmentId for r in ranges] == list(range(49))
    assert {(r.segmentId.streamInfo.scope, r.segmentId.streamInfo.stream) for r in ranges} == {("sc", "kv")}
    assert (ranges[0].minKey, ranges[-1].maxKey) == (0.0, 1.0)
    assert [r.minKey for r in ranges][1:] == [r.maxKey for r in ranges][:-1]


async def test_a_table_goes_and_its_successor_has_other_segments(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_table(gateway)
    assert (await gateway.stub.deleteScope(pb.ScopeInfo(scope="sc"))).status == pb.DeleteScopeStatus.SCOPE_NOT_EMPTY
    assert (await gateway.stub.deleteKeyValueTable(KV)).status == DELETED.SUCCESS
    assert (await gateway.stub.deleteKeyValueTable(KV)).status == DELETED.TABLE_NOT_FOUND
    await create_table(gateway)
    ranges = (await gateway.stub.getCurrentSegmentsKeyValueTable(KV)).segmentRanges
    assert [r.segmentId.segmentId for r in ranges] == [2, 3]


@pytest.mark.parametrize("with_scope", [True, False])
async def test_a_missing_table_says_so(gateway: Gateway, with_scope: bool) -> None:
    if with_scope:
        await create_scope(gateway)
        await create_stream(gateway, "kv")
    missing = CONFIGURED(status=CONFIGURED.TABLE_NOT_FOUND)
    assert await gateway.stub.getKeyValueTableConfiguration(KV) == missing
    assert (await gateway.stub.deleteKeyValueTable(KV)).status == DELETED.TABLE_NOT_FOUND
    not_found = (grpc.StatusCode.NOT_FOUND, "key-value table sc/kv does not exist")
    assert await failure(gateway.stub.getCurrentSegmentsKeyValueTable(KV)) == not_found


async def _begin(gateway: Gateway, name: str) -> None:
    begun = TableCreationStarted(
        scope="sc",
        table=name,
        creation_id=name,
        config=TableConfig(1, 8),
        created_at=0,
        segments=(Segment(0, 0.0, 1.0),),
    )
    await gateway.system.append(f"sc/{name}", begun)


async def test_a_table_in_creation_has_no_segments_yet(gateway: Gateway) -> None:
    await create_scope(gateway)
    await gateway.system.stop_deciding()
    await _begin(gateway, "kv")
    code, details = await failure(gateway.stub.getCurrentSegmentsKeyValueTable(KV))
    assert code is grpc.StatusCode.INTERNAL
    assert "being created" in str(details)


async def _pages(gateway: Gateway) -> list[list[str]]:
    request = pb.KVTablesInScopeRequest(scope=pb.ScopeInfo(scope="sc"))
    pages = []
    while True:
        answer = await gateway.stub.listKeyValueTablesInScope(request)
        assert answer.status == LISTED.SUCCESS
        assert {table.scope for table in answer.kvtables} <= {"sc"}
        pages.append([table.kvtName for table in answer.kvtables])
        if not answer.kvtables:
            assert answer.continuationToken == request.continuationToken
            return pages
        assert answer.continuationToken.token not in ("", request.continuationToken.token)
        request.continuationToken.CopyFrom(answer.continuationToken)


@pytest.mark.parametrize(("count", "sizes"), [(0, [0]), (1, [1, 0]), (1000, [1000, 0]), (1001, [1000, 1, 0])])
async def test_tables_come_in_pages_of_a_thousand(gateway: Gateway, count: int, sizes: list[int]) -> None:
    await create_scope(gateway)
    names = [f"t{i:04}" for i in range(count)]
    await gateway.system.stop_deciding()
    await asyncio.gather(*(_begin(gateway, name) for name in reversed(names)))
    pages = await _pages(gateway)
    assert [len(page) for page in pages] == sizes
    assert [name for page in pages for name in page] == names


async def test_only_tables_are_listed(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway, "stream")
    await create_table(gateway, "there")
    assert await _pages(gateway) == [["there"], []]


async def test_a_listing_of_no_scope_says_so_without_a_token(gateway: Gateway) -> None:
    answer = await gateway.stub.listKeyValueTablesInScope(pb.KVTablesInScopeRequest(scope=pb.ScopeInfo(scope="none")))
    assert answer == LISTED(status=LISTED.SCOPE_NOT_FOUND)


async def test_what_cannot_be_a_request_is_internal(gateway: Gateway) -> None:
    await create_scope(gateway)
    stub, sent = gateway.stub, len(gateway.sent)
    bad = pb.ContinuationToken(token="not base64")
    calls: list[Any] = [
        stub.createKeyValueTable(table_message(scope="")),
        # The configuration is looked at before the name is.
        stub.createKeyValueTable(table_message("a_b", partitionCount=0)),
        stub.listKeyValueTablesInScope(pb.KVTablesInScopeRequest()),
        stub.listKeyValueTablesInScope(
            pb.KVTablesInScopeRequest(scope=pb.ScopeInfo(scope="sc"), continuationToken=bad)
        ),
    ]
    for info in (pb.KeyValueTableInfo(), pb.KeyValueTableInfo(scope="sc"), pb.KeyValueTableInfo(kvtName="kv")):
        calls += [
            stub.getKeyValueTableConfiguration(info),
            stub.getCurrentSegmentsKeyValueTable(info),
            stub.deleteKeyValueTable(info),
        ]
    for call in calls:
        assert await failure(call) == SYNC_INTERNAL
    assert len(gateway.sent) == sent
