"""pingTransaction, and what becomes of transactions that nobody pings (controller-grpc-api 5.6; semantics 6.3, 6.5).

That a transaction comes to its longest time cannot be asked here: it is 1000 leases, nearly three hours at least.
"""

from conformance.answers import MALFORMED, Such
from conformance.calls import check_scale, create_scope, create_stream, delete_stream, scale, seal
from conformance.case import Step, Subject
from conformance.data import fate
from conformance.txn_calls import (
    LEAST_LEASE_MS,
    MOST_LEASE_MS,
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

_STREAM: tuple[Step, ...] = (create_scope(), create_stream())
_LONGEST_MS = 2**63 - 1

_RACE = "several writers of one record; the original lets the losers see that, ours puts them into a row"
_ANY = Such("is any", lambda _answers: True)

case("open", *_STREAM, begin(), ping(), state())
case("again_and_again", *_STREAM, begin(), ping(), ping(), ping(lease=LEAST_LEASE_MS), state())
case("with_longest_lease", *_STREAM, begin(lease=LEAST_LEASE_MS), ping(lease=MOST_LEASE_MS), state())
case("with_too_long_a_lease", *_STREAM, begin(), ping(lease=600_001).gives("LEASE_TOO_LARGE"), state())
case("with_longest_number_as_lease", *_STREAM, begin(), ping(lease=_LONGEST_MS).gives("LEASE_TOO_LARGE"), state())
case(
    "refused_does_no_harm",
    *_STREAM,
    begin(),
    ping(lease=600_001).gives("LEASE_TOO_LARGE"),
    ping(),
    commit(),
    *committed("a"),
)
case("from_a_longest_lease", *_STREAM, begin(lease=MOST_LEASE_MS), ping(lease=MOST_LEASE_MS), state())
case(
    "many_at_once",
    *_STREAM,
    begin(),
    together(ping(), ping(), ping(), ping()).differs(peer=_ANY, sluice=["OK"] * 4, why=_RACE),
    state(),
)
case(
    "at_once_with_commit",
    *_STREAM,
    begin(),
    together(ping(), commit(), ping()).differs(
        peer=_ANY,
        sluice=Such(
            "commits and pings", lambda told: told[1] == "SUCCESS" and {told[0], told[2]} <= {"OK", "COMMITTED"}
        ),
        why=_RACE,
    ),
)

case("with_no_time_left", *_STREAM, begin(), put("x"), ping(lease=0), *aborted("a"), part().gives("gone"))
case("with_negative_lease", *_STREAM, begin(), ping(lease=-1), *aborted("a"), ping().gives("ABORTED"))
case("with_most_negative_lease", *_STREAM, begin(), ping(lease=-(2**63)), *aborted("a"))
case("with_less_than_least_lease", *_STREAM, begin(lease=MOST_LEASE_MS), ping(lease=1), *aborted("a"))
case(
    "that_ends_one_leaves_others",
    *_STREAM,
    begin(),
    begin("b"),
    ping(lease=0),
    *aborted("a"),
    state("b"),
    ping("b"),
)
case(
    "that_ends_one_of_an_old_epoch",
    *_STREAM,
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
    *_STREAM,
    begin(lease=LEAST_LEASE_MS),
    put("x"),
    begin("renewed", lease=LEAST_LEASE_MS),
    ping("renewed", lease=LEAST_LEASE_MS * 3),
    *aborted("a"),
    part().gives("gone"),
    events().gives([]),
    put("y").gives(NOT_WRITTEN),
    ping().gives("ABORTED"),
    commit().gives("FAILURE"),
    abort(),
    state().gives("ABORTED"),
    state("renewed"),
    commit("renewed"),
    *committed("renewed"),
)
case(
    "expired_of_three_leases",
    *_STREAM,
    begin("long", lease=MOST_LEASE_MS),
    begin(lease=LEAST_LEASE_MS),
    begin("shortened"),
    ping("shortened", lease=LEAST_LEASE_MS),
    *aborted("a", "shortened"),
    state("long"),
    abort("shortened"),
    commit("shortened").gives("FAILURE"),
)

case(
    "the_shorter_lease_ends_first",
    *_STREAM,
    begin("longest", lease=LEAST_LEASE_MS + 12_000),
    begin("longer", lease=LEAST_LEASE_MS),
    begin("short"),
    ping("short", lease=4_000),
    *aborted("short"),
    state("longer"),
    *aborted("longer"),
    state("longest"),
)

case("committed", *_STREAM, begin(), commit(), ping().gives("COMMITTED"), *committed("a"), ping().gives("COMMITTED"))
case("aborted", *_STREAM, begin(), abort(), ping().gives("ABORTED"), *aborted("a"), ping().gives("ABORTED"))
case(
    "committed_with_too_long_a_lease",
    *_STREAM,
    begin(),
    commit(),
    *committed("a"),
    ping(lease=600_001).gives("COMMITTED"),
)
case("aborted_with_too_long_a_lease", *_STREAM, begin(), abort(), *aborted("a"), ping(lease=600_001).gives("ABORTED"))
case("ended_with_no_time_left", *_STREAM, begin(), commit(), ping(lease=0).gives("COMMITTED"), *committed("a"))
case("in_sealed", *_STREAM, begin(), seal(), ping().gives("ABORTED"))
case("in_deleted", *_STREAM, begin(), seal(), delete_stream(), ping().gives("ABORTED"))

case("unknown", *_STREAM, ping(NEVER_GIVEN).gives("UNKNOWN"))
case("unknown_with_too_long_a_lease", *_STREAM, ping(NEVER_GIVEN, lease=600_001).gives("UNKNOWN"))
case("unknown_of_an_epoch_to_come", *_STREAM, ping((7 << 32, 1)).gives("UNKNOWN"))
case("negative_low_bits", *_STREAM, ping((0, -1)).gives("UNKNOWN"))
case("negative_high_bits", *_STREAM, ping((-1, 1)).gives("UNKNOWN"))
case("no_id", *_STREAM, ping(None).gives("UNKNOWN"))
case(
    "of_another_stream",
    *_STREAM,
    create_stream("other"),
    begin(stream="other"),
    ping().gives("UNKNOWN"),
    ping("a", "other"),
)
case("on_missing_stream", create_scope(), ping(NEVER_GIVEN).gives("UNKNOWN"))
case("in_missing_scope", ping(NEVER_GIVEN).gives("UNKNOWN"))
case("without_name", create_scope(), ping(NEVER_GIVEN, "").gives(MALFORMED))
case("without_scope", ping(NEVER_GIVEN, "st", "").gives(MALFORMED))
