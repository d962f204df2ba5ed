"""noteTimestampFromWriter and removeWriter (controller-grpc-api 5.7, background-and-other-workflows 3.2)."""

from functools import partial

from conformance.answers import NOT_FOUND, UNKNOWN
from conformance.calls import TWO_SEGMENTS, at, create_stream, delete_stream, missing, seal
from conformance.case import Subject
from conformance.group_calls import note_time, remove_writer

WRITERS = Subject("writer")
case = WRITERS.case

_EMPTY = "the original keeps writers in a table that takes no empty key; ours is a name like any other"

case(
    "note",
    *TWO_SEGMENTS,
    note_time(10, {0: 5, 1: 5}),
    note_time(10, {0: 5, 1: 5}),
    note_time(9, {0: 6}).gives("INVALID_TIME"),
    note_time(9, {0: 4}).gives("INVALID_TIME"),
    note_time(20, {0: 4}).gives("INVALID_POSITION"),
    note_time(20, {0: 9, 1: 4}).gives("INVALID_POSITION"),
    note_time(11, {0: 5}),
    note_time(20, {0: 6}),
)
case("note_elsewhere_then_back", *TWO_SEGMENTS, note_time(10, {0: 5}), note_time(20, {1: 0}), note_time(30, {0: 1}))
case("note_then_without_position", *TWO_SEGMENTS, note_time(10, {}), note_time(20, {0: 5}), note_time(30, {}))
case("note_negative_time", *TWO_SEGMENTS, note_time(-(2**63), {0: 1}), note_time(-10, {0: 1}))
case("note_of_unknown_segment", *TWO_SEGMENTS, note_time(10, {at(7, 7): 1}))
case("note_by_two", *TWO_SEGMENTS, note_time(10, {0: 5}), note_time(5, {0: 1}, writer="other"))
case(
    "note_by_nobody",
    *TWO_SEGMENTS,
    note_time(10, {0: 1}, writer="").differs(peer=UNKNOWN, sluice="SUCCESS", why=_EMPTY),
)
case("note_missing", *missing(partial(note_time, 10, {0: 1}, "w"), NOT_FOUND))
case("note_on_sealed", *TWO_SEGMENTS, seal(), note_time(10, {0: 1}))
case(
    "note_on_next_stream_of_the_name",
    *TWO_SEGMENTS,
    note_time(10, {0: 5}),
    seal(),
    delete_stream(),
    create_stream(),
    note_time(1, {2: 0}),
)

case("remove_twice", *TWO_SEGMENTS, note_time(10, {0: 1}), remove_writer(), remove_writer())
case("remove_unknown", *TWO_SEGMENTS, remove_writer().gives("UNKNOWN_WRITER"))
case("remove_missing", *missing(partial(remove_writer, "w"), "UNKNOWN_WRITER"))
case(
    "remove_nobody",
    *TWO_SEGMENTS,
    remove_writer("").differs(peer="INTERNAL_ERROR", sluice="UNKNOWN_WRITER", why=_EMPTY),
)
case(
    "removed_comes_back",
    *TWO_SEGMENTS,
    note_time(10, {0: 5}),
    remove_writer(),
    note_time(9, {0: 6}).gives("INVALID_TIME"),
    note_time(20, {0: 6}),
)
