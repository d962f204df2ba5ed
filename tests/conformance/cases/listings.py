"""Listings and their pages (controller-grpc-api 5.2, 6.5)."""

from conformance.answers import MALFORMED, UNKNOWN
from conformance.calls import create_scope, create_stream, delete_scope, delete_stream, seal
from conformance.case import Subject
from conformance.group_calls import create_group
from conformance.listings import answered_token, scopes, scopes_from, streams, streams_from

LISTINGS = Subject("list")
case = LISTINGS.case

_NO_TOKEN = "%%%"
_ONE_CODE = (
    "malformed is malformed in every listing, as it is in the original's listScopes; clients treat both codes alike"
)

case("scopes", create_scope("b"), create_scope("a"), scopes().gives(["a", "b"]))
case("scopes_not_deleted_ones", create_scope("a"), create_scope("b"), delete_scope("a"), scopes().gives(["b"]))
case("scopes_with_token_of_nobody", scopes_from(_NO_TOKEN).gives(MALFORMED))

case("streams_of_missing_scope", streams().gives("SCOPE_NOT_FOUND"))
case("streams_without_scope", streams("").gives(MALFORMED))
case("streams_of_empty_scope", create_scope(), streams().gives([]))
case("streams_with_mark_streams", create_scope(), create_stream(), streams().gives(["_MARKst", "st"]))
case("streams_sealed_too", create_scope(), create_stream(), seal(), streams().gives(["_MARKst", "st"]))
case(
    "streams_without_deleted_ones",
    create_scope(),
    create_stream(),
    create_stream("other"),
    seal(),
    delete_stream(),
    streams().gives(["_MARKother", "other"]),
)
case(
    "streams_of_one_scope_only",
    create_scope(),
    create_scope("other"),
    create_stream("a", "other"),
    create_stream(),
    streams().gives(["_MARKst", "st"]),
)
case(
    "streams_of_reader_groups",
    create_scope(),
    create_stream(),
    create_group(),
    streams().gives(["_MARK_RGrg", "_MARKst", "_RGrg", "st"]),
)
case(
    "streams_behind_the_last_page",
    create_scope(),
    create_stream(),
    streams_from("").gives(("SUCCESS", ["_MARKst", "st"])),
    streams_from(answered_token).gives(("SUCCESS", [])),
    streams_from(answered_token).gives(("SUCCESS", [])),
)
case(
    "streams_with_token_of_nobody",
    create_scope(),
    create_stream(),
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
