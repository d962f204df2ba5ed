"""createTransaction: ids, segments, leases (controller-grpc-api 5.6, 6.2; semantics 6.2)."""

from functools import partial

from conformance.answers import INTERNAL, MALFORMED, NOT_FOUND, WHY_INVALID, Explained, Refused
from conformance.calls import (
    STREAM,
    TWO_SEGMENTS,
    at,
    check_scale,
    create_scope,
    create_stream,
    current_segments,
    delete_stream,
    missing,
    scale,
    seal,
    truncate,
    update_stream,
)
from conformance.case import Step, Subject
from conformance.cases.streams_created import equal_ranges
from conformance.data import write
from conformance.table_calls import create_table
from conformance.txn_calls import (
    LEAST_LEASE_MS,
    LONGEST_LEASE_MS,
    begin,
    ids_are_right,
    part,
    state,
    together,
)

CREATE = Subject("txn_create")
case = CREATE.case

_INTERNAL = ("_st", "_RGrg", "_MARKst")
_HALVES = [(0, 0.0, 0.5), (1, 0.5, 1.0)]
_AFTER_SPLIT = [(at(0, 1), 0.0, 0.5), (at(2, 1), 0.5, 0.75), (at(3, 1), 0.75, 1.0)]


def _refused_lease(lease: int, text: str) -> Step:
    return begin(lease=lease).differs(
        peer=Refused("UNKNOWN", text),
        sluice=Explained("INVALID_ARGUMENT", words=("10000", "600000", "SLUICE_MAX_LEASE_S")),
        why=WHY_INVALID,
    )


def _too_short(lease: int) -> Step:
    return _refused_lease(lease, "lease should be greater than minimum lease")


def _too_long(lease: int) -> Step:
    return _refused_lease(lease, "lease value too large, max value is 600000")


case("one_segment", *STREAM, begin().gives((0, equal_ranges(1))), part(), state())
case(
    "four_segments",
    create_scope(),
    create_stream(segments=4),
    begin().gives((0, equal_ranges(4))),
    *(part(segment=number) for number in range(4)),
    part(segment=4).gives("gone"),
    current_segments().gives(equal_ranges(4)),
)
case(
    "twenty_at_once_have_ids_of_their_own",
    *STREAM,
    together(*(begin(f"t{number}") for number in range(20))).gives([(0, equal_ranges(1))] * 20),
    ids_are_right(*(f"t{number}" for number in range(20))),
)
case(
    "ids_are_of_one_cluster",
    *STREAM,
    create_stream("other"),
    create_scope("elsewhere"),
    create_stream("st", "elsewhere"),
    begin(),
    begin("b", "other"),
    begin("c", "st", "elsewhere"),
    ids_are_right("a", "b", "c"),
)
case(
    "after_two_scales",
    *TWO_SEGMENTS,
    scale([1], [(0.5, 0.75), (0.75, 1.0)]),
    check_scale(0).until("SUCCESS"),
    scale([at(2, 1), at(3, 1)], [(0.5, 1.0)]),
    check_scale(1).until("SUCCESS"),
    begin().gives((2, [(at(0, 2), 0.0, 0.5), (at(4, 2), 0.5, 1.0)])),
    part(segment=0),
    part(segment=at(4, 2)),
    part(segment=at(2, 1)).gives("gone"),
)
case(
    "before_and_after_a_scale",
    *TWO_SEGMENTS,
    begin().gives((0, _HALVES)),
    scale([1], [(0.5, 0.75), (0.75, 1.0)]),
    check_scale(0).until("SUCCESS"),
    begin("b").gives((1, _AFTER_SPLIT)),
    ids_are_right("a", "b"),
    state("a"),
    state("b"),
    part("a", 1),
    *(part("b", segment) for segment in (0, at(2, 1), at(3, 1))),
    part("b", 1).gives("gone"),
)
case(
    "after_an_update_that_scales",
    *STREAM,
    update_stream(segments=2),
    begin().gives((1, [(at(1, 1), 0.0, 0.5), (at(2, 1), 0.5, 1.0)])),
)
case(
    "after_an_update_and_a_truncation_that_do_not",
    *STREAM,
    update_stream(tags=["x"]),
    write(50),
    truncate({0: 50}),
    begin().gives((0, equal_ranges(1))),
    part(),
)
case(
    "on_the_next_stream_of_the_name",
    *TWO_SEGMENTS,
    seal(),
    delete_stream(),
    create_stream(segments=2),
    begin().gives((0, equal_ranges(2, first=2))),
    part(segment=2),
    part(segment=0).gives("gone"),
)
case(
    "on_internal_streams",
    *STREAM,
    *(create_stream(stream) for stream in _INTERNAL[:-1]),
    *(step for stream in _INTERNAL for step in (begin(stream=stream), part(stream=stream), state("a", stream))),
)

case("on_sealed", *STREAM, seal(), begin().gives(INTERNAL), delete_stream(), begin().gives(NOT_FOUND))
case(
    "on_what_is_no_stream",
    *missing(partial(begin, "a"), NOT_FOUND),
    create_table(),
    *(begin(stream=name).gives(NOT_FOUND) for name in ("a/b", "x" * 300, "kv", "kv_kvtable")),
)

case("with_least_lease", *STREAM, begin(lease=LEAST_LEASE_MS), state())
case("with_longest_lease", *STREAM, begin(lease=LONGEST_LEASE_MS, grace=2**62), state())
case("with_too_short_a_lease", *STREAM, _too_short(9_999))
case("with_too_long_a_lease", *STREAM, _too_long(600_001))
case("without_lease", *STREAM, _too_short(0))
case("with_negative_lease", *STREAM, _too_short(-1))
case("with_most_negative_lease", *STREAM, _too_short(-(2**63)))
case("with_longest_number_as_lease", *STREAM, _too_long(2**63 - 1))
case(
    "with_bad_lease_on_what_is_no_stream",
    begin(lease=600_001).gives(NOT_FOUND),
    create_scope(),
    begin(lease=0).gives(NOT_FOUND),
    begin(stream="", lease=0).gives(MALFORMED),
)
case("with_bad_lease_on_sealed", *STREAM, seal(), _too_short(9_999))
case("refused_leaves_nothing", *STREAM, _too_short(1), begin().gives((0, equal_ranges(1))), state())
