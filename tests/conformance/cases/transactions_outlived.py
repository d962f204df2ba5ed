"""Transactions whose stream ends: sealed, deleted, made anew (semantics 1.5, 3.8, 6.4, 6.9)."""

from conformance.answers import INTERNAL, NOT_FOUND, Refused, Such
from conformance.calls import (
    STREAM,
    at,
    check_scale,
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
    LEASE_MS,
    LEAST_LEASE_MS,
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

_SCALED: tuple[Step, ...] = (scale([0], [(0.0, 0.5), (0.5, 1.0)]), check_scale(0).until("SUCCESS"))

_ENDED: tuple[Step, ...] = (*STREAM, begin("c"), put("x", "c"), commit("c"), *committed("c"), begin("a"), seal())
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
    "sealed_with_open_one_loses_its_events",
    *STREAM,
    begin(),
    put("x"),
    seal(),
    state().gives("ABORTED"),
    current_segments().gives([]),
    part().gives("gone"),
    events().gives([]),
    put("y").gives(NOT_WRITTEN),
    fate(0).gives("sealed"),
    seal(),
    state().gives("ABORTED"),
    *(begin("b", lease=lease).gives(INTERNAL) for lease in (LEASE_MS, LEASE_MS, LEAST_LEASE_MS)),
)
case(
    "sealed_with_open_ones_of_two_epochs",
    *STREAM,
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
    "sealed_at_once_with_commit",
    *STREAM,
    begin(),
    put("x"),
    together(commit(), seal()).gives(
        Such("seals, and commits or not", lambda answer: answer[0] in ("SUCCESS", "FAILURE") and answer[1] == "SUCCESS")
    ),
    state().until(Such("is done", lambda answer: answer in ("COMMITTED", "ABORTED"))),
    begin("b").gives(INTERNAL),
)
case(
    "sealed_with_all_kinds",
    *STREAM,
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
    *STREAM,
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
case(
    "begun_at_once_with_seal",
    *STREAM,
    together(seal(), begin(), begin("b")).gives(
        Such(
            "seals, and begins or not",
            lambda answer: (
                answer[0] == "SUCCESS"
                and all(one == (0, equal_ranges(1)) or isinstance(one, Refused) for one in answer[1:])
            ),
        )
    ),
    begin("c").gives(INTERNAL),
    current_segments().gives([]),
)
case(
    "deleted_with_open_one_only_when_sealed",
    *STREAM,
    begin(),
    delete_stream().gives("STREAM_NOT_SEALED"),
    state(),
    ping(),
    commit(),
    *committed("a"),
)
case(
    "sealed_deleted_and_made_anew_tells_as_before",
    *_ENDED,
    *_TELLS_AS_BEFORE,
    delete_stream(),
    *_TELLS_AS_BEFORE,
    part("a").gives("gone"),
    part("c").gives("gone"),
    begin("b").gives(NOT_FOUND),
    create_stream(),
    *_TELLS_AS_BEFORE,
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
    *STREAM,
    *_TELLS_AS_BEFORE,
    begin("b"),
)
case(
    "scope_deleted_with_open_one",
    *STREAM,
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
