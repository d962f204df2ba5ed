"""Commits of transactions of an epoch that is over: the stream rolls through it once more (semantics 5).

Epochs of most streams here: 0 and 1 of epoch 0; 2 and 3 of epoch 1, made by splitting 1 in the middle; then, of a
commit, epoch 2 with duplicates of 0 and 1, and epoch 3 with duplicates of 0, 2 and 3.
"""

from conformance.answers import NOT_FOUND, Such
from conformance.calls import (
    BY_EVENTS,
    STREAM,
    TWO_SEGMENTS,
    at,
    between,
    check_scale,
    create_stream,
    current_segments,
    cut_valid,
    delete_stream,
    epoch_segments,
    following,
    head,
    refused_scale,
    scale,
    seal,
    segment_valid,
    truncate,
    update_stream,
)
from conformance.case import Step, Subject
from conformance.cases.scaling import HALVES
from conformance.data import fate, write
from conformance.group_calls import note_time
from conformance.txn_calls import (
    NOT_WRITTEN,
    abort,
    aborted,
    begin,
    commit,
    committed,
    events,
    part,
    ping,
    put,
    state,
    together,
)

ROLL = Subject("txn_roll")
case = ROLL.case

_QUARTERS = [(0.5, 0.75), (0.75, 1.0)]
_SCALED: tuple[Step, ...] = (scale([1], _QUARTERS), check_scale(0).until("SUCCESS"))
_OLD: tuple[Step, ...] = (*TWO_SEGMENTS, begin(), put("x", segment=0), put("y", segment=1), *_SCALED)
_ROLLED: tuple[Step, ...] = (*_OLD, commit(), *committed("a"))


def _split_of(epoch: int) -> list[tuple[int, float, float]]:
    return [(at(0, epoch), 0.0, 0.5), (at(2, epoch), 0.5, 0.75), (at(3, epoch), 0.75, 1.0)]


def _halves_of(epoch: int) -> list[tuple[int, float, float]]:
    return [(at(0, epoch), 0.0, 0.5), (at(1, epoch), 0.5, 1.0)]


def _segments(count: int) -> Such:
    return Such(f"has {count} segments", lambda ranges: len(ranges) == count)


