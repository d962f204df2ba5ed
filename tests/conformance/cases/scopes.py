"""Scopes (controller-grpc-api 5.1)."""

from uuid import uuid4

from conformance.answers import MALFORMED
from conformance.calls import STREAM, create_scope, create_stream, delete_scope, delete_stream, scope_exists, seal
from conformance.case import Subject
from conformance.group_calls import create_group, delete_group
from conformance.run import Exactly, OfLength
from conformance.table_calls import create_table, delete_table

SCOPES = Subject("scope")
case = SCOPES.case

case("create", create_scope(), scope_exists())
case("create_twice", create_scope(), create_scope().gives("SCOPE_EXISTS"))
case("create_of_255_characters", create_scope(OfLength(255)), scope_exists(OfLength(255)))
case("create_of_256_characters", create_scope(OfLength(256)).gives("INVALID_SCOPE_NAME"))
case("create_with_dot_and_hyphen", create_scope("a.b-c"))
_INTERNAL = Exactly(f"_{uuid4().hex}")
case("create_with_leading_underscore", create_scope(_INTERNAL), scope_exists(_INTERNAL))
case("create_with_underscore_inside", create_scope("a_b").gives("INVALID_SCOPE_NAME"))
case("create_with_leading_underscore_alone", create_scope(Exactly("_")).gives("INVALID_SCOPE_NAME"))
case("create_with_two_leading_underscores", create_scope(Exactly("__a")).gives("INVALID_SCOPE_NAME"))
case("create_with_slash", create_scope("a/b").gives("INVALID_SCOPE_NAME"))
case("create_with_space", create_scope("a b").gives("INVALID_SCOPE_NAME"))
case("create_with_letter_beyond_ascii", create_scope("ä").gives("INVALID_SCOPE_NAME"))
case("create_without_name", create_scope("").gives(MALFORMED))
case("create_the_internal_one", create_scope(Exactly("_system")).gives("SCOPE_EXISTS"))

case("exists_the_internal_one", scope_exists(Exactly("_system")))
case("exists_not", scope_exists().gives(False))
case("exists_not_once_deleted", create_scope(), delete_scope(), scope_exists().gives(False))
case("exists_with_impossible_name", scope_exists("a_b/c").gives(False))
case("exists_without_name", scope_exists("").gives(MALFORMED))

case("delete_missing", delete_scope().gives("SCOPE_NOT_FOUND"))
case("delete_twice", create_scope(), delete_scope(), delete_scope().gives("SCOPE_NOT_FOUND"))
case("delete_without_name", delete_scope("").gives(MALFORMED))
case("delete_with_impossible_name", delete_scope("a_b").gives("SCOPE_NOT_FOUND"))
case("delete_and_create_again", create_scope(), delete_scope(), create_scope(), scope_exists())
case(
    "delete_with_stream",
    *STREAM,
    delete_scope().gives("SCOPE_NOT_EMPTY"),
    scope_exists(),
    seal(),
    delete_scope().gives("SCOPE_NOT_EMPTY"),
    delete_stream(),
    delete_scope(),
)
case(
    "delete_with_table",
    create_scope(),
    create_table(),
    delete_scope().gives("SCOPE_NOT_EMPTY"),
    delete_table(),
    delete_scope(),
)
case(
    "delete_with_reader_group",
    *STREAM,
    create_group(),
    seal(),
    delete_stream(),
    delete_scope().gives("SCOPE_NOT_EMPTY"),
    delete_group(),
    delete_scope(),
)
case(
    "stream_in_scope_that_refused_to_go",
    *STREAM,
    delete_scope().gives("SCOPE_NOT_EMPTY"),
    create_stream("other", tags=["red"]).differs(
        peer="SCOPE_NOT_FOUND",
        sluice="SUCCESS",
        why="the original removes the tables of tags before it looks whether the scope is empty",
    ),
)
