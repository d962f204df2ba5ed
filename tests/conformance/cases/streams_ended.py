"""sealStream, deleteStream, and what a name's next stream looks like (controller-grpc-api 5.3; semantics 1.4, 1.5)."""

from conformance.answers import NOT_FOUND
from conformance.calls import (
    STREAM,
    TWO_SEGMENTS,
    at,
    create_stream,
    current_segments,
    delete_scope,
    delete_stream,
    epoch_segments,
    following,
    head,
    missing,
    scale,
    seal,
    segment_valid,
    stream_configuration,
    stream_exists,
    truncate,
    update_stream,
)
from conformance.case import Subject
from conformance.cases.streams_created import configuration, equal_ranges
from conformance.data import fate, write
from conformance.txn_calls import twice_at_once

END = Subject("end_stream")
case = END.case

case(
    "seal",
    *TWO_SEGMENTS,
    seal(),
    current_segments().gives([]),
    fate(1).gives("sealed"),
    fate(0, "_MARKst").gives("open"),
    seal(),
    head().gives({0: 0, 1: 0}),
    epoch_segments(0).gives(equal_ranges(2)),
    following(0).gives({}),
    segment_valid(0).gives(False),
)
case("seal_missing", *missing(seal, "STREAM_NOT_FOUND"))

case(
    "delete",
    *STREAM,
    delete_stream().gives("STREAM_NOT_SEALED"),
    stream_exists(),
    seal(),
    delete_stream(),
    stream_exists().gives(False),
    fate(0).gives("gone"),
    fate(0, "_MARKst").gives("gone"),
    stream_exists("_MARKst").gives(False),
    delete_stream().gives("STREAM_NOT_FOUND"),
    seal().gives("STREAM_NOT_FOUND"),
)
case("delete_twice_at_once", *STREAM, seal(), twice_at_once(delete_stream(), "STREAM_NOT_FOUND"))
case("delete_missing", *missing(delete_stream, "STREAM_NOT_FOUND"))
case(
    "deleted_tells_nothing",
    *STREAM,
    seal(),
    delete_stream(),
    current_segments().gives(NOT_FOUND),
    head().gives(NOT_FOUND),
    epoch_segments(0).gives(NOT_FOUND),
    stream_configuration().gives(NOT_FOUND),
    truncate({0: 0}).gives("STREAM_NOT_FOUND"),
)
case(
    "delete_of_many_epochs",
    *STREAM,
    update_stream(segments=2),
    update_stream(segments=1),
    seal(),
    delete_stream(),
    *(fate(segment).gives("gone") for segment in (0, at(1, 1), at(3, 2))),
)

case(
    "again_counts_on",
    *TWO_SEGMENTS,
    seal(),
    delete_stream(),
    create_stream(segments=2, timeout=4),
    current_segments().gives(equal_ranges(2, first=2)),
    head().gives({2: 0, 3: 0}),
    stream_configuration().gives(configuration(scaling=(0, 0, 0, 2), timeout=4)),
    current_segments("_MARKst").gives([(1, 0.0, 1.0)]),
)
case(
    "again_after_scaling_begins_at_epoch_0",
    *STREAM,
    scale([0], [(0.0, 0.5), (0.5, 1.0)]),
    current_segments().until([(at(1, 1), 0.0, 0.5), (at(2, 1), 0.5, 1.0)]),
    seal(),
    delete_stream(),
    create_stream(),
    current_segments().gives([(3, 0.0, 1.0)]),
    epoch_segments(0).gives([(3, 0.0, 1.0)]),
    epoch_segments(1).gives(NOT_FOUND),
)
case(
    "again_and_again_and_in_a_new_scope_of_the_name",
    *STREAM,
    write(10),
    seal(),
    delete_stream(),
    create_stream(),
    write(20, segment=1),
    seal(),
    delete_stream(),
    delete_scope(),
    *STREAM,
    current_segments().gives([(2, 0.0, 1.0)]),
)
