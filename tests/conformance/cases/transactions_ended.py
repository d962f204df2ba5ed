"""commitTransaction, abortTransaction, checkTransactionState, listCompletedTransactions (controller-grpc-api 5.6).

Semantics 6.1, 6.4, 6.9.
"""

from conformance.answers import MALFORMED, Such
from conformance.calls import create_scope, create_stream, seal
from conformance.case import Step, Subject
from conformance.txn_calls import (
    NEVER_GIVEN,
    abort,
    aborted,
    begin,
    commit,
    committed,
    completed,
    part,
    ping,
    state,
    together,
)

END = Subject("txn_end")
case = END.case

_STREAM: tuple[Step, ...] = (create_scope(), create_stream())

_LIST = (
    "the original reads only the oldest of its lists, and if a transaction of another stream is among the newest of "
    "that it answers with nothing (semantics C7)"
)


def _all_completed(outcomes: dict[str, str], stream: str = "st") -> Step:
    return completed(stream).differs(
        peer=Such("is empty or the same", lambda told: told in ({}, outcomes)), sluice=outcomes, why=_LIST
    )


case("state_on_the_way_to_commit", *_STREAM, begin(), state(), commit(), *committed("a"))
case("state_on_the_way_to_abort", *_STREAM, begin(), state(), abort(), *aborted("a"))
case(
    "state_right_after_commit",
    *_STREAM,
    begin(),
    commit(),
    state().gives(Such("is committing or more", lambda told: told in ("COMMITTING", "COMMITTED"))),
    *committed("a"),
)
case(
    "state_right_after_abort",
    *_STREAM,
    begin(),
    abort(),
    state().gives(Such("is aborting or more", lambda told: told in ("ABORTING", "ABORTED"))),
    *aborted("a"),
)

case("commit_twice", *_STREAM, begin(), commit(), commit(), *committed("a"), commit(), state().gives("COMMITTED"))
case("abort_twice", *_STREAM, begin(), abort(), abort(), *aborted("a"), abort(), state().gives("ABORTED"))
case("commit_then_abort_at_once", *_STREAM, begin(), commit(), abort().gives("FAILURE"), *committed("a"))
case("abort_then_commit_at_once", *_STREAM, begin(), abort(), commit().gives("FAILURE"), *aborted("a"))
case(
    "commit_then_abort",
    *_STREAM,
    begin(),
    commit(),
    *committed("a"),
    abort().gives("FAILURE"),
    state().gives("COMMITTED"),
)
case(
    "abort_then_commit",
    *_STREAM,
    begin(),
    abort(),
    *aborted("a"),
    commit().gives("FAILURE"),
    state().gives("ABORTED"),
)
case("commit_after_ping", *_STREAM, begin(), ping(), commit(), *committed("a"))
case("abort_after_ping", *_STREAM, begin(), ping(), abort(), *aborted("a"))
case(
    "one_leaves_others",
    *_STREAM,
    begin(),
    begin("b"),
    begin("c"),
    commit("b"),
    abort("c"),
    *committed("b"),
    *aborted("c"),
    state(),
    part(),
)
case(
    "two_commits_at_once",
    *_STREAM,
    begin(),
    together(commit(), commit()).gives(["SUCCESS", "SUCCESS"]),
    *committed("a"),
)
case(
    "three_aborts_at_once",
    *_STREAM,
    begin(),
    together(abort(), abort(), abort()).gives(["SUCCESS"] * 3),
    *aborted("a"),
)
case(
    "commit_and_abort_at_once",
    *_STREAM,
    begin(),
    together(commit(), abort()).gives(Such("lets one win", lambda told: sorted(told) == ["FAILURE", "SUCCESS"])),
    state().until(Such("is done", lambda told: told in ("COMMITTED", "ABORTED"))),
)
case(
    "twenty_commits_at_once",
    *_STREAM,
    *(begin(f"t{number}") for number in range(20)),
    together(*(commit(f"t{number}") for number in range(20))).gives(["SUCCESS"] * 20),
    *committed(*(f"t{number}" for number in range(20))),
)

_OF_UNKNOWN: tuple[tuple[str, tuple[int, int] | None], ...] = (
    ("unknown", NEVER_GIVEN),
    ("zeros", (0, 0)),
    ("unknown_of_an_epoch_to_come", (7 << 32, 1)),
    ("negative_low_bits", (0, -1)),
    ("negative_high_bits", (-1, 1)),
    ("negative", (-1, -1)),
    ("no_id", None),
)
for _name, _id in _OF_UNKNOWN:
    case(f"commit_{_name}", *_STREAM, commit(_id).gives("FAILURE"), state(_id).gives("UNKNOWN"))
    case(f"abort_{_name}", *_STREAM, abort(_id).gives("FAILURE"), state(_id).gives("UNKNOWN"))
    case(f"state_{_name}", *_STREAM, begin(), state(_id).gives("UNKNOWN"))

