"""Listings and their pages (controller-grpc-api 5.2, 6.5)."""

from conformance.answers import MALFORMED, UNKNOWN
from conformance.calls import STREAM, create_scope, create_stream, delete_scope, delete_stream, seal
from conformance.case import Subject
from conformance.group_calls import create_group
from conformance.listings import answered_token, scopes, scopes_from, streams, streams_from

LISTINGS = Subject("list")
case = LISTINGS.case

_NO_TOKEN = "%%%"
_ONE_CODE = (
    "malformed is malformed in every listing, as it is in the original's listScopes; clients treat both codes alike"
)

case(
    "scopes",
    create_scope("b"),
    create_scope("a"),
    scopes().gives(["a", "b"]),
    delete_scope("a"),
    scopes().gives(["b"]),
    scopes_from(_NO_TOKEN).gives(MALFORMED),
)

case(
    "streams_of_missing_scope",
    streams("").gives(MALFORMED),
    streams().gives("SCOPE_NOT_FOUND"),
    create_scope(),
    streams().gives([]),
)
case(
    "streams_of_one_scope_only",
    *STREAM,
    create_scope("other"),
    create_stream("a", "other"),
    create_stream("b"),
    streams().gives(["_MARKb", "_MARKst", "b", "st"]),
    seal(),
    streams().gives(["_MARKb", "_MARKst", "b", "st"]),
    delete_stream(),
    streams().gives(["_MARKb", "b"]),
)
case("streams_of_reader_groups", *STREAM, create_group(), streams().gives(["_MARK_RGrg", "_MARKst", "_RGrg", "st"]))
case(
    "streams_behind_the_last_page",
    *STREAM,
    streams_from("").gives(("SUCCESS", ["_MARKst", "st"])),
    streams_from(answered_token).gives(("SUCCESS", [])),
    streams_from(answered_token).gives(("SUCCESS", [])),
)
case(
    "streams_with_token_of_nobody",
    *STREAM,
    streams_from(_NO_TOKEN).differs(peer=UNKNOWN, sluice=MALFORMED, why=_ONE_CODE),
)
case(
    "streams_with_token_of_nobody_in_missing_scope",
    streams_from(_NO_TOKEN).differs(
        peer=("SCOPE_NOT_FOUND", []),
        sluice=MALFORMED,
        why="a request is read before anything is looked up; clients send no token but ours",
    ),
)
