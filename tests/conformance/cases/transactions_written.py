"""What a transaction's events go through: apart until it is committed, then in its stream in the order of the commits.

Also the marks of writers that a commit leaves. Semantics 6.6 to 6.8; segment-store-wire-protocol 7.5;
controller-grpc-api 5.6, 5.7.
"""

from conformance.calls import STREAM, TWO_SEGMENTS, check_scale, create_scope, create_stream, head, scale, truncate
from conformance.case import Step, Subject
from conformance.data import fate, write
from conformance.group_calls import note_time, remove_writer
from conformance.txn_calls import (
    NO_TIMESTAMP,
    NOT_WRITTEN,
    abort,
    aborted,
    begin,
    commit,
    committed,
    events,
    part,
    put,
    state,
    together,
)

WRITTEN = Subject("txn_written")
case = WRITTEN.case

case(
    "not_seen_before_the_commit",
    *TWO_SEGMENTS,
    begin(),
    put("x", segment=1),
    put("y", segment=0),
    put("z", segment=1),
    events(1).gives([]),
    commit(),
    *committed("a"),
    events(0).gives(["y"]),
    events(1).gives(["x", "z"]),
    part(segment=0).gives("gone"),
    put("more").gives(NOT_WRITTEN),
    begin("b"),
    put("later", "b", 1),
    commit("b"),
    *committed("b"),
    events(0).gives(["y"]),
    events(1).gives(["x", "z", "later"]),
)
case("nothing", *TWO_SEGMENTS, begin(), commit(), *committed("a"), events().gives([]), part().until("gone"), write(9))
case(
    "aborted_is_gone",
    *TWO_SEGMENTS,
    begin(),
    put("x"),
    abort(),
    *aborted("a"),
    events().gives([]),
    part().gives("gone"),
    part(segment=1).gives("gone"),
    put("y").gives(NOT_WRITTEN),
)
case(
    "behind_what_was_written_meanwhile",
    *TWO_SEGMENTS,
    begin(),
    put("x"),
    write(20),
    commit(),
    *committed("a"),
    events().gives(["x" * 12, "x"]),
)
case(
    "in_the_order_of_the_commits",
    *TWO_SEGMENTS,
    *(step for name in "abcdef" for step in (begin(name), put(name, name), put(name, name, 1))),
    commit("d"),
    commit("b"),
    abort("e"),
    commit("a"),
    commit("d"),
    abort("f"),
    commit("c"),
    *committed(*"abcd"),
    *aborted("e", "f"),
    events(0).gives(["d", "b", "a", "c"]),
    events(1).gives(["d", "b", "a", "c"]),
)

_MANY = tuple(f"t{number}" for number in range(120))
case(
    "more_than_fit_in_a_batch",
    *STREAM,
    together(*(begin(name) for name in _MANY)).gives([(0, [(0, 0.0, 1.0)])] * len(_MANY)),
    together(*(put(name, name) for name in _MANY)).gives(["written"] * len(_MANY)),
    *(commit(name) for name in _MANY),
    *committed(*_MANY),
    events().gives(list(_MANY)),
)
case(
    "on_internal_stream",
    create_scope(),
    create_stream("_st"),
    begin(stream="_st"),
    put("x", stream="_st"),
    commit("a", "_st"),
    state("a", "_st").until("COMMITTED"),
    events(0, "_st").gives(["x"]),
)
case(
    "on_mark_stream",
    *STREAM,
    begin(stream="_MARKst"),
    commit("a", "_MARKst"),
    state("a", "_MARKst").until("COMMITTED"),
)
case(
    "into_a_truncated_segment",
    *STREAM,
    write(50),
    begin(),
    put("x"),
    truncate({0: 50}),
    commit(),
    *committed("a"),
    head().gives({0: 50}),
    truncate({0: 59}),
    fate(0).gives("open from 59"),
)
case(
    "open_while_the_stream_scales",
    *TWO_SEGMENTS,
    begin(),
    scale([1], [(0.5, 0.75), (0.75, 1.0)]),
    check_scale(0).until("SUCCESS"),
    put("x"),
    put("y", segment=1),
    state(),
    abort(),
    *aborted("a"),
    part(segment=1).gives("gone"),
)

_NO_TIME = (
    "a commit without a time records no time: the original's lies before all times and holds up the stream's first "
    "watermark"
)
# The events make segment 0 13 bytes longer.
_MARKED: tuple[Step, ...] = (*TWO_SEGMENTS, begin(), put("hello"))
case(
    "by_the_writer_of_the_first_commit",
    *_MARKED,
    commit(writer="w", timestamp=100),
    commit(writer="v", timestamp=100),
    *committed("a"),
    note_time(99, {0: 13}).gives("INVALID_TIME"),
    note_time(100, {0: 12}).gives("INVALID_POSITION"),
    note_time(100, {0: 13}),
    remove_writer(),
    remove_writer("v").gives("UNKNOWN_WRITER"),
)
case(
    "by_a_writer_without_a_time",
    *_MARKED,
    commit(writer="w", timestamp=NO_TIMESTAMP),
    *committed("a"),
    note_time(NO_TIMESTAMP, {0: 12}).differs(peer="INVALID_POSITION", sluice="SUCCESS", why=_NO_TIME),
    note_time(NO_TIMESTAMP, {0: 13}),
    remove_writer(),
)
case(
    "by_nobody",
    *_MARKED,
    commit(timestamp=100),
    *committed("a"),
    remove_writer().gives("UNKNOWN_WRITER"),
    note_time(1, {0: 0}),
)
case(
    "by_a_writer_marks_segments_without_events",
    *TWO_SEGMENTS,
    write(50, segment=1),
    begin(),
    put("hello"),
    commit(writer="w", timestamp=100),
    *committed("a"),
    note_time(100, {1: 49}).gives("INVALID_POSITION"),
    note_time(100, {1: 50}),
)
case(
    "by_a_writer_twice_then_earlier",
    *_MARKED,
    begin("b"),
    put("world", "b"),
    begin("c"),
    put("again", "c"),
    commit(writer="w", timestamp=100),
    *committed("a"),
    commit("b", writer="w", timestamp=200),
    *committed("b"),
    note_time(199, {0: 26}).gives("INVALID_TIME"),
    note_time(200, {0: 25}).gives("INVALID_POSITION"),
    note_time(200, {0: 26}),
    commit("c", writer="w", timestamp=150),
    *committed("c"),
    note_time(199, {0: 39}).gives("INVALID_TIME"),
    note_time(200, {0: 26}),
)
case(
    "by_two_writers",
    *_MARKED,
    begin("b"),
    commit(writer="w", timestamp=100),
    commit("b", writer="v", timestamp=50),
    *committed("a", "b"),
    note_time(99, {0: 13}).gives("INVALID_TIME"),
    note_time(49, {0: 13}, "v").gives("INVALID_TIME"),
    note_time(50, {0: 13}, "v"),
)
case(
    "by_a_writer_and_aborted",
    *_MARKED,
    abort(),
    *aborted("a"),
    commit(writer="w", timestamp=100).gives("FAILURE"),
    remove_writer().gives("UNKNOWN_WRITER"),
)
case(
    "by_a_writer_that_was_removed",
    *_MARKED,
    note_time(100, {0: 0}),
    remove_writer(),
    commit(writer="w", timestamp=200),
    *committed("a"),
    note_time(199, {0: 13}).gives("INVALID_TIME"),
)
