"""Transactions whose stream ends: sealed, deleted, made anew (semantics 1.5, 3.8, 6.4, 6.9)."""

from conformance.answers import INTERNAL, NOT_FOUND, Refused, Such
from conformance.calls import (
    at,
    check_scale,
    create_scope,
    create_stream,
    current_segments,
    delete_scope,
    delete_scope_recursive,
    delete_stream,
    epoch_segments,
    scale,
    seal,
    stream_exists,
)
from conformance.case import Step, Subject
from conformance.cases.streams_created import equal_ranges
from conformance.data import fate
from conformance.txn_calls import (
    NOT_WRITTEN,
    abort,
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

# Alone, because one case deletes a scope recursively (see scopes_recursive).
OUTLIVED = Subject("txn_outlived", alone=True)
case = OUTLIVED.case

_STREAM: tuple[Step, ...] = (create_scope(), create_stream())
_SCALED: tuple[Step, ...] = (scale([0], [(0.0, 0.5), (0.5, 1.0)]), check_scale(0).until("SUCCESS"))

_ENDED: tuple[Step, ...] = (*_STREAM, begin("c"), put("x", "c"), commit("c"), *committed("c"), begin("a"), seal())
"""A sealed stream with one transaction that is committed, `c`, and one that was open, `a`."""

_TELLS_AS_BEFORE: tuple[Step, ...] = (
    state("a").gives("ABORTED"),
    state("c").gives("COMMITTED"),
    ping("a").gives("ABORTED"),
    ping("c").gives("COMMITTED"),
    commit("a").gives("FAILURE"),
    commit("c"),
    abort("a"),
    abort("c").gives("FAILURE"),
)

case(
    "sealed_with_open_one", *_STREAM, begin(), put("x"), seal(), state().gives("ABORTED"), current_segments().gives([])
)
case(
    "sealed_with_open_one_loses_its_events",
    *_STREAM,
    begin(),
    put("x"),
    seal(),
    part().gives("gone"),
    events().gives([]),
    put("y").gives(NOT_WRITTEN),
    fate(0).gives("sealed"),
)
case(
    "sealed_with_many_open_ones",
    *_STREAM,
    *(begin(f"t{number}") for number in range(12)),
    seal(),
    *(state(f"t{number}").gives("ABORTED") for number in range(12)),
)
case(
    "sealed_with_open_ones_of_two_epochs",
    *_STREAM,
    begin(),
    *_SCALED,
    begin("b"),
    seal(),
    state().gives("ABORTED"),
    state("b").gives("ABORTED"),
    part("a", 0).gives("gone"),
    part("b", 1).gives("gone"),
    epoch_segments(2).gives(NOT_FOUND),
)
case(
    "sealed_with_committing_one",
    *_STREAM,
    begin(),
    put("x"),
    commit(),
    seal(),
    state().gives("COMMITTED"),
    events().gives(["x"]),
)
case(
    "sealed_at_once_with_commit",
    *_STREAM,
    begin(),
    put("x"),
    together(commit(), seal()).gives(
        Such("seals, and commits or not", lambda told: told[0] in ("SUCCESS", "FAILURE") and told[1] == "SUCCESS")
    ),
    state().until(Such("is done", lambda told: told in ("COMMITTED", "ABORTED"))),
    begin("b").gives(INTERNAL),
)
case(
    "sealed_with_all_kinds",
    *_STREAM,
    *(step for name in "abcd" for step in (begin(name), put(name, name))),
    commit("d"),
    commit("b"),
    abort("c"),
    seal(),
    state("a").gives("ABORTED"),
    state("b").gives("COMMITTED"),
    state("c").gives("ABORTED"),
    state("d").gives("COMMITTED"),
    events().gives(["d", "b"]),
)
case(
    "sealed_with_committing_one_of_an_old_epoch",
    *_STREAM,
    begin(),
    begin("b"),
    put("x"),
    *_SCALED,
    commit(),
    seal(),
    state().gives("COMMITTED"),
    state("b").gives("ABORTED"),
    events(at(0, 2)).gives(["x"]),
    epoch_segments(3).gives([(at(1, 3), 0.0, 0.5), (at(2, 3), 0.5, 1.0)]),
    fate(at(1, 3)).gives("sealed"),
    current_segments().gives([]),
)
case("sealed_tells_as_before", *_ENDED, *_TELLS_AS_BEFORE)
case("sealed_twice", *_STREAM, begin(), seal(), seal(), state().gives("ABORTED"))
case(
    "begun_at_once_with_seal",
    *_STREAM,
    together(seal(), begin(), begin("b")).gives(
        Such(
            "seals, and begins or not",
            lambda told: (
                told[0] == "SUCCESS"
                and all(one == (0, equal_ranges(1)) or isinstance(one, Refused) for one in told[1:])
            ),
        )
    ),
    begin("c").gives(INTERNAL),
    current_segments().gives([]),
)
case(
    "begun_on_sealed_again_and_again",
    *_STREAM,
    begin(),
    seal(),
    begin("b").gives(INTERNAL),
    begin("b").gives(INTERNAL),
    begin("b", lease=10_000).gives(INTERNAL),
)

case("deleted_tells_as_before", *_ENDED, delete_stream(), *_TELLS_AS_BEFORE)
case(
    "deleted_with_open_one_only_when_sealed",
    *_STREAM,
    begin(),
    delete_stream().gives("STREAM_NOT_SEALED"),
    state(),
    ping(),
    commit(),
    *committed("a"),
)
case("deleted_is_not_begun_on", *_ENDED, delete_stream(), begin("b").gives(NOT_FOUND))
case("deleted_leaves_no_segment", *_ENDED, delete_stream(), part("a").gives("gone"), part("c").gives("gone"))
case("made_anew_tells_of_those_before", *_ENDED, delete_stream(), create_stream(), *_TELLS_AS_BEFORE)
case(
    "made_anew_has_its_own",
    *_ENDED,
    delete_stream(),
    create_stream(),
    begin("b").gives((0, equal_ranges(1, first=1))),
    put("y", "b", 1),
    commit("b"),
    *committed("b"),
    events(1).gives(["y"]),
    state("a").gives("ABORTED"),
)
case(
    "made_anew_in_a_new_scope",
    *_ENDED,
    delete_stream(),
    delete_scope(),
    state("c").gives("COMMITTED"),
    create_scope(),
    create_stream(),
    *_TELLS_AS_BEFORE,
    begin("b"),
)
case(
    "scope_deleted_with_open_one",
    *_STREAM,
    begin("c"),
    commit("c"),
    *committed("c"),
    begin(),
    delete_scope_recursive(),
    stream_exists().gives(False),
    *_TELLS_AS_BEFORE,
    part().gives("gone"),
    begin("b").gives(NOT_FOUND),
)
