"""Stream cuts and truncation of streams of one epoch (controller-grpc-api 5.3, 5.5, 6.3; semantics 8)."""

from conformance.answers import MALFORMED, NOT_FOUND, UNKNOWN
from conformance.calls import (
    at,
    between,
    create_scope,
    create_stream,
    cut_valid,
    head,
    seal,
    truncate,
)
from conformance.case import Subject
from conformance.data import fate, write

CUTS = Subject("cut")
case = CUTS.case

case("truncate_at_0", create_scope(), create_stream(segments=2), truncate({0: 0, 1: 0}), head().gives({0: 0, 1: 0}))
case(
    "truncate",
    create_scope(),
    create_stream(),
    write(40),
    truncate({0: 30}),
    head().gives({0: 30}),
    fate(0).gives("open from 30"),
)
case(
    "truncate_at_the_end", create_scope(), create_stream(), write(40), truncate({0: 40}), fate(0).gives("open from 40")
)
case(
    "truncate_twice",
    create_scope(),
    create_stream(),
    write(40),
    truncate({0: 30}),
    truncate({0: 30}),
    head().gives({0: 30}),
)
case(
    "truncate_on",
    create_scope(),
    create_stream(),
    write(40),
    truncate({0: 10}),
    truncate({0: 20}),
    head().gives({0: 20}),
)
case(
    "truncate_backwards",
    create_scope(),
    create_stream(),
    write(40),
    truncate({0: 30}),
    truncate({0: 20}).gives("FAILURE"),
    head().gives({0: 30}),
)
case(
    "truncate_one_forth_one_back",
    create_scope(),
    create_stream(segments=2),
    write(40),
    write(40, segment=1),
    truncate({0: 20, 1: 20}),
    truncate({0: 30, 1: 10}).gives("FAILURE"),
    head().gives({0: 20, 1: 20}),
)
case("truncate_nowhere", create_scope(), create_stream(), truncate({}).gives("FAILURE"))
case(
    "truncate_with_gap",
    create_scope(),
    create_stream(segments=2),
    truncate({0: 0}).gives("FAILURE"),
    head().gives({0: 0, 1: 0}),
)
case("truncate_at_unknown_number", create_scope(), create_stream(), truncate({7: 0}).gives("FAILURE"))
case(
    "truncate_at_unknown_epoch",
    create_scope(),
    create_stream(),
    truncate({at(0, 7): 0}).differs(
        peer="STREAM_NOT_FOUND", sluice="FAILURE", why="the stream is there; it is the epoch that is not"
    ),
)
case("truncate_at_negative_offset", create_scope(), create_stream(), truncate({0: -1}).gives("FAILURE"))
case("truncate_missing", create_scope(), truncate({0: 0}).gives("STREAM_NOT_FOUND"))
case("truncate_in_missing_scope", truncate({0: 0}).gives("STREAM_NOT_FOUND"))
case("truncate_sealed", create_scope(), create_stream(), seal(), truncate({0: 0}).gives("STREAM_SEALED"))
case("truncate_without_name", create_scope(), truncate({0: 0}, "").gives(MALFORMED))
case("truncate_without_scope", truncate({0: 0}, "st", "").gives(MALFORMED))
case(
    "truncated_then_sealed",
    create_scope(),
    create_stream(),
    write(40),
    truncate({0: 16}),
    seal(),
    head().gives({0: 16}),
)

case("valid", create_scope(), create_stream(segments=2), cut_valid({0: 0, 1: 0}))
case("valid_beyond_the_end", create_scope(), create_stream(), cut_valid({0: 1 << 40}))
case("valid_in_sealed", create_scope(), create_stream(), seal(), cut_valid({0: 0}))
case("valid_before_the_head", create_scope(), create_stream(), write(40), truncate({0: 30}), cut_valid({0: 10}))
case("valid_not_with_gap_below", create_scope(), create_stream(segments=2), cut_valid({1: 0}).gives(False))
case("valid_not_with_gap_above", create_scope(), create_stream(segments=2), cut_valid({0: 0}).gives(False))
case("valid_not_with_gap_inside", create_scope(), create_stream(segments=3), cut_valid({0: 0, 2: 0}).gives(False))
case("valid_nowhere", create_scope(), create_stream(), cut_valid({}).gives(MALFORMED))
case(
    "valid_at_unknown_number",
    create_scope(),
    create_stream(),
    cut_valid({7: 0}).gives(UNKNOWN),
)
case(
    "valid_at_unknown_number_beside_known_ones",
    create_scope(),
    create_stream(),
    cut_valid({0: 0, 7: 0}).gives(UNKNOWN),
)
case("valid_at_unknown_epoch", create_scope(), create_stream(), cut_valid({at(0, 7): 0}).gives(NOT_FOUND))
case("valid_at_negative_segment", create_scope(), create_stream(), cut_valid({-1: 0}).gives(UNKNOWN))
case("valid_of_future_segments_only", create_scope(), create_stream(), cut_valid({0: -1}).gives(UNKNOWN))
case("valid_in_missing_stream", create_scope(), cut_valid({0: 0}).gives(NOT_FOUND))
case("valid_in_missing_scope", cut_valid({0: 0}).gives(NOT_FOUND))
case("valid_without_name", create_scope(), cut_valid({0: 0}, "").gives(MALFORMED))
case("valid_nowhere_in_missing_stream", create_scope(), cut_valid({}).gives(MALFORMED))

case(
    "between_here_and_there",
    create_scope(),
    create_stream(segments=2),
    between({0: 0, 1: 0}, {0: 9, 1: 9}).gives([0, 1]),
)
case("between_the_same", create_scope(), create_stream(), between({0: 5}, {0: 5}).gives([0]))
case("between_start_and_now", create_scope(), create_stream(segments=2), between({}, {0: 9, 1: 9}).gives([0, 1]))
case("between_now_and_end", create_scope(), create_stream(segments=2), between({0: 9, 1: 9}, {}).gives([0, 1]))
case("between_nothing", create_scope(), create_stream(), between({}, {}).gives(MALFORMED))
case("between_later_and_earlier", create_scope(), create_stream(), between({0: 9}, {0: 5}).gives(UNKNOWN))
case(
    "between_unknown_number",
    create_scope(),
    create_stream(),
    between({7: 0}, {}).gives(UNKNOWN),
)
case("between_unknown_epoch", create_scope(), create_stream(), between({}, {at(0, 7): 0}).gives(NOT_FOUND))
case("between_in_missing_stream", create_scope(), between({0: 0}, {}).gives(NOT_FOUND))
case("between_in_missing_scope", between({0: 0}, {}).gives(NOT_FOUND))
case("between_without_name", create_scope(), between({0: 0}, {}, "").gives(MALFORMED))
case("between_in_sealed", create_scope(), create_stream(segments=2), seal(), between({0: 0, 1: 0}, {}).gives([0, 1]))
