"""sealStream, deleteStream, and what a name's next stream looks like (controller-grpc-api 5.3; semantics 1.4, 1.5)."""

from conformance.answers import MALFORMED, NOT_FOUND
from conformance.calls import (
    at,
    create_scope,
    create_stream,
    current_segments,
    delete_scope,
    delete_stream,
    epoch_segments,
    following,
    head,
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

END = Subject("end_stream")
case = END.case

case("seal", create_scope(), create_stream(segments=2), seal(), current_segments().gives([]), fate(1).gives("sealed"))
case("seal_twice", create_scope(), create_stream(), seal(), seal())
case("seal_missing", create_scope(), seal().gives("STREAM_NOT_FOUND"))
case("seal_in_missing_scope", seal().gives("STREAM_NOT_FOUND"))
case("seal_without_name", create_scope(), seal("").gives(MALFORMED))
case("seal_without_scope", seal("st", "").gives(MALFORMED))
case("seal_deleted", create_scope(), create_stream(), seal(), delete_stream(), seal().gives("STREAM_NOT_FOUND"))
case(
    "sealed_still_tells",
    create_scope(),
    create_stream(segments=2),
    seal(),
    head().gives({0: 0, 1: 0}),
    epoch_segments(0).gives(equal_ranges(2)),
    following(0).gives({}),
    segment_valid(0).gives(False),
)
case("seal_leaves_the_mark_stream", create_scope(), create_stream(), seal(), fate(0, "_MARKst").gives("open"))

case(
    "delete",
    create_scope(),
    create_stream(),
    seal(),
    delete_stream(),
    stream_exists().gives(False),
    fate(0).gives("gone"),
)
case(
    "delete_takes_the_mark_stream",
    create_scope(),
    create_stream(),
    seal(),
    delete_stream(),
    fate(0, "_MARKst").gives("gone"),
    stream_exists("_MARKst").gives(False),
)
case("delete_unsealed", create_scope(), create_stream(), delete_stream().gives("STREAM_NOT_SEALED"), stream_exists())
case("delete_missing", create_scope(), delete_stream().gives("STREAM_NOT_FOUND"))
case("delete_in_missing_scope", delete_stream().gives("STREAM_NOT_FOUND"))
case(
    "delete_twice", create_scope(), create_stream(), seal(), delete_stream(), delete_stream().gives("STREAM_NOT_FOUND")
)
case("delete_without_name", create_scope(), delete_stream("").gives(MALFORMED))
case("delete_without_scope", delete_stream("st", "").gives(MALFORMED))
case(
    "deleted_tells_nothing",
    create_scope(),
    create_stream(),
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
    create_scope(),
    create_stream(segments=1),
    update_stream(segments=2),
    update_stream(segments=1),
    seal(),
    delete_stream(),
    fate(0).gives("gone"),
    fate(at(1, 1)).gives("gone"),
    fate(at(3, 2)).gives("gone"),
)

case(
    "again_counts_on",
    create_scope(),
    create_stream(segments=2),
    seal(),
    delete_stream(),
    create_stream(segments=2, timeout=4),
    current_segments().gives(equal_ranges(2, first=2)),
    head().gives({2: 0, 3: 0}),
    stream_configuration().gives(configuration(scaling=(0, 0, 0, 2), timeout=4)),
    current_segments("_MARKst").gives([(1, 0.0, 1.0)]),
)
case(
    "again_and_again_counts_on",
    create_scope(),
    create_stream(),
    seal(),
    delete_stream(),
    create_stream(),
    seal(),
    delete_stream(),
    create_stream(),
    current_segments().gives([(2, 0.0, 1.0)]),
)
case(
    "again_after_scaling_begins_at_epoch_0",
    create_scope(),
    create_stream(segments=1),
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
    "again_in_a_new_scope_of_the_name",
    create_scope(),
    create_stream(),
    seal(),
    delete_stream(),
    delete_scope(),
    create_scope(),
    create_stream(),
    current_segments().gives([(1, 0.0, 1.0)]),
)
case(
    "again_is_writable",
    create_scope(),
    create_stream(),
    write(10),
    seal(),
    delete_stream(),
    create_stream(),
    write(20, segment=1),
)
