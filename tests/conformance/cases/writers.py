"""noteTimestampFromWriter and removeWriter (controller-grpc-api 5.7, background-and-other-workflows 3.2)."""

from conformance.answers import MALFORMED, NOT_FOUND, UNKNOWN
from conformance.calls import at, create_scope, create_stream, delete_stream, seal
from conformance.case import Step, Subject
from conformance.group_calls import note_time, remove_writer

WRITERS = Subject("writer")
case = WRITERS.case

_EMPTY = "the original keeps writers in a table that takes no empty key; ours is a name like any other"

_STREAM: tuple[Step, ...] = (create_scope(), create_stream(segments=2))

case("note", *_STREAM, note_time(10, {0: 1}))
case("note_on", *_STREAM, note_time(10, {0: 1}), note_time(20, {0: 2}))
case("note_the_same", *_STREAM, note_time(10, {0: 1}), note_time(10, {0: 1}))
case("note_earlier", *_STREAM, note_time(10, {0: 1}), note_time(9, {0: 2}).gives("INVALID_TIME"))
case("note_back", *_STREAM, note_time(10, {0: 5}), note_time(20, {0: 4}).gives("INVALID_POSITION"))
case(
    "note_one_forth_one_back",
    *_STREAM,
    note_time(10, {0: 5, 1: 5}),
    note_time(20, {0: 9, 1: 4}).gives("INVALID_POSITION"),
)
case("note_earlier_and_back", *_STREAM, note_time(10, {0: 5}), note_time(9, {0: 4}).gives("INVALID_TIME"))
case(
    "note_refused_changes_nothing",
    *_STREAM,
    note_time(10, {0: 5}),
    note_time(20, {0: 4}).gives("INVALID_POSITION"),
    note_time(11, {0: 5}),
)
case("note_elsewhere", *_STREAM, note_time(10, {0: 5}), note_time(20, {1: 0}))
case("note_elsewhere_then_back", *_STREAM, note_time(10, {0: 5}), note_time(20, {1: 0}), note_time(30, {0: 1}))
case("note_without_position", *_STREAM, note_time(10, {}))
case("note_then_without_position", *_STREAM, note_time(10, {0: 5}), note_time(20, {}))
case("note_negative_time", *_STREAM, note_time(-10, {0: 1}))
case("note_least_time", *_STREAM, note_time(-(2**63), {0: 1}))
case("note_of_unknown_segment", *_STREAM, note_time(10, {at(7, 7): 1}))
case("note_by_two", *_STREAM, note_time(10, {0: 5}), note_time(5, {0: 1}, writer="other"))
case("note_by_nobody", *_STREAM, note_time(10, {0: 1}, writer="").differs(peer=UNKNOWN, sluice="SUCCESS", why=_EMPTY))
case("note_on_missing_stream", create_scope(), note_time(10, {0: 1}).gives(NOT_FOUND))
case("note_in_missing_scope", note_time(10, {0: 1}).gives(NOT_FOUND))
case("note_without_name", create_scope(), note_time(10, {0: 1}, stream="").gives(MALFORMED))
case("note_without_scope", note_time(10, {0: 1}, scope="").gives(MALFORMED))
case("note_on_sealed", *_STREAM, seal(), note_time(10, {0: 1}))
case(
    "note_on_next_stream_of_the_name",
    *_STREAM,
    note_time(10, {0: 5}),
    seal(),
    delete_stream(),
    create_stream(),
    note_time(1, {2: 0}),
)

case("remove", *_STREAM, note_time(10, {0: 1}), remove_writer())
case("remove_twice", *_STREAM, note_time(10, {0: 1}), remove_writer(), remove_writer())
case("remove_unknown", *_STREAM, remove_writer().gives("UNKNOWN_WRITER"))
case("remove_on_missing_stream", create_scope(), remove_writer().gives("UNKNOWN_WRITER"))
case("remove_in_missing_scope", remove_writer().gives("UNKNOWN_WRITER"))
case("remove_without_name", create_scope(), remove_writer("w", "").gives(MALFORMED))
case("remove_without_scope", remove_writer("w", "st", "").gives(MALFORMED))
case("remove_nobody", *_STREAM, remove_writer("").differs(peer="INTERNAL_ERROR", sluice="UNKNOWN_WRITER", why=_EMPTY))
case("removed_comes_back", *_STREAM, note_time(10, {0: 5}), remove_writer(), note_time(20, {0: 6}))
case(
    "removed_comes_back_earlier",
    *_STREAM,
    note_time(10, {0: 5}),
    remove_writer(),
    note_time(9, {0: 6}).gives("INVALID_TIME"),
)