case(
    "of_another_stream",
    *_STREAM,
    create_stream("other"),
    begin(stream="other"),
    commit().gives("FAILURE"),
    abort().gives("FAILURE"),
    state().gives("UNKNOWN"),
    state("a", "other"),
    commit("a", "other"),
    state("a", "other").until("COMMITTED"),
    commit().gives("FAILURE"),
    state().gives("UNKNOWN"),
)
case(
    "of_a_stream_of_the_name_in_another_scope",
    *_STREAM,
    create_scope("elsewhere"),
    create_stream("st", "elsewhere"),
    begin("a", "st", "elsewhere"),
    abort().gives("FAILURE"),
    state().gives("UNKNOWN"),
    state("a", "st", "elsewhere"),
)
case("commit_on_missing_stream", create_scope(), commit(NEVER_GIVEN).gives("FAILURE"))
case("commit_in_missing_scope", commit(NEVER_GIVEN).gives("FAILURE"))
case("commit_without_name", create_scope(), commit(NEVER_GIVEN, "").gives(MALFORMED))
case("commit_without_scope", commit(NEVER_GIVEN, "st", "").gives(MALFORMED))
case("abort_on_missing_stream", create_scope(), abort(NEVER_GIVEN).gives("FAILURE"))
case("abort_in_missing_scope", abort(NEVER_GIVEN).gives("FAILURE"))
case("abort_without_name", create_scope(), abort(NEVER_GIVEN, "").gives(MALFORMED))
case("abort_without_scope", abort(NEVER_GIVEN, "st", "").gives(MALFORMED))
case("state_on_missing_stream", create_scope(), state(NEVER_GIVEN).gives("UNKNOWN"))
case("state_in_missing_scope", state(NEVER_GIVEN).gives("UNKNOWN"))
case("state_without_name", create_scope(), state(NEVER_GIVEN, "").gives(MALFORMED))
case("state_without_scope", state(NEVER_GIVEN, "st", "").gives(MALFORMED))
case("of_sealed_unknown", *_STREAM, seal(), commit(NEVER_GIVEN).gives("FAILURE"), abort(NEVER_GIVEN).gives("FAILURE"))

case("list_none", *_STREAM, completed().gives({}))
case("list_without_those_that_are_open", *_STREAM, begin(), completed().gives({}))
case("list_of_missing_stream", create_scope(), completed().gives({}))
case("list_in_missing_scope", completed().gives({}))
case("list_without_name", create_scope(), completed("").gives(MALFORMED))
case("list_without_scope", completed("st", "").gives(MALFORMED))
case(
    "list_both_outcomes",
    *_STREAM,
    begin(),
    begin("b"),
    begin("c"),
    begin("d"),
    commit("a"),
    abort("b"),
    commit("c"),
    *committed("a", "c"),
    *aborted("b"),
    _all_completed({"a": "COMMITTED", "b": "ABORTED", "c": "COMMITTED"}),
)
case(
    "list_only_those_of_the_stream",
    *_STREAM,
    create_stream("other"),
    begin(),
    begin("b", "other"),
    commit(),
    abort("b", "other"),
    *committed("a"),
    state("b", "other").until("ABORTED"),
    _all_completed({"a": "COMMITTED"}),
    _all_completed({"b": "ABORTED"}, "other"),
)
case("list_those_of_sealed", *_STREAM, begin(), seal(), _all_completed({"a": "ABORTED"}))

_FIRST = tuple(f"first{number}" for number in range(10))
_NEWEST = tuple(f"t{number}" for number in range(500))
case(
    "list_the_newest_500",
    *_STREAM,
    *(begin(name) for name in _FIRST),
    together(*(commit(name) for name in _FIRST)).gives(["SUCCESS"] * len(_FIRST)),
    *committed(*_FIRST),
    *(
        together(*(begin(name) for name in _NEWEST[start : start + 50])).gives([(0, [(0, 0.0, 1.0)])] * 50)
        for start in range(0, len(_NEWEST), 50)
    ),
    *(
        together(*(abort(name) for name in _NEWEST[start : start + 50])).gives(["SUCCESS"] * 50)
        for start in range(0, len(_NEWEST), 50)
    ),
    *aborted(*_NEWEST),
    completed().gives(dict.fromkeys(_NEWEST, "ABORTED")),
    peer_not_asked="it answers with nothing as soon as another stream has transactions (semantics C7)",
)
