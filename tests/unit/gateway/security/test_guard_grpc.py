"""Calls of gRPC with authentication on: who is let through, and what the others get."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from unit.gateway.conftest import Gateway, served
from unit.gateway.security.support import ALL, NONE, READ, READ_UPDATE, Callers, as_
from unit.gateway.support import SYNC_INTERNAL, failure

from api_gateway.edge.security.guard import Guard
from api_gateway.pravega.handlers import scopes
from api_gateway.pravega.permissions import RPCS
from api_gateway.pravega.server import INTERFACE
from sluice.controller_api import controller_pb2 as pb
from sluice.security.caller import CALLER, Caller

UNAUTHENTICATED = (grpc.StatusCode.UNAUTHENTICATED, "Authentication failed")
DENIED = (grpc.StatusCode.PERMISSION_DENIED, "Authorization failed")
SC = "prn::/scope:sc"


@pytest.fixture
def callers() -> Callers:
    return Callers(
        admin={ALL: READ_UPDATE},
        reader={ALL: READ},
        stranger={},
    )


@pytest.fixture
async def secured(callers: Callers) -> AsyncIterator[Gateway]:
    """A gateway with `sc`, `sc/a`, `sc/b`, `sc/c`, and the key-value tables `kv`, `kw`."""
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(served(Guard(callers, readers_write=True)))
        stub, admin = gateway.stub, as_("admin")
        await stub.createScope(pb.ScopeInfo(scope="sc"), metadata=admin)
        for name in "abc":
            config = pb.StreamConfig(streamInfo=info(name), scalingPolicy={"minNumSegments": 1}, tags={"tag": ["red"]})
            await stub.createStream(config, metadata=admin)
        for name in ("kv", "kw"):
            await stub.createKeyValueTable(
                pb.KeyValueTableConfig(scope="sc", kvtName=name, partitionCount=1, primaryKeyLength=8), metadata=admin
            )
        yield gateway


def info(stream: str) -> pb.StreamInfo:
    return pb.StreamInfo(scope="sc", stream=stream)


def named(rpc: str) -> Any:
    """A request that names something, wherever its message has a place for a name."""
    return _filled(GetMessageClass(INTERFACE.methods_by_name[rpc].input_type)())


def _filled(message: Any) -> Any:
    for field in message.DESCRIPTOR.fields:
        if field.name in ("scope", "stream", "kvtName", "readerGroup", "readerGroupName") and field.cpp_type == 9:
            setattr(message, field.name, "x")
        elif field.name in ("scope", "stream", "streamInfo", "streamCut", "position"):
            _filled(getattr(message, field.name))
    return message


def call(gateway: Gateway, rpc: str, headers: Any = None) -> Any:
    return getattr(gateway.stub, rpc)(named(rpc), metadata=headers)


async def test_rpcs_that_need_a_permission_are_refused_before_anything_is_done(secured: Gateway) -> None:
    before = len(secured.sent)
    for rpc in (name for name, rule in RPCS.items() if rule.on):
        for headers in (None, as_("unknown"), [("authorization", "Bearer a.b.c")], [("authorization", "Basic")]):
            assert await failure(call(secured, rpc, headers)) == UNAUTHENTICATED, rpc
        assert await failure(call(secured, rpc, as_("stranger"))) == DENIED, rpc
    assert len(secured.sent) == before


async def test_the_list_of_controllers_needs_no_credentials_but_no_wrong_ones(secured: Gateway) -> None:
    assert (await call(secured, "getControllerServerList")).nodeURI
    assert (await call(secured, "getControllerServerList", as_("stranger"))).nodeURI
    assert await failure(call(secured, "getControllerServerList", as_("unknown"))) == UNAUTHENTICATED


async def test_what_is_refused_is_the_same_for_what_exists_and_what_does_not(secured: Gateway) -> None:
    for stream in ("a", "missing", "?/ :"):
        assert await failure(secured.stub.getStreamConfiguration(info(stream), metadata=as_("stranger"))) == DENIED
    assert await failure(secured.stub.deleteStream(info("a"), metadata=as_("reader"))) == DENIED


async def test_of_several_headers_the_last_counts(secured: Gateway, callers: Callers) -> None:
    headers = [*as_("unknown"), *as_("reader")]
    assert (await secured.stub.checkScopeExists(pb.ScopeInfo(scope="sc"), metadata=headers)).exists
    assert callers.requests[-1] == "Basic reader"


async def test_a_refusal_shows_nothing_of_the_credentials(secured: Gateway) -> None:
    refused = secured.stub.checkScopeExists(pb.ScopeInfo(scope="sc"), metadata=as_("unknown"))
    assert await failure(refused) == UNAUTHENTICATED
    assert "unknown" not in str([*await refused.initial_metadata(), *await refused.trailing_metadata()])


async def test_the_caller_is_known_to_what_the_call_leads_to_and_to_nothing_else(
    secured: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Caller | None] = []

    async def noting(_reads: Any, _name: str) -> bool:
        seen.append(CALLER.get())
        return True

    monkeypatch.setattr("api_gateway.edge.reads.Reads.scope_exists", noting)
    await secured.stub.checkScopeExists(pb.ScopeInfo(scope="sc"), metadata=as_("reader"))
    assert [one.principal for one in seen if one is not None] == ["reader"]
    assert CALLER.get() is None


async def test_a_request_that_names_nothing_is_malformed_with_authentication_as_without(secured: Gateway) -> None:
    assert await failure(secured.stub.getCurrentSegments(pb.StreamInfo(), metadata=as_("admin"))) == SYNC_INTERNAL
    assert await failure(secured.stub.getCurrentSegments(pb.StreamInfo())) == SYNC_INTERNAL


async def test_health_and_reflection_are_open(secured: Gateway) -> None:
    health: Any = health_pb2_grpc.HealthStub(secured.channel)
    answer = await health.Check(health_pb2.HealthCheckRequest(service=""), metadata=as_("unknown"))
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    reflection: Any = reflection_pb2_grpc.ServerReflectionStub(secured.channel)
    questions = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
    async for found in reflection.ServerReflectionInfo(questions):
        assert INTERFACE.full_name in {one.name for one in found.list_services_response.service}


# Listings.


async def listed(secured: Gateway, rpc: str, request: Any, of: str) -> list[list[str]]:
    """The pages that `reader` gets."""
    pages: list[list[str]] = []
    while not pages or pages[-1]:
        answer = await getattr(secured.stub, rpc)(request, metadata=as_("reader"))
        pages.append([one if isinstance(one, str) else getattr(one, of) for one in getattr(answer, _LISTS[rpc])])
        request.continuationToken.CopyFrom(answer.continuationToken)
    return pages


_LISTS = {
    "listScopes": "scopes",
    "listStreamsInScope": "streams",
    "listStreamsInScopeForTag": "streams",
    "listKeyValueTablesInScope": "kvtables",
}


@pytest.mark.parametrize("size", [1, 2, 1000])
@pytest.mark.parametrize(
    ("rpc", "request_", "field", "hidden", "seen"),
    [
        ("listScopes", pb.ScopesRequest(), "", "prn::/scope:_system", ["sc"]),
        (
            "listStreamsInScope",
            pb.StreamsInScopeRequest(scope={"scope": "sc"}),
            "stream",
            f"{SC}/stream:b",
            ["_MARKa", "_MARKb", "_MARKc", "a", "c"],
        ),
        (
            "listStreamsInScopeForTag",
            pb.StreamsInScopeWithTagRequest(scope={"scope": "sc"}, tag="red"),
            "stream",
            f"{SC}/stream:a",
            ["b", "c"],
        ),
        (
            "listKeyValueTablesInScope",
            pb.KVTablesInScopeRequest(scope={"scope": "sc"}),
            "kvtName",
            f"{SC}/key-value-table:kv",
            ["kw"],
        ),
    ],
)
async def test_a_listing_leaves_out_what_may_not_be_read_and_its_pages_stay_full(
    secured: Gateway,
    callers: Callers,
    monkeypatch: pytest.MonkeyPatch,
    rpc: str,
    request_: Any,
    field: str,
    hidden: str,
    seen: list[str],
    size: int,
) -> None:
    monkeypatch.setattr(scopes, "PAGE_SIZE", size)
    callers.permissions["reader"][hidden] = NONE
    copy = type(request_)()
    copy.CopyFrom(request_)
    pages = await listed(secured, rpc, copy, field)
    assert [name for page in pages for name in page] == seen
    assert all(len(page) == size for page in pages[:-2])


async def test_a_scope_that_may_not_be_read_is_not_listed_at_all(secured: Gateway, callers: Callers) -> None:
    callers.permissions["reader"][SC] = NONE
    request = pb.StreamsInScopeRequest(scope={"scope": "sc"})
    assert await failure(secured.stub.listStreamsInScope(request, metadata=as_("reader"))) == DENIED
