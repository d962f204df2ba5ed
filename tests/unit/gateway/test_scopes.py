"""RPCs on scopes, and the listings with their pages."""

import asyncio
from typing import Any

import grpc
import pytest
from unit.gateway.conftest import Gateway
from unit.gateway.support import (
    MANUAL,
    SYNC_INTERNAL,
    create_group,
    create_scope,
    create_stream,
    create_table,
    failure,
    group_info,
    group_message,
    stream_message,
    table_message,
)

from api_gateway.convert import token_of
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import StreamConfig
from sluice.domain.decision import View
from sluice.domain.scope.events import ScopeCreated, ScopeDeleted
from sluice.domain.scope.state import find_scope
from sluice.domain.segment import Segment
from sluice.domain.stream.events import StreamCreationStarted, StreamDeleted
from sluice.pravega.memory import Moment

SCOPES = pb.CreateScopeStatus


async def test_a_scope_is_created_once(gateway: Gateway) -> None:
    scope = pb.ScopeInfo(scope="sc")
    assert not (await gateway.stub.checkScopeExists(scope)).exists
    assert (await gateway.stub.createScope(scope)).status == SCOPES.SUCCESS
    assert (await gateway.stub.checkScopeExists(scope)).exists
    assert (await gateway.stub.createScope(scope)).status == SCOPES.SCOPE_EXISTS


async def test_a_scope_with_a_bad_name_is_refused_by_status(gateway: Gateway) -> None:
    for name in ("my_scope", "_", "a/b", "ä", "x" * 256):
        assert (await gateway.stub.createScope(pb.ScopeInfo(scope=name))).status == SCOPES.INVALID_SCOPE_NAME, name


async def test_only_an_empty_scope_is_deleted(gateway: Gateway) -> None:
    scope, status = pb.ScopeInfo(scope="sc"), pb.DeleteScopeStatus
    assert (await gateway.stub.deleteScope(scope)).status == status.SCOPE_NOT_FOUND
    await create_scope(gateway)
    await create_stream(gateway)
    assert (await gateway.stub.deleteScope(scope)).status == status.SCOPE_NOT_EMPTY
    await gateway.stub.sealStream(pb.StreamInfo(scope="sc", stream="st"))
    await gateway.stub.deleteStream(pb.StreamInfo(scope="sc", stream="st"))
    assert (await gateway.stub.deleteScope(scope)).status == status.SUCCESS
    assert not (await gateway.stub.checkScopeExists(scope)).exists


async def test_a_scope_goes_with_all_that_is_in_it(gateway: Gateway) -> None:
    scope, success = pb.ScopeInfo(scope="sc"), pb.DeleteScopeStatus.SUCCESS
    assert (await gateway.stub.deleteScopeRecursive(scope)).status == success
    await create_scope(gateway)
    for name in ("a", "b"):
        await create_stream(gateway, name)
    await gateway.stub.sealStream(pb.StreamInfo(scope="sc", stream="b"))
    await create_group(gateway, "a", retentionType=MANUAL)
    await create_table(gateway)
    assert (await gateway.stub.deleteScopeRecursive(scope)).status == success
    assert not (await gateway.stub.checkScopeExists(scope)).exists
    assert not (await gateway.stub.checkStreamExists(pb.StreamInfo(scope="sc", stream="a"))).exists
    code, _ = await failure(gateway.stub.getReaderGroupConfig(group_info()))
    assert code is grpc.StatusCode.NOT_FOUND
    table = pb.KeyValueTableInfo(scope="sc", kvtName="kv")
    missing = pb.KeyValueTableConfigResponse.TABLE_NOT_FOUND
    assert (await gateway.stub.getKeyValueTableConfiguration(table)).status == missing
    assert (await gateway.stub.deleteScopeRecursive(scope)).status == success


@pytest.mark.parametrize(
    ("rpc", "message", "status"),
    [
        ("createStream", stream_message(), "SCOPE_NOT_FOUND"),
        ("createReaderGroup", group_message(), "SCOPE_NOT_FOUND"),
        ("createKeyValueTable", table_message(), "SCOPE_NOT_FOUND"),
    ],
)
async def test_a_scope_that_is_going_takes_nothing_new(gateway: Gateway, rpc: str, message: Any, status: str) -> None:
    await create_scope(gateway)
    await create_stream(gateway, "held")
    gateway.system.store.fault = _never_answered
    deleting = gateway.stub.deleteScopeRecursive(pb.ScopeInfo(scope="sc"))
    await gateway.system.journal.until("sc", _is_going)
    answer = await getattr(gateway.stub, rpc)(message)
    assert type(answer).Status.Name(answer.status) == status
    deleting.cancel()


async def _never_answered(_moment: Moment, _request: str, _segment: str) -> None:
    await asyncio.Event().wait()


def _is_going(view: View) -> bool:
    scope = find_scope(view, "sc")
    return scope is not None and scope.workflow is not None


async def test_scopes_are_listed_in_order_and_the_end_is_an_empty_page(gateway: Gateway) -> None:
    for name in ("b", "a"):
        await create_scope(gateway, name)
    first = await gateway.stub.listScopes(pb.ScopesRequest())
    assert list(first.scopes) == ["_system", "a", "b"]
    assert first.continuationToken.token
    last = await gateway.stub.listScopes(pb.ScopesRequest(continuationToken=first.continuationToken))
    assert list(last.scopes) == []
    assert last.continuationToken == first.continuationToken