case(
    "epochs",
    *_ROLLED,
    current_segments().gives(_split_of(3)),
    epoch_segments(0).gives([(0, 0.0, 0.5), (1, 0.5, 1.0)]),
    epoch_segments(1).gives([(0, 0.0, 0.5), (at(2, 1), 0.5, 0.75), (at(3, 1), 0.75, 1.0)]),
    epoch_segments(2).gives(_halves_of(2)),
    epoch_segments(3).gives(_split_of(3)),
    epoch_segments(4).gives(NOT_FOUND),
    check_scale(0),
    check_scale(1).gives("IN_PROGRESS"),
    check_scale(2),
    check_scale(3).gives("IN_PROGRESS"),
    check_scale(4).gives("INVALID_INPUT"),
)
case(
    "segments",
    *_ROLLED,
    head().gives({0: 0, 1: 0}),
    *(fate(segment).gives("sealed") for segment in (0, 1, at(2, 1), at(3, 1), at(0, 2), at(1, 2))),
    *(fate(segment).gives("open") for segment in (at(0, 3), at(2, 3), at(3, 3))),
    fate(at(1, 3)).gives("gone"),
    *(segment_valid(gone).gives(False) for gone in (0, 1, at(2, 1), at(3, 1), at(0, 2), at(1, 2), at(0, 1), at(1, 3))),
    *(segment_valid(active) for active in (at(0, 3), at(2, 3), at(3, 3))),
    following(0).gives({at(0, 2): (0.0, 0.5, [0])}),
    following(1).gives({at(2, 1): (0.5, 0.75, [1]), at(3, 1): (0.75, 1.0, [1])}),
    following(at(2, 1)).gives({at(1, 2): (0.5, 1.0, [at(2, 1), at(3, 1)])}),
    following(at(3, 1)).gives({at(1, 2): (0.5, 1.0, [at(2, 1), at(3, 1)])}),
    following(at(0, 2)).gives({at(0, 3): (0.0, 0.5, [at(0, 2)])}),
    following(at(1, 2)).gives({at(2, 3): (0.5, 0.75, [at(1, 2)]), at(3, 3): (0.75, 1.0, [at(1, 2)])}),
    following(at(0, 3)).gives({}),
    following(at(2, 3)).gives({}),
)
case(
    "events",
    *_ROLLED,
    events(at(0, 2)).gives(["x"]),
    events(at(1, 2)).gives(["y"]),
    events(0).gives([]),
    events(at(0, 3)).gives([]),
    part(segment=0).gives("gone"),
    part(segment=1).gives("gone"),
    # It has ended for good.
    commit(),
    abort().gives("FAILURE"),
    ping().gives("COMMITTED"),
    put("more").gives(NOT_WRITTEN),
    epoch_segments(4).gives(NOT_FOUND),
    write(20, at(0, 3)),
    write(20, at(3, 3)),
)
case(
    "cuts",
    *_OLD,
    write(20),
    commit(),
    *committed("a"),
    cut_valid({0: 5, 1: 0}),
    cut_valid({0: 20, at(2, 1): 0, at(3, 1): 0}),
    cut_valid({at(0, 2): 0, at(1, 2): 0}),
    cut_valid({0: 20, at(1, 2): 9}),
    cut_valid({at(0, 2): 9, at(2, 3): 0, at(3, 3): 0}),
    cut_valid({at(0, 3): 0, at(2, 3): 0, at(3, 3): 0}),
    cut_valid({at(0, 2): 0}).gives(False),
    cut_valid({0: 0, at(0, 2): 0, at(1, 2): 0}).gives(False),
    cut_valid({at(0, 3): 0, at(2, 3): 0}).gives(False),
    cut_valid({at(0, 2): 0, at(0, 3): 0, at(2, 3): 0, at(3, 3): 0}).gives(False),
    between({0: 0, 1: 0}, {at(0, 3): 0, at(2, 3): 0, at(3, 3): 0}).gives(
        [0, 1, at(2, 1), at(3, 1), at(0, 2), at(1, 2), at(0, 3), at(2, 3), at(3, 3)]
    ),
    between({at(0, 2): 0, at(1, 2): 0}, {}).gives([at(0, 2), at(1, 2), at(0, 3), at(2, 3), at(3, 3)]),
    between({0: 0, 1: 0}, {at(0, 2): 0, at(1, 2): 0}).gives([0, 1, at(2, 1), at(3, 1), at(0, 2), at(1, 2)]),
)
case(
    "truncate_to_the_duplicates_and_behind_them",
    *_ROLLED,
    truncate({at(0, 2): 9, at(1, 2): 0}),
    head().gives({at(0, 2): 9, at(1, 2): 0}),
    *(fate(segment).gives("gone") for segment in (0, 1, at(2, 1))),
    fate(at(0, 2)).gives("sealed from 9"),
    truncate({at(0, 3): 0, at(2, 3): 0, at(3, 3): 0}),
    head().gives({at(0, 3): 0, at(2, 3): 0, at(3, 3): 0}),
    fate(at(0, 2)).gives("gone"),
    fate(at(1, 2)).gives("gone"),
    truncate({at(0, 2): 0, at(1, 2): 0}).gives("FAILURE"),
)
case(
    "then_scale",
    *_ROLLED,
    scale([at(2, 1), at(3, 1)], [(0.5, 1.0)]).gives(refused_scale("PRECONDITION_FAILED")),
    scale([0], [(0.0, 0.25), (0.25, 0.5)]).gives(refused_scale("PRECONDITION_FAILED")),
    current_segments().gives(_split_of(3)),
    scale([at(2, 3), at(3, 3)], [(0.5, 1.0)]).gives(("STARTED", 3, [at(4, 4)], [(0.5, 1.0)])),
    check_scale(3).until("SUCCESS"),
    current_segments().gives([(at(0, 3), 0.0, 0.5), (at(4, 4), 0.5, 1.0)]),
    following(at(2, 3)).gives({at(4, 4): (0.5, 1.0, [at(2, 3), at(3, 3)])}),
    check_scale(1),
    check_scale(2),
    begin("b").gives((4, [(at(0, 4), 0.0, 0.5), (at(4, 4), 0.5, 1.0)])),
    put("z", "b", 0),
    commit("b"),
    *committed("b"),
    events(at(0, 3)).gives(["z"]),
)
case(
    "then_others_of_the_new_epoch",
    *_OLD,
    begin("b").gives((1, _split_of(1))),
    put("z", "b", 0),
    commit(),
    *committed("a"),
    state("b"),
    ping("b"),
    put("zz", "b", 3),
    begin("c").gives((1, _split_of(1))),
    part("c", 0),
    part("c", 2),
    put("zzz", "c", 2),
    commit("b"),
    commit("c"),
    *committed("b", "c"),
    events(at(0, 3)).gives(["z"]),
    events(at(2, 3)).gives(["zzz"]),
    events(at(3, 3)).gives(["zz"]),
    current_segments().gives(_split_of(3)),
    epoch_segments(4).gives(NOT_FOUND),
)
case(
    "twice",
    *TWO_SEGMENTS,
    begin(),
    begin("b"),
    put("x"),
    put("y", "b"),
    *_SCALED,
    commit(),
    *committed("a"),
    commit("b"),
    *committed("b"),
    events(at(0, 2)).gives(["x"]),
    events(at(0, 4)).gives(["y"]),
    epoch_segments(4).gives(_halves_of(4)),
    current_segments().gives(_split_of(5)),
    following(at(0, 3)).gives({at(0, 4): (0.0, 0.5, [at(0, 3)])}),
    following(at(0, 4)).gives({at(0, 5): (0.0, 0.5, [at(0, 4)])}),
    begin("c").gives((1, _split_of(1))),
)
case(
    "of_three_epochs",
    *TWO_SEGMENTS,
    begin("zero"),
    put("of 0", "zero"),
    *_SCALED,
    begin("one"),
    put("of 1", "one"),
    scale([at(2, 1), at(3, 1)], [(0.5, 1.0)]),
    check_scale(1).until("SUCCESS"),
    begin("two").gives((2, [(at(0, 2), 0.0, 0.5), (at(4, 2), 0.5, 1.0)])),
    put("of 2", "two"),
    commit("one"),
    *committed("one"),
    events(at(0, 3)).gives(["of 1"]),
    epoch_segments(3).gives(_split_of(3)),
    current_segments().gives([(at(0, 4), 0.0, 0.5), (at(4, 4), 0.5, 1.0)]),
    commit("zero"),
    *committed("zero"),
    events(at(0, 5)).gives(["of 0"]),
    epoch_segments(5).gives(_halves_of(5)),
    current_segments().gives([(at(0, 6), 0.0, 0.5), (at(4, 6), 0.5, 1.0)]),
    commit("two"),
    *committed("two"),
    events(at(0, 6)).gives(["of 2"]),
)
case(
    "old_and_new_ones_mixed",
    *TWO_SEGMENTS,
    *(step for name in "ab" for step in (begin(name), put(name, name))),
    *_SCALED,
    *(step for name in "np" for step in (begin(name), put(name, name))),
    commit("p"),
    commit("b"),
    commit("n"),
    commit("a"),
    *committed(*"abnp"),
    current_segments().gives(_segments(3)),
    begin("z").gives((1, _split_of(1))),
)
case(
    "after_a_merge",
    *TWO_SEGMENTS,
    begin(),
    put("x", segment=0),
    put("y", segment=1),
    update_stream(scaling=(BY_EVENTS, 10, 2)),
    scale([0, 1], [(0.0, 1.0)]),
    check_scale(0).until("SUCCESS"),
    commit(),
    *committed("a"),
    epoch_segments(2).gives(_halves_of(2)),
    current_segments().gives([(at(2, 3), 0.0, 1.0)]),
    events(at(0, 2)).gives(["x"]),
    events(at(1, 2)).gives(["y"]),
    following(at(2, 1)).gives({at(0, 2): (0.0, 0.5, [at(2, 1)]), at(1, 2): (0.5, 1.0, [at(2, 1)])}),
)
case(
    "after_an_update_that_scales",
    *STREAM,
    begin(),
    put("x"),
    update_stream(segments=2),
    commit(),
    *committed("a"),
    epoch_segments(2).gives([(at(0, 2), 0.0, 1.0)]),
    current_segments().gives([(at(1, 3), 0.0, 0.5), (at(2, 3), 0.5, 1.0)]),
    events(at(0, 2)).gives(["x"]),
    update_stream(segments=2),
    current_segments().gives([(at(1, 3), 0.0, 0.5), (at(2, 3), 0.5, 1.0)]),
    update_stream(segments=1),
    current_segments().gives([(at(3, 4), 0.0, 1.0)]),
)
case(
    "into_itself",
    *STREAM,
    begin(),
    put("x"),
    scale([0], [(0.0, 1.0)]),
    check_scale(0).until("SUCCESS"),
    commit(),
    *committed("a"),
    epoch_segments(2).gives([(at(0, 2), 0.0, 1.0)]),
    current_segments().gives([(at(1, 3), 0.0, 1.0)]),
    following(at(1, 1)).gives({at(0, 2): (0.0, 1.0, [at(1, 1)])}),
)
case(
    "when_the_old_epoch_was_truncated",
    *STREAM,
    write(50),
    begin(),
    put("x"),
    scale([0], HALVES),
    check_scale(0).until("SUCCESS"),
    truncate({at(1, 1): 0, at(2, 1): 0}),
    fate(0).gives("gone"),
    commit(),
    *committed("a"),
    events(at(0, 2)).gives(["x"]),
    head().gives({at(1, 1): 0, at(2, 1): 0}),
    current_segments().gives([(at(1, 3), 0.0, 0.5), (at(2, 3), 0.5, 1.0)]),
)
case(
    "at_once_with_the_scale",
    *TWO_SEGMENTS,
    begin(),
    put("x"),
    together(commit(), scale([1], _QUARTERS)).gives(
        Such("starts both", lambda answer: answer[0] == "SUCCESS" and answer[1][0] == "STARTED")
    ),
    *committed("a"),
    check_scale(0).until("SUCCESS"),
    current_segments().gives(_segments(3)),
    begin("b").gives((1, _split_of(1))),
)
case(
    "begun_at_once_with_the_scale",
    *TWO_SEGMENTS,
    together(begin(), scale([1], _QUARTERS)).gives(
        Such(
            "starts both",
            lambda answer: answer[0] in ((0, _halves_of(0)), (1, _split_of(1))) and answer[1][0] == "STARTED",
        )
    ),
    check_scale(0).until("SUCCESS"),
    put("x"),
    commit(),
    *committed("a"),
    current_segments().gives(_segments(3)),
)
case(
    "of_many_committed_at_once",
    *TWO_SEGMENTS,
    *(step for name in "abcdef" for step in (begin(name), put(name, name))),
    *_SCALED,
    together(*(commit(name) for name in "abcdef")).gives(["SUCCESS"] * 6),
    *committed(*"abcdef"),
    current_segments().gives(_segments(3)),
    part("f").gives("gone"),
)
case(
    "not_of_what_is_aborted",
    *_OLD,
    state(),
    ping(),
    epoch_segments(2).gives(NOT_FOUND),
    segment_valid(at(2, 1)),
    abort(),
    *aborted("a"),
    part().gives("gone"),
    epoch_segments(2).gives(NOT_FOUND),
)
case(
    "then_seal_and_delete_and_the_next_stream_of_the_name",
    *_ROLLED,
    seal(),
    current_segments().gives([]),
    epoch_segments(3).gives(_split_of(3)),
    fate(at(0, 3)).gives("sealed"),
    delete_stream(),
    *(fate(segment).gives("gone") for segment in (0, at(0, 2), at(2, 3))),
    create_stream(segments=1),
    current_segments().gives([(4, 0.0, 1.0)]),
    epoch_segments(1).gives(NOT_FOUND),
)
case(
    "marks_of_writers_are_on_the_duplicates",
    *_OLD,
    commit(writer="w", timestamp=100),
    *committed("a"),
    note_time(99, {at(0, 2): 9}).gives("INVALID_TIME"),
    note_time(100, {at(0, 2): 8}).gives("INVALID_POSITION"),
    note_time(100, {at(0, 2): 9, at(1, 2): 9}),
)
