"""Questions about segments (controller-grpc-api 5.5; semantics 7)."""

from conformance.answers import MALFORMED, NOT_FOUND, UNKNOWN
from conformance.calls import (
    at,
    create_scope,
    create_stream,
    current_segments,
    epoch_segments,
    following,
    head,
    seal,
    segment_valid,
    update_stream,
    uri,
)
from conformance.case import Subject
from conformance.cases.streams_created import equal_ranges
from conformance.run import Exactly

SEGMENTS = Subject("segments")
case = SEGMENTS.case

_ONE_CODE = "an empty name is malformed here as in all other calls (the reference says so of this one too, wrongly)"

case("current_of_missing_stream", create_scope(), current_segments().gives(NOT_FOUND))
case("current_in_missing_scope", current_segments().gives(NOT_FOUND))
case(
    "current_without_name", create_scope(), current_segments("").differs(peer=UNKNOWN, sluice=MALFORMED, why=_ONE_CODE)
)
case("current_without_scope", current_segments("st", "").differs(peer=UNKNOWN, sluice=MALFORMED, why=_ONE_CODE))

case("of_epoch_0", create_scope(), create_stream(segments=3), epoch_segments(0).gives(equal_ranges(3)))
case("of_epoch_to_come", create_scope(), create_stream(), epoch_segments(1).gives(NOT_FOUND))
case("of_negative_epoch", create_scope(), create_stream(), epoch_segments(-1).gives(MALFORMED))
case("of_negative_epoch_of_missing_stream", create_scope(), epoch_segments(-1).gives(MALFORMED))
case("of_epoch_of_missing_stream", create_scope(), epoch_segments(0).gives(NOT_FOUND))
case("of_epoch_in_missing_scope", epoch_segments(0).gives(NOT_FOUND))
case("of_epoch_without_name", create_scope(), epoch_segments(0, "").gives(MALFORMED))
case(
    "of_epoch_before_and_now",
    create_scope(),
    create_stream(),
    update_stream(segments=2),
    epoch_segments(0).gives([(0, 0.0, 1.0)]),
    epoch_segments(1).gives([(at(1, 1), 0.0, 0.5), (at(2, 1), 0.5, 1.0)]),
    epoch_segments(2).gives(NOT_FOUND),
)
case("of_epoch_of_sealed", create_scope(), create_stream(), seal(), epoch_segments(0).gives([(0, 0.0, 1.0)]))

case("head", create_scope(), create_stream(segments=2), head().gives({0: 0, 1: 0}))
case("head_at_any_time", create_scope(), create_stream(), head(timestamp=1 << 60).gives({0: 0}))
case("head_at_negative_time", create_scope(), create_stream(), head(timestamp=-1).gives({0: 0}))
case("head_of_missing_stream", create_scope(), head().gives(NOT_FOUND))
case("head_in_missing_scope", head().gives(NOT_FOUND))
case("head_without_name", create_scope(), head("").gives(MALFORMED))

case("following_an_active_one", create_scope(), create_stream(), following(0).gives({}))
case("following_an_active_one_misspelt", create_scope(), create_stream(), following(0, misspelt=True).gives({}))
case("following_unknown_number", create_scope(), create_stream(), following(7).gives({}))
case("following_unknown_epoch", create_scope(), create_stream(), following(at(0, 7)).gives({}))
case("following_negative", create_scope(), create_stream(), following(-1).gives({}))
case("following_in_missing_stream", create_scope(), following(0).gives(NOT_FOUND))
case("following_in_missing_scope", following(0).gives(NOT_FOUND))
case("following_without_name", create_scope(), following(0, "").gives(MALFORMED))
case("following_without_name_misspelt", create_scope(), following(0, "", misspelt=True).gives(MALFORMED))
case("following_in_sealed", create_scope(), create_stream(), seal(), following(0).gives({}))
for _misspelt in (False, True):
    case(
        "following_a_replaced_one" + "_misspelt" * _misspelt,
        create_scope(),
        create_stream(segments=2),
        update_stream(segments=3),
        following(0, misspelt=_misspelt).gives(
            {
                at(2, 1): (0.0, 1 / 3, [0]),
                at(3, 1): (1 / 3, 2 * (1 / 3), [0, 1]),
            }
        ),
        following(at(2, 1), misspelt=_misspelt).gives({}),
    )
case(
    "following_a_replaced_one_in_sealed",
    create_scope(),
    create_stream(),
    update_stream(segments=2),
    seal(),
    following(0).gives({at(1, 1): (0.0, 0.5, [0]), at(2, 1): (0.5, 1.0, [0])}),
    following(at(1, 1)).gives({}),
)

case("valid", create_scope(), create_stream(segments=2), segment_valid(1))
case("valid_not_number", create_scope(), create_stream(segments=2), segment_valid(2).gives(False))
case("valid_not_epoch", create_scope(), create_stream(), segment_valid(at(0, 1)).gives(False))
case("valid_not_negative", create_scope(), create_stream(), segment_valid(-1).gives(False))
case(
    "valid_no_more",
    create_scope(),
    create_stream(),
    update_stream(segments=2),
    segment_valid(0).gives(False),
    segment_valid(at(2, 1)),
)
case("valid_not_in_sealed", create_scope(), create_stream(), seal(), segment_valid(0).gives(False))
case("valid_in_missing_stream", create_scope(), segment_valid(0).gives(NOT_FOUND))
case("valid_in_missing_scope", segment_valid(0).gives(NOT_FOUND))
case("valid_without_name", create_scope(), segment_valid(0, "").gives(MALFORMED))

case("uri", create_scope(), create_stream(), uri())
case("uri_of_segment_that_is_not", create_scope(), create_stream(), uri(at(9, 9)))
case("uri_of_missing_stream", create_scope(), uri())
case("uri_in_missing_scope", uri())
case("uri_of_table", uri(0, "kv_kvtable"))
case("uri_of_any_text", uri(0, "a_b/c ä"))
case("uri_of_internal_stream", uri(0, "_requeststream", Exactly("_system")))
case("uri_without_name", uri(0, "").gives(MALFORMED))
case("uri_without_scope", uri(0, "st", "").gives(MALFORMED))
