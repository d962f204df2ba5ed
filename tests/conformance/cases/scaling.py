"""scale and checkScale, granted (controller-grpc-api 5.4; semantics 4)."""

from functools import partial

from conformance.answers import MALFORMED
from conformance.calls import (
    BY_EVENTS,
    STREAM,
    TWO_SEGMENTS,
    at,
    check_scale,
    create_scope,
    create_stream,
    current_segments,
    delete_stream,
    epoch_segments,
    following,
    head,
    missing,
    scale,
    seal,
    segment_valid,
    update_stream,
)
from conformance.case import Step, Subject
from conformance.data import fate, write

SCALING = Subject("scale")
case = SCALING.case

DONE: Step = check_scale(0).until("SUCCESS")
HALVES = [(0.0, 0.5), (0.5, 1.0)]

case(
    "split",
    *TWO_SEGMENTS,
    scale([1], [(0.5, 0.75), (0.75, 1.0)]).gives(("STARTED", 0, [at(2, 1), at(3, 1)], [(0.5, 0.75), (0.75, 1.0)])),
    DONE,
    epoch_segments(0).gives([(0, 0.0, 0.5), (1, 0.5, 1.0)]),
    head().gives({0: 0, 1: 0}),
    fate(1).gives("sealed"),
    fate(at(2, 1)).gives("open"),
    segment_valid(1).gives(False),
)
case("split_of_a_written_segment", *STREAM, write(64), scale([0], HALVES), DONE, head().gives({0: 0}))
case(
    "merge",
    *TWO_SEGMENTS,
    update_stream(scaling=(BY_EVENTS, 10, 2)),
    scale([0, 1], [(0.0, 1.0)]),
    DONE,
    current_segments().gives([(at(2, 1), 0.0, 1.0)]),
    following(0).gives({at(2, 1): (0.0, 1.0, [0, 1])}),
    fate(0).gives("sealed"),
    fate(1).gives("sealed"),
)
case(
    "merge_two_of_four",
    create_scope(),
    create_stream(segments=4),
    update_stream(scaling=(BY_EVENTS, 10, 2), segments=3),
    scale([1, 2], [(0.25, 0.75)]).gives(("STARTED", 0, [at(4, 1)], [(0.25, 0.75)])),
    DONE,
    current_segments().gives([(0, 0.0, 0.25), (at(4, 1), 0.25, 0.75), (3, 0.75, 1.0)]),
)
case(
    "two_splits_at_once",
    create_scope(),
    create_stream(segments=3),
    scale([0, 2], [(0.0, 0.125), (0.125, 1 / 3), (2 * (1 / 3), 0.75), (0.75, 1.0)]),
    DONE,
    segment_valid(1),
    segment_valid(at(6, 1)),
    segment_valid(0).gives(False),
)
case(
    "split_and_merge_at_once",
    create_scope(),
    create_stream(segments=4),
    scale([0, 2, 3], [(0.0, 0.125), (0.125, 0.25), (0.5, 1.0)]),
    DONE,
    *(segment_valid(active) for active in (1, at(4, 1), at(6, 1))),
)
case("into_other_borders", *TWO_SEGMENTS, scale([0, 1], [(0.0, 0.25), (0.25, 1.0)]), DONE, segment_valid(at(2, 1)))
case("ranges_in_any_order", *STREAM, scale([0], [(0.5, 1.0), (0.25, 0.5), (0.0, 0.25)]), DONE, segment_valid(at(3, 1)))
case("many", *STREAM, scale([0], [(i / 16, (i + 1) / 16) for i in range(16)]), DONE, segment_valid(at(16, 1)))
case(
    "again_and_again_and_into_itself",
    *STREAM,
    scale([0], HALVES),
    DONE,
    scale([at(1, 1), at(2, 1)], [(0.0, 1.0)]).gives(("STARTED", 1, [at(3, 2)], [(0.0, 1.0)])),
    check_scale(1).until("SUCCESS"),
    scale([at(3, 2)], [(0.0, 1.0)]).gives(("STARTED", 2, [at(4, 3)], [(0.0, 1.0)])),
    check_scale(2).until("SUCCESS"),
    current_segments().gives([(at(4, 3), 0.0, 1.0)]),
    following(at(3, 2)).gives({at(4, 3): (0.0, 1.0, [at(3, 2)])}),
    check_scale(0),
    check_scale(1),
)
case(
    "of_internal_stream",
    create_scope(),
    create_stream("_st"),
    scale([0], HALVES, "_st"),
    check_scale(0, "_st").until("SUCCESS"),
    segment_valid(at(2, 1), "_st"),
)
case("at_a_time_in_the_future", *STREAM, scale([0], HALVES, timestamp=1 << 50), DONE)
case("at_a_negative_time", *STREAM, scale([0], HALVES, timestamp=-1), DONE)
case(
    "then_seal_and_delete",
    *STREAM,
    scale([0], HALVES),
    DONE,
    seal(),
    current_segments().gives([]),
    check_scale(0),
    delete_stream(),
    fate(at(1, 1)).gives("gone"),
    check_scale(0).gives("INVALID_INPUT"),
)

case(
    "check_nothing_done",
    *STREAM,
    check_scale(0).gives("IN_PROGRESS"),
    check_scale(1).gives("INVALID_INPUT"),
    check_scale(-1).gives(MALFORMED),
    seal(),
    check_scale(0).gives("IN_PROGRESS"),
)
case("check_missing", *missing(partial(check_scale, 0), "INVALID_INPUT"), check_scale(-1).gives(MALFORMED))
