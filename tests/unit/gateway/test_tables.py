"""RPCs on key-value tables, with their listing."""

import asyncio

import grpc
from unit.gateway.conftest import Gateway
from unit.gateway.support import create_scope, failure, table_message

from api_gateway.pravega.handlers.submitting import REASON
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import TableConfig
from sluice.domain.segment import Segment
from sluice.domain.table.events import TableCreationStarted

KV = pb.KeyValueTableInfo(scope="sc", kvtName="kv")
CREATED, CONFIGURED = pb.CreateKeyValueTableStatus, pb.KeyValueTableConfigResponse


async def test_a_table_of_keys_longer_than_a_store_takes_is_refused_with_the_limit(gateway: Gateway) -> None:
    await create_scope(gateway)
    call = gateway.stub.createKeyValueTable(table_message(primaryKeyLength=200, secondaryKeyLength=57))
    assert (await call).status == CREATED.FAILURE
    why = dict(await call.trailing_metadata())[REASON]
    assert why == "keys have at most 256 bytes, both parts together, not 257"
    longest = table_message(primaryKeyLength=200, secondaryKeyLength=56)
    assert (await gateway.stub.createKeyValueTable(longest)).status == CREATED.SUCCESS, "the name is free"


async def _begin(gateway: Gateway, name: str) -> None:
    segments = (Segment(0, 0.0, 1.0),)
    begun = TableCreationStarted(
        scope="sc", table=name, creation_id=name, config=TableConfig(1, 8), created_at=0, segments=segments
    )
    await gateway.system.append(f"sc/{name}", begun)


async def test_a_table_in_creation_has_no_segments_yet(gateway: Gateway) -> None:
    await create_scope(gateway)
    await gateway.system.stop_deciding()
    await _begin(gateway, "kv")
    code, details = await failure(gateway.stub.getCurrentSegmentsKeyValueTable(KV))
    assert code is grpc.StatusCode.INTERNAL
    assert "being created" in str(details)


async def test_tables_come_in_pages_of_a_thousand(gateway: Gateway) -> None:
    await create_scope(gateway)
    names = [f"t{i:04}" for i in range(1001)]
    await gateway.system.stop_deciding()
    await asyncio.gather(*(_begin(gateway, name) for name in reversed(names)))
    request = pb.KVTablesInScopeRequest(scope=pb.ScopeInfo(scope="sc"))
    pages = []
    for _ in range(3):
        answer = await gateway.stub.listKeyValueTablesInScope(request)
        assert {table.scope for table in answer.kvtables} <= {"sc"}
        pages.append([table.kvtName for table in answer.kvtables])
        request.continuationToken.CopyFrom(answer.continuationToken)
    assert pages == [names[:1000], names[1000:], []]
