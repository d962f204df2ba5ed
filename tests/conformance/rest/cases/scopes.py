"""Scopes (admin-rest-api 5.1 to 5.4), and what the HTTP library answers by itself (2, 12)."""

from http import HTTPStatus
from typing import Any

from conformance.calls import create_scope as grpc_create_scope
from conformance.calls import create_stream as grpc_create_stream
from conformance.calls import scope_exists
from conformance.case import Subject
from conformance.group_calls import create_group
from conformance.rest.calls import (
    SCOPE,
    SCOPES,
    create_scope,
    create_stream,
    delete_scope,
    delete_stream,
    get_scope,
    rest,
    seal_stream,
)
from conformance.run import Run
from conformance.table_calls import create_table

REST_SCOPES = Subject("rest_scope")
case = REST_SCOPES.case

THERE = (200, {"scopeName": "sc"})

NO_BODY = "the original fails inside; here the request is a wrong one"


def _own(_run: Run, answer: Any) -> list[str]:
    """Of all scopes those of the case, and the internal one."""
    names = (scope["scopeName"] for scope in answer["scopes"])
    return [name for name in names if name in ("sc", "other", "_system")]


case("create", create_scope().gives((201, {"scopeName": "sc"})), get_scope().gives(THERE), scope_exists())
case("create_twice", create_scope(), create_scope().gives(409))
case("create_over_grpc", grpc_create_scope(), create_scope().gives(409), get_scope().gives(THERE))
case("create_without_name", rest("POST", SCOPES, {}).gives(400))
case("create_with_empty_name", create_scope("").gives(400))
case("create_with_underscore_inside", create_scope("{sc}_b").gives(400))
case("create_with_leading_underscore", create_scope("_{sc}").gives(400))
case("create_with_slash", create_scope("{sc}/b").gives(400))
case("create_with_dot_and_hyphen", create_scope("{sc}-a.b"))
case("create_of_256_characters", create_scope("a" * 256).gives(400))
case(
    "create_with_more_than_is_asked_for",
    rest("POST", SCOPES, {"scopeName": "{sc}", "colour": "red"}).gives((201, {"scopeName": "sc"})),
)
case("create_with_a_list_for_a_name", rest("POST", SCOPES, {"scopeName": ["a"]}).gives(400))
case("create_from_a_list", rest("POST", SCOPES, "[]").gives(400))
case("create_from_what_is_no_json", rest("POST", SCOPES, "{nothing").gives(400))
case("create_from_nothing", rest("POST", SCOPES, "").differs(peer=500, sluice=400, why=NO_BODY))
case("create_from_null", rest("POST", SCOPES, "null").differs(peer=500, sluice=400, why=NO_BODY))
case("create_from_text", rest("POST", SCOPES, '{"scopeName": "{sc}"}', content_type="text/plain").gives(415))

case("get_missing", get_scope().gives(404))
case("get_with_slash_at_the_end", create_scope(), rest("GET", f"{SCOPE}/").gives(THERE))
case("get_with_an_encoded_slash", create_scope(), rest("GET", f"{SCOPE}%2Fa").gives(404))
case("get_an_impossible_name", rest("GET", "/v1/scopes/no%20such").gives(404))
case("head", create_scope(), rest("HEAD", SCOPE).gives(200))
case("head_missing", rest("HEAD", SCOPE).gives(404))
case(
    "list",
    create_scope(),
    rest("GET", SCOPES, view=_own).gives((200, ["_system", "sc"])),
    delete_scope(),
    rest("GET", SCOPES, view=_own).gives((200, ["_system"])),
)
case("list_with_slash_at_the_end", create_scope(), rest("GET", f"{SCOPES}/", view=_own).gives((200, ["_system", "sc"])))

case("delete", create_scope(), delete_scope().gives(204), get_scope().gives(404))
case("delete_missing", delete_scope().gives(404))
case("delete_twice", create_scope(), delete_scope(), delete_scope().gives(404))
case(
    "delete_with_stream",
    create_scope(),
    create_stream(),
    delete_scope().gives(412),
    seal_stream(),
    delete_scope().gives(412),
    delete_stream(),
    delete_scope().gives(204),
)
case("delete_with_table", create_scope(), create_table(), delete_scope().gives(412))
case("delete_with_group", create_scope(), grpc_create_stream(), create_group(), delete_scope().gives(412))

case("put_on_all", rest("PUT", SCOPES, {}).gives(405))
case("delete_all", rest("DELETE", SCOPES).gives(405))
case("patch_one", create_scope(), rest("PATCH", SCOPE, {}).gives(405))
case("post_on_one", create_scope(), rest("POST", SCOPE, {}).gives(405))
case("nowhere", rest("GET", "/v1").gives(404), rest("GET", "/v1/nothing").gives(404))
case(
    "root",
    rest("GET", "/", view=lambda _run, answer: answer["name"]).differs(
        peer=404, sluice=(200, "Sluice"), why="a caller who has the address alone finds the rest"
    ),
)
case("ping", rest("GET", "/ping").gives(HTTPStatus.OK))
case("post_ping", rest("POST", "/ping", {}).gives(405))
case("put_health", rest("PUT", "/v1/health", {}).gives(405))
