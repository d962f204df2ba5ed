"""commitTransaction, abortTransaction, checkTransactionState, listCompletedTransactions (controller-grpc-api 5.6).

Semantics 6.1, 6.4, 6.9.
"""

from functools import partial

from conformance.answers import Such
from conformance.calls import STREAM, create_scope, create_stream, delete_stream, missing, seal
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

_LIST = (
    "the original reads only the oldest of its lists, and if a transaction of another stream is among the newest of "
    "that it answers with nothing (semantics C7)"
)

_BY_NAME = "the original remembers them by the name of the stream, whichever stream has it"
_NAMESAKE_TOO = Such("is empty or has that of the deleted stream", lambda answer: answer == {} or "c" in answer)


def _all_completed(outcomes: dict[str, str], stream: str = "st") -> Step:
    return completed(stream).differs(
        peer=Such("is empty or the same", lambda answer: answer in ({}, outcomes)), sluice=outcomes, why=_LIST
    )


_COMMITS = Such("is committing or more", lambda answer: answer in ("COMMITTING", "COMMITTED"))
_ABORTS = Such("is aborting or more", lambda answer: answer in ("ABORTING", "ABORTED"))

case(
    "commit_twice",
    *STREAM,
    begin(),
    state(),
    commit(),
    state().gives(_COMMITS),
    commit(),
    abort().gives("FAILURE"),
    *committed("a"),
    commit(),
    abort().gives("FAILURE"),
    state().gives("COMMITTED"),
)
case(
    "abort_twice",
    *STREAM,
    begin(),
    state(),
    abort(),
    state().gives(_ABORTS),
    abort(),
    commit().gives("FAILURE"),
    *aborted("a"),
    abort(),
    commit().gives("FAILURE"),
    state().gives("ABORTED"),
)
case("commit_after_ping", *STREAM, begin(), ping(), commit(), *committed("a"))
case("abort_after_ping", *STREAM, begin(), ping(), abort(), *aborted("a"))
case(
    "one_leaves_others",
    *STREAM,
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
case("commits_at_once", *STREAM, begin(), together(commit(), commit()).gives(["SUCCESS"] * 2), *committed("a"))
case("aborts_at_once", *STREAM, begin(), together(abort(), abort(), abort()).gives(["SUCCESS"] * 3), *aborted("a"))
case(
    "commit_and_abort_at_once",
    *STREAM,
    begin(),
    together(commit(), abort()).gives(Such("lets one win", lambda answer: sorted(answer) == ["FAILURE", "SUCCESS"])),
    state().until(Such("is done", lambda answer: answer in ("COMMITTED", "ABORTED"))),
)
case(
    "twenty_commits_at_once",
    *STREAM,
    *(begin(f"t{number}") for number in range(20)),
    together(*(commit(f"t{number}") for number in range(20))).gives(["SUCCESS"] * 20),
    *committed(*(f"t{number}" for number in range(20))),
)

_UNKNOWN_IDS: tuple[tuple[int, int] | None, ...] = (
    NEVER_GIVEN,
    (0, 0),
    # Of an epoch to come.
    (7 << 32, 1),
    (0, -1),
    (-1, 1),
    (-1, -1),
    None,
)
case(
    "unknown",
    *STREAM,
    begin(),
    *(commit(id).gives("FAILURE") for id in _UNKNOWN_IDS),
    *(abort(id).gives("FAILURE") for id in _UNKNOWN_IDS),
    *(state(id).gives("UNKNOWN") for id in _UNKNOWN_IDS),
    state(),
    seal(),
    commit(NEVER_GIVEN).gives("FAILURE"),
    abort(NEVER_GIVEN).gives("FAILURE"),
)
case(
    "of_another_stream",
    *STREAM,
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
    *STREAM,
    create_scope("elsewhere"),
    create_stream("st", "elsewhere"),
    begin("a", "st", "elsewhere"),
    abort().gives("FAILURE"),
    state().gives("UNKNOWN"),
    state("a", "st", "elsewhere"),
)
case("commit_missing", *missing(partial(commit, NEVER_GIVEN), "FAILURE"))
case("abort_missing", *missing(partial(abort, NEVER_GIVEN), "FAILURE"))
case("state_missing", *missing(partial(state, NEVER_GIVEN), "UNKNOWN"))

case("list_none", *STREAM, completed().gives({}), begin(), completed().gives({}))
case("list_missing", *missing(completed, {}))
case(
    "list_both_outcomes",
    *STREAM,
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
    *STREAM,
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
case(
    "list_not_those_of_a_deleted_namesake",
    *STREAM,
    begin("c"),
    commit("c"),
    *committed("c"),
    seal(),
    delete_stream(),
    completed().differs(peer=_NAMESAKE_TOO, sluice={}, why=_BY_NAME),
    create_stream(),
    completed().differs(peer=_NAMESAKE_TOO, sluice={}, why=_BY_NAME),
    begin("b"),
    commit("b"),
    *committed("b"),
    completed().differs(peer=_NAMESAKE_TOO, sluice={"b": "COMMITTED"}, why=_BY_NAME),
    state("c").gives("COMMITTED"),
)
case("list_those_of_sealed", *STREAM, begin(), seal(), _all_completed({"a": "ABORTED"}))

_FIRST = tuple(f"first{number}" for number in range(10))
_NEWEST = tuple(f"t{number}" for number in range(500))
case(
    "list_the_newest_500",
    *STREAM,
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
    peer_not_called="it answers with nothing as soon as another stream has transactions (semantics C7)",
)