async def _fill_scope(gateway: Gateway, count: int) -> list[str]:
    names = [f"s{i:04}" for i in range(count)]
    await gateway.system.stop_deciding()
    await gateway.system.append("sc", ScopeCreated(scope="sc", creation_id="c", at=0))
    await asyncio.gather(*(_begin(gateway, name) for name in names))
    return names


async def _begin(gateway: Gateway, name: str) -> None:
    begun = StreamCreationStarted(
        scope="sc",
        stream=name,
        creation_id=name,
        config=StreamConfig(),
        created_at=0,
        segments=(Segment(0, 0.0, 1.0),),
    )
    await gateway.system.append(f"sc/{name}", begun)


async def _pages(gateway: Gateway, token: str = "") -> list[list[str]]:
    pages = []
    while True:
        request = pb.StreamsInScopeRequest(scope=pb.ScopeInfo(scope="sc"))
        request.continuationToken.token = token
        answer = await gateway.stub.listStreamsInScope(request)
        assert answer.status == pb.StreamsInScopeResponse.SUCCESS
        assert answer.HasField("continuationToken")
        pages.append([s.stream for s in answer.streams])
        if not answer.streams:
            return pages
        assert answer.continuationToken.token not in ("", token)
        token = answer.continuationToken.token


@pytest.mark.parametrize(("count", "sizes"), [(0, [0]), (1, [1, 0]), (1000, [1000, 0]), (1001, [1000, 1, 0])])
async def test_streams_come_in_pages_of_a_thousand(gateway: Gateway, count: int, sizes: list[int]) -> None:
    names = await _fill_scope(gateway, count)
    pages = await _pages(gateway)
    assert [len(page) for page in pages] == sizes
    assert [name for page in pages for name in page] == names


async def test_a_scope_that_comes_again_is_listed_anew(gateway: Gateway) -> None:
    names = await _fill_scope(gateway, 3)
    await gateway.system.append(f"sc/{names[0]}", StreamDeleted(scope="sc", stream=names[0], next_number=1))
    assert await _pages(gateway) == [names[1:], []]
    for name in names[1:]:
        await gateway.system.append(f"sc/{name}", StreamDeleted(scope="sc", stream=name, next_number=1))
    await gateway.system.append("sc", ScopeDeleted(scope="sc"))
    assert list((await gateway.stub.listScopes(pb.ScopesRequest())).scopes) == ["_system"]
    await _fill_scope(gateway, 1)
    assert await _pages(gateway) == [["s0000"], []]


async def test_a_listing_goes_on_behind_its_token_even_if_that_stream_is_gone(gateway: Gateway) -> None:
    await _fill_scope(gateway, 3)
    assert await _pages(gateway, token_of("s0000-gone")) == [["s0001", "s0002"], []]


async def test_a_listing_of_no_scope_says_so_without_a_token(gateway: Gateway) -> None:
    answer = await gateway.stub.listStreamsInScope(pb.StreamsInScopeRequest(scope=pb.ScopeInfo(scope="none")))
    assert answer == pb.StreamsInScopeResponse(status=pb.StreamsInScopeResponse.SCOPE_NOT_FOUND)


async def test_streams_are_listed_by_tag_without_internal_ones(gateway: Gateway) -> None:
    await create_scope(gateway)
    for name, tag in (("a", "red"), ("b", "Red"), ("c", "red"), ("_d", "red"), ("e", "")):
        await create_stream(gateway, name, tag=tag)
    request = pb.StreamsInScopeWithTagRequest(scope=pb.ScopeInfo(scope="sc"), tag="red")
    answer = await gateway.stub.listStreamsInScopeForTag(request)
    assert [s.stream for s in answer.streams] == ["a", "c"]
    request.continuationToken.CopyFrom(answer.continuationToken)
    assert list((await gateway.stub.listStreamsInScopeForTag(request)).streams) == []


async def test_what_cannot_be_a_request_is_internal(gateway: Gateway) -> None:
    bad = pb.ContinuationToken(token="not base64")
    stub, none = gateway.stub, pb.ScopeInfo()
    sc = pb.ScopeInfo(scope="sc")
    assert await failure(stub.createScope(none)) == SYNC_INTERNAL
    assert await failure(stub.deleteScope(none)) == SYNC_INTERNAL
    assert await failure(stub.deleteScopeRecursive(none)) == SYNC_INTERNAL
    assert await failure(stub.checkScopeExists(none)) == SYNC_INTERNAL
    assert await failure(stub.listStreamsInScope(pb.StreamsInScopeRequest(scope=none))) == SYNC_INTERNAL
    assert await failure(stub.listScopes(pb.ScopesRequest(continuationToken=bad))) == SYNC_INTERNAL
    request = pb.StreamsInScopeRequest(scope=sc, continuationToken=bad)
    assert await failure(stub.listStreamsInScope(request)) == SYNC_INTERNAL
    assert await failure(stub.listStreamsInScopeForTag(pb.StreamsInScopeWithTagRequest(scope=sc))) == SYNC_INTERNAL
    assert gateway.sent == []
