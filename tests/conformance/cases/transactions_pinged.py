"""pingTransaction, and what becomes of transactions without pings (controller-grpc-api 5.6; semantics 6.3, 6.5).

That a transaction comes to its longest time cannot be tried here: it is 1000 leases, nearly three hours at least.
"""

from functools import partial

from conformance.answers import Such
from conformance.calls import STREAM, check_scale, create_stream, delete_stream, missing, scale, seal
from conformance.case import Subject
from conformance.data import fate
from conformance.txn_calls import (
    LEAST_LEASE_MS,
    LONGEST_LEASE_MS,
    NEVER_GIVEN,
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

PING = Subject("txn_ping")
case = PING.case

_LONGEST_MS = 2**63 - 1

_RACE = "several writers of one record; the original lets the losers see that, ours puts them into a row"
_ANY = Such("is any", lambda _answers: True)

case(
    "again_and_again",
    *STREAM,
    begin(lease=LEAST_LEASE_MS),
    ping(),
    ping(),
    ping(lease=LEAST_LEASE_MS),
    ping(lease=LONGEST_LEASE_MS),
    ping(lease=LONGEST_LEASE_MS),
    state(),
)
case(
    "with_too_long_a_lease",
    *STREAM,
    begin(),
    ping(lease=600_001).gives("LEASE_TOO_LARGE"),
    ping(lease=_LONGEST_MS).gives("LEASE_TOO_LARGE"),
    state(),
    ping(),
    commit(),
    *committed("a"),
    ping(lease=600_001).gives("COMMITTED"),
)
case(
    "many_at_once",
    *STREAM,
    begin(),
    together(ping(), ping(), ping(), ping()).differs(peer=_ANY, sluice=["OK"] * 4, why=_RACE),
    state(),
)
case(
    "at_once_with_commit",
    *STREAM,
    begin(),
    together(ping(), commit(), ping()).differs(
        peer=_ANY,
        sluice=Such(
            "commits and pings", lambda answer: answer[1] == "SUCCESS" and {answer[0], answer[2]} <= {"OK", "COMMITTED"}
        ),
        why=_RACE,
    ),
)

case(
    "with_less_than_the_least_lease",
    *STREAM,
    *(begin(name, lease=LONGEST_LEASE_MS) for name in "abcde"),
    put("x"),
    ping("a", lease=0),
    ping("b", lease=-1),
    ping("c", lease=-(2**63)),
    ping("d", lease=1),
    *aborted(*"abcd"),
    part().gives("gone"),
    ping("b").gives("ABORTED"),
    state("e"),
    ping("e"),
)
case(
    "that_ends_one_of_an_old_epoch",
    *STREAM,
    begin(),
    put("x"),
    scale([0], [(0.0, 0.5), (0.5, 1.0)]),
    check_scale(0).until("SUCCESS"),
    ping(),
    ping(lease=0),
    *aborted("a"),
    part().gives("gone"),
    fate(0).gives("sealed"),
)

case(
    "expired_is_aborted",
    *STREAM,
    begin(lease=LEAST_LEASE_MS),
    put("x"),
    begin("renewed", lease=LEAST_LEASE_MS),
    ping("renewed", lease=LEAST_LEASE_MS * 3),
    begin("shortened"),
    ping("shortened", lease=LEAST_LEASE_MS),
    *aborted("a", "shortened"),
    part().gives("gone"),
    events().gives([]),
    put("y").gives(NOT_WRITTEN),
    ping().gives("ABORTED"),
    commit().gives("FAILURE"),
    abort(),
    state().gives("ABORTED"),
    abort("shortened"),
    commit("shortened").gives("FAILURE"),
    state("renewed"),
    commit("renewed"),
    *committed("renewed"),
)
case(
    "the_shorter_lease_ends_first",
    *STREAM,
    begin("longest", lease=LEAST_LEASE_MS + 24_000),
    begin("longer", lease=LEAST_LEASE_MS + 10_000),
    begin("short"),
    ping("short", lease=4_000),
    *aborted("short"),
    state("longer"),
    *aborted("longer"),
    state("longest"),
)

case(
    "committed",
    *STREAM,
    begin(),
    commit(),
    ping().gives("COMMITTED"),
    ping(lease=0).gives("COMMITTED"),
    *committed("a"),
    ping().gives("COMMITTED"),
)
case(
    "aborted",
    *STREAM,
    begin(),
    abort(),
    ping().gives("ABORTED"),
    *aborted("a"),
    ping().gives("ABORTED"),
    ping(lease=600_001).gives("ABORTED"),
)
case("in_sealed", *STREAM, begin(), seal(), ping().gives("ABORTED"), delete_stream(), ping().gives("ABORTED"))
_UNKNOWN_IDS: tuple[tuple[int, int] | None, ...] = (NEVER_GIVEN, (7 << 32, 1), (0, -1), (-1, 1), None)
case(
    "unknown",
    *STREAM,
    *(ping(id).gives("UNKNOWN") for id in _UNKNOWN_IDS),
    ping(NEVER_GIVEN, lease=600_001).gives("UNKNOWN"),
)
case(
    "of_another_stream",
    *STREAM,
    create_stream("other"),
    begin(stream="other"),
    ping().gives("UNKNOWN"),
    ping("a", "other"),
)
case("missing", *missing(partial(ping, NEVER_GIVEN), "UNKNOWN"))
