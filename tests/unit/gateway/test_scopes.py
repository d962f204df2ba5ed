"""Listings of scopes and streams, with their pages."""

import asyncio

import pytest
from unit.gateway.conftest import Gateway
from unit.gateway.support import create_scope, creation_started, repeated, table_message

from api_gateway.pravega.convert import token_of
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.scope import events as ev
from sluice.domain.scope.commands import CreateScope, DeleteScope, DeleteScopeRecursive, ScopeCommand


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
    await gateway.system.append("sc", ev.ScopeCreated(scope="sc", creation_id="c", at=0))
    await asyncio.gather(*(gateway.system.append(f"sc/{name}", creation_started(name)) for name in names))
    return names


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


@pytest.mark.parametrize(("count", "sizes"), [(0, [0]), (1000, [1000, 0]), (1001, [1000, 1, 0])])
async def test_streams_come_in_pages_of_a_thousand(gateway: Gateway, count: int, sizes: list[int]) -> None:
    names = await _fill_scope(gateway, count)
    pages = await _pages(gateway)
    assert [len(page) for page in pages] == sizes
    assert [name for page in pages for name in page] == names


async def test_a_listing_goes_on_behind_its_token_even_if_that_stream_is_gone(gateway: Gateway) -> None:
    await _fill_scope(gateway, 3)
    assert await _pages(gateway, token_of("s0000-gone")) == [["s0001", "s0002"], []]


async def test_a_deletion_names_the_scope_that_is_there(gateway: Gateway) -> None:
    """One that is repeated must not delete a scope that another client has created behind the first one."""
    await create_scope(gateway)
    await gateway.stub.createKeyValueTable(table_message())
    created = gateway.sent[0][1].id
    scope = pb.ScopeInfo(scope="sc")
    assert (await gateway.stub.deleteScope(scope)).status == pb.DeleteScopeStatus.SCOPE_NOT_EMPTY
    answer = await repeated(gateway, lambda: gateway.stub.deleteScopeRecursive(scope))
    assert answer.status == pb.DeleteScopeStatus.SUCCESS
    assert (await gateway.stub.deleteScope(scope)).status == pb.DeleteScopeStatus.SCOPE_NOT_FOUND
    assert (await gateway.stub.deleteScopeRecursive(scope)).status == pb.DeleteScopeStatus.SUCCESS
    assert [request.command for _, request in gateway.sent if isinstance(request.command, ScopeCommand)] == [
        CreateScope("sc"),
        DeleteScope("sc", created),
        *[DeleteScopeRecursive("sc", created)] * 2,
        DeleteScope("sc"),
        DeleteScopeRecursive("sc"),
    ]
