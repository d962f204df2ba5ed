"""The tables of permissions are complete, and the page shows them."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.routing import APIRoute, iter_route_contexts
from google.protobuf.message_factory import GetMessageClass
from support.documents import DOCS

from api_gateway import permissions_page
from api_gateway.app import OPEN_PATHS, RULES, build_app
from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.rest.boundary import GuardedRoute
from api_gateway.edge.security.rest_resources import names_in
from api_gateway.edge.security.rules import Rule
from api_gateway.pravega.permissions import RPCS
from api_gateway.pravega.server import INTERFACE
from sluice.controller_api import controller_pb2 as pb
from sluice.security.caller import Caller, ForbiddenError, UnauthenticatedError
from sluice.security.resources import ROOT, Permission

NAMES = {"scope": "s", "stream": "x", "group": "g", "table": "t"}
RESOURCES = {
    ROOT,
    "prn::/scope:s",
    "prn::/scope:s/stream:x",
    "prn::/scope:s/reader-group:g",
    "prn::/scope:s/key-value-table:t",
    "prn::/sluice:cluster",
    "prn::/sluice:workflows",
    "prn::/sluice:dead-letters",
}


def routes() -> Iterator[Any]:
    process: Any = SimpleNamespace(checks={}, outages={}, degraded={}, facts={})
    return iter_route_contexts(build_app(process, connections=10).routes)


def test_each_rpc_has_a_rule() -> None:
    assert set(RPCS) == {method.name for method in INTERFACE.methods}


def test_each_route_has_a_rule_or_is_outside_both_interfaces() -> None:
    guarded, others = set(), set()
    for route in routes():
        if isinstance(route.route, APIRoute):
            assert isinstance(route.route, GuardedRoute), f"{route.path} is not behind the boundary"
            guarded |= {f"{method} {route.path}" for method in route.methods}
        else:
            others.add(route.path)
    assert guarded == set(RULES)
    assert others == set(OPEN_PATHS)


@pytest.mark.parametrize("operation", [name for name, rule in RULES.items() if rule is not None])
def test_the_resources_of_a_route_follow_from_the_names_in_its_path(operation: str) -> None:
    rule = RULES[operation]
    assert rule is not None
    assert {resource.of(names_in(NAMES)) for resource in rule.on} <= RESOURCES


@pytest.mark.parametrize("rpc", [name for name, rule in RPCS.items() if rule.on and rule.on[0].text != "root"])
def test_an_rpc_whose_request_names_nothing_is_malformed(rpc: str) -> None:
    request = GetMessageClass(INTERFACE.methods_by_name[rpc].input_type)()
    with pytest.raises(BadRequestError):
        RPCS[rpc].check(None, request, True)


def test_entries_without_a_resource_are_for_callers_who_are_known() -> None:
    with pytest.raises(UnauthenticatedError):
        Rule(entries="thing").check(None, NAMES, True)
    Rule(entries="thing").check(Caller("me", lambda _resource: Permission.NONE), NAMES, True)
    Rule().check(None, NAMES, True)


def test_the_page_is_up_to_date() -> None:
    assert (DOCS / permissions_page.NAME).read_text() == permissions_page.page(), "run `make docs`"


# What depends on more than the operation.


def needed(rpc: str, request: Any, *, flag: bool = True) -> tuple[str, str]:
    """The resource, and the least permission on it that is enough."""
    rule: Rule = RPCS[rpc]
    resource = rule.on[0].of(request)
    for permission in Permission:
        own = Caller("me", lambda of, own=permission: own if of == resource else Permission.NONE)  # type: ignore[misc]
        try:
            rule.check(own, request, flag)
        except ForbiddenError:
            continue
        return resource, permission.name
    return resource, "nothing is enough"


def info(stream: str, access: int = 0) -> pb.StreamInfo:
    return pb.StreamInfo(scope="s", stream=stream, accessOperation=access)  # type: ignore[arg-type]


STREAM, GROUP = "prn::/scope:s/stream:x", "prn::/scope:s/reader-group:x"
UNSPECIFIED, FOR_NOTHING, ANY, TO_READ, TO_WRITE, FOR_BOTH = range(6)


@pytest.mark.parametrize(
    ("stream", "access", "flag", "expected"),
    [
        ("x", UNSPECIFIED, True, (STREAM, "READ_UPDATE")),
        ("x", TO_READ, True, (STREAM, "READ")),
        ("x", FOR_NOTHING, True, (STREAM, "READ")),
        ("x", TO_WRITE, True, (STREAM, "READ_UPDATE")),
        ("x", FOR_BOTH, True, (STREAM, "READ_UPDATE")),
        ("_RGx", UNSPECIFIED, True, (GROUP, "READ_UPDATE")),
        ("_RGx", TO_READ, False, (GROUP, "READ")),
        ("_RGx", FOR_BOTH, True, (GROUP, "READ")),
        ("_RGx", FOR_BOTH, False, (GROUP, "READ_UPDATE")),
        ("_MARKx", TO_WRITE, False, (STREAM, "READ")),
        ("_other", TO_WRITE, True, ("prn::/scope:s/stream:_other", "READ_UPDATE")),
    ],
)
def test_a_token_needs_what_it_is_for(stream: str, access: int, flag: bool, expected: tuple[str, str]) -> None:
    assert needed("getDelegationToken", info(stream, access), flag=flag) == expected


@pytest.mark.parametrize("access", [ANY, 17])
def test_no_token_is_for_any_operation(access: int) -> None:
    with pytest.raises(BadRequestError):
        needed("getDelegationToken", info("x", access))


def test_a_token_is_given_for_the_permission_on_a_table_of_the_name() -> None:
    own = Caller("me", lambda resource: Permission(2 if resource == "prn::/scope:s/key-value-table:x" else 0))
    rule = RPCS["getDelegationToken"]
    rule.check(own, info("x", FOR_BOTH), True)
    with pytest.raises(ForbiddenError):
        rule.check(own, info("y", FOR_BOTH), True)


def test_the_permission_on_a_table_opens_no_internal_stream() -> None:
    own = Caller("me", lambda resource: Permission(2 if "key-value-table" in resource else 0))
    for stream in ("_RGx", "_MARKx", "_other"):
        with pytest.raises(ForbiddenError):
            RPCS["getDelegationToken"].check(own, info(stream, TO_READ), True)


@pytest.mark.parametrize(
    ("stream", "flag", "expected"),
    [
        ("x", True, "READ_UPDATE"),
        ("_RGx", True, "READ"),
        ("_RGx", False, "READ_UPDATE"),
        ("_MARKx", True, "READ_UPDATE"),
    ],
)
def test_who_reads_a_scope_creates_there_the_state_of_its_groups(stream: str, flag: bool, expected: str) -> None:
    request = pb.StreamConfig(streamInfo=info(stream))
    assert needed("createStream", request, flag=flag) == ("prn::/scope:s", expected)


@pytest.mark.parametrize(
    ("access", "expected"), [(FOR_NOTHING, "READ"), (UNSPECIFIED, "READ_UPDATE"), (ANY, "READ_UPDATE")]
)
def test_segments_for_an_unknown_purpose_are_for_writing(access: int, expected: str) -> None:
    assert needed("getCurrentSegments", info("_RGx", access)) == (GROUP, expected)
    assert needed("getSegments", pb.GetSegmentsRequest(streamInfo=info("x", access))) == (STREAM, expected)


@pytest.mark.parametrize("rpc", ["createReaderGroup", "updateReaderGroup", "deleteReaderGroup"])
def test_reader_groups_are_their_readers_if_the_flag_says_so(rpc: str) -> None:
    request = GetMessageClass(INTERFACE.methods_by_name[rpc].input_type)(scope="s")
    assert needed(rpc, request, flag=True) == ("prn::/scope:s", "READ")
    assert needed(rpc, request, flag=False) == ("prn::/scope:s", "READ_UPDATE")
