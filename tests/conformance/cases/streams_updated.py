"""updateStream (controller-grpc-api 5.3; semantics 3.5)."""

from conformance.answers import MALFORMED, NOT_FOUND
from conformance.calls import (
    BY_EVENTS,
    BY_TIME,
    STREAM,
    at,
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
    stream_configuration,
    update_stream,
)
from conformance.case import Subject
from conformance.cases.streams_created import configuration, equal_ranges
from conformance.data import fate
from conformance.views import Range

UPDATE = Subject("update_stream")
case = UPDATE.case


def _equal_of_epoch(count: int, first: int, epoch: int) -> list[Range]:
    return [(at(number, epoch), low, high) for number, low, high in equal_ranges(count, first)]


case(
    "replaces_all",
    create_scope(),
    create_stream(retention=(BY_TIME, 1, 2), timeout=5, rollover=6),
    update_stream(scaling=(BY_EVENTS, 10, 2)),
    stream_configuration().gives(configuration(scaling=(2, 10, 2, 1))),
)
case(
    "adds_retention",
    *STREAM,
    update_stream(),
    update_stream(retention=(BY_TIME, 1000, 2000), timeout=7, rollover=8),
    update_stream(retention=(BY_TIME, 1000, 2000), timeout=7, rollover=8),
    stream_configuration().gives(configuration(retention=(1, 1000, 2000), timeout=7, rollover=8)),
    current_segments().gives(equal_ranges(1)),
)
case("missing", *missing(update_stream, "STREAM_NOT_FOUND"), update_stream(rollover=-1).gives(MALFORMED))
case(
    "sealed_and_deleted",
    *STREAM,
    seal(),
    update_stream(segments=3, timeout=1, tags=["red"]).gives("STREAM_SEALED"),
    stream_configuration().gives(configuration()),
    delete_stream(),
    update_stream().gives("STREAM_NOT_FOUND"),
)
case(
    "malformed",
    *STREAM,
    update_stream(rollover=-1).gives(MALFORMED),
    update_stream(scaling=(7, 0, 0)).gives(MALFORMED),
    update_stream(retention=(7, 0, 0)).gives(MALFORMED),
)

case(
    "to_more_segments",
    *STREAM,
    update_stream(segments=3),
    current_segments().gives(_equal_of_epoch(3, 1, 1)),
    epoch_segments(0).gives([(0, 0.0, 1.0)]),
    head().gives({0: 0}),
    fate(0).gives("sealed"),
)
case(
    "to_49_segments",
    *STREAM,
    update_stream(segments=49),
    current_segments().gives([*_equal_of_epoch(49, 1, 1)[:-1], (at(49, 1), 48 * (1.0 / 49), 1.0)]),
    peer_not_called="its last range ends just below 1.0, so it refuses to replace the old ones and stays in UPDATING",
)
case(
    "to_more_and_less",
    *STREAM,
    update_stream(segments=2),
    update_stream(segments=1),
    current_segments().gives([(at(3, 2), 0.0, 1.0)]),
    following(at(1, 1)).gives({at(3, 2): (0.0, 1.0, [at(1, 1), at(2, 1)])}),
)
case(
    "to_a_least_below_what_is_there",
    create_scope(),
    create_stream(segments=4),
    update_stream(scaling=(BY_EVENTS, 10, 2), segments=2),
    current_segments().gives(equal_ranges(4)),
    epoch_segments(1).gives(NOT_FOUND),
)
case(
    "to_a_least_above_what_is_there",
    create_scope(),
    create_stream(segments=2, scaling=(BY_EVENTS, 10, 2)),
    update_stream(scaling=(BY_EVENTS, 10, 2), segments=3),
    current_segments().gives(_equal_of_epoch(3, 2, 1)),
)
case(
    "of_a_scaled_stream_back_to_its_count",
    *STREAM,
    scale([0], [(0.0, 0.25), (0.25, 1.0)]),
    current_segments().until([(at(1, 1), 0.0, 0.25), (at(2, 1), 0.25, 1.0)]),
    update_stream(segments=1, timeout=3),
    current_segments().gives([(at(3, 2), 0.0, 1.0)]),
)
