"""Stream cuts and truncation of streams of one epoch (controller-grpc-api 5.3, 5.5, 6.3; semantics 8)."""

from functools import partial

from conformance.answers import MALFORMED, NOT_FOUND
from conformance.calls import (
    STREAM,
    TWO_SEGMENTS,
    at,
    between,
    create_scope,
    create_stream,
    cut_valid,
    head,
    missing,
    seal,
    truncate,
)
from conformance.case import Subject
from conformance.data import fate, write

CUTS = Subject("cut")
case = CUTS.case

case("truncate_at_0", *TWO_SEGMENTS, truncate({0: 0, 1: 0}), head().gives({0: 0, 1: 0}))
case(
    "truncate_twice_on_back_and_to_the_end",
    *STREAM,
    write(40),
    truncate({0: 10}),
    truncate({0: 10}),
    head().gives({0: 10}),
    fate(0).gives("open from 10"),
    truncate({0: 30}),
    truncate({0: 20}).gives("FAILURE"),
    head().gives({0: 30}),
    truncate({0: 40}),
    fate(0).gives("open from 40"),
)
case(
    "truncate_one_forth_one_back",
    *TWO_SEGMENTS,
    write(40),
    write(40, segment=1),
    truncate({0: 20, 1: 20}),
    truncate({0: 30, 1: 10}).gives("FAILURE"),
    head().gives({0: 20, 1: 20}),
)
_EVENTS_TO_COME = "the events written next would lie before the head, and none would ever be read"
case(
    "truncate_beyond_the_end",
    *STREAM,
    write(40),
    truncate({0: 41}).differs(peer="SUCCESS", sluice="FAILURE", why=_EVENTS_TO_COME),
    head().differs(peer={0: 41}, sluice={0: 0}, why=_EVENTS_TO_COME),
    fate(0).gives("open"),
)
case("truncate_with_gap", *TWO_SEGMENTS, truncate({0: 0}).gives("FAILURE"), head().gives({0: 0, 1: 0}))
case("truncate_where_no_segment_is", *STREAM, *(truncate(cut).gives("FAILURE") for cut in ({}, {7: 0}, {0: -1})))
case(
    "truncate_at_unknown_epoch",
    *STREAM,
    truncate({at(0, 7): 0}).differs(
        peer="STREAM_NOT_FOUND", sluice="FAILURE", why="the stream is there; it is the epoch that is not"
    ),
)
case("truncate_missing", *missing(partial(truncate, {0: 0}), "STREAM_NOT_FOUND"))
case(
    "truncate_sealed",
    *STREAM,
    write(40),
    truncate({0: 16}),
    seal(),
    truncate({0: 20}).gives("STREAM_SEALED"),
    head().gives({0: 16}),
)

case(
    "valid",
    *STREAM,
    write(40),
    cut_valid({0: 0}),
    cut_valid({0: 1 << 40}),
    truncate({0: 30}),
    cut_valid({0: 10}),
    seal(),
    cut_valid({0: 0}),
)
case(
    "valid_not_with_gap",
    create_scope(),
    create_stream(segments=3),
    cut_valid({0: 0, 1: 0, 2: 0}),
    *(cut_valid(cut).gives(False) for cut in ({1: 0, 2: 0}, {0: 0, 1: 0}, {0: 0, 2: 0})),
)
case(
    "valid_not_without_segments_that_are",
    *STREAM,
    cut_valid({}).gives(MALFORMED),
    *(cut_valid(cut).is_invalid() for cut in ({7: 0}, {0: 0, 7: 0}, {-1: 0}, {0: -1})),
    cut_valid({at(0, 7): 0}).gives(NOT_FOUND),
)
case("valid_missing", *missing(partial(cut_valid, {0: 0}), NOT_FOUND), cut_valid({}).gives(MALFORMED))

case(
    "between",
    *TWO_SEGMENTS,
    between({0: 0, 1: 0}, {0: 9, 1: 9}).gives([0, 1]),
    between({0: 5, 1: 5}, {0: 5, 1: 5}).gives([0, 1]),
    between({}, {0: 9, 1: 9}).gives([0, 1]),
    between({0: 9, 1: 9}, {}).gives([0, 1]),
    seal(),
    between({0: 0, 1: 0}, {}).gives([0, 1]),
)
case(
    "between_refused",
    *STREAM,
    between({}, {}).gives(MALFORMED),
    between({0: 9}, {0: 5}).is_invalid(),
    between({7: 0}, {}).is_invalid(),
    between({}, {at(0, 7): 0}).gives(NOT_FOUND),
)
case("between_missing", *missing(partial(between, {0: 0}, {}), NOT_FOUND))
