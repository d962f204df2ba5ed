"""createTransaction: ids, segments, leases (controller-grpc-api 5.6, 6.2; semantics 6.2)."""

from conformance.answers import INTERNAL, MALFORMED, NOT_FOUND, Explained, Refused
from conformance.calls import (
    at,
    check_scale,
    create_scope,
    create_stream,
    current_segments,
    delete_stream,
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
    MOST_LEASE_MS,
    begin,
    ids_are_right,
    part,
    state,
    together,
)

CREATE = Subject("txn_create")
case = CREATE.case

_STREAM: tuple[Step, ...] = (create_scope(), create_stream())
_SPLIT: tuple[Step, ...] = (
    create_scope(),
    create_stream(segments=2),
    scale([1], [(0.5, 0.75), (0.75, 1.0)]),
    check_scale(0).until("SUCCESS"),
)
_HALVES = [(0, 0.0, 0.5), (1, 0.5, 1.0)]
_AFTER_SPLIT = [(at(0, 1), 0.0, 0.5), (at(2, 1), 0.5, 0.75), (at(3, 1), 0.75, 1.0)]


def _refused_lease(lease: int, text: str) -> Step:
    return begin(lease=lease).differs(
        peer=Refused("UNKNOWN", text),
        sluice=Explained("UNKNOWN", words=("10000", "600000")),
        why="whoever asks for a wrong lease is told both limits, not only that one is broken",
    )


def _too_short(lease: int) -> Step:
    return _refused_lease(lease, "lease should be greater than minimum lease")


def _too_long(lease: int) -> Step:
    return _refused_lease(lease, "lease value too large, max value is 600000")


case("one_segment", *_STREAM, begin().gives((0, equal_ranges(1))), part(), state())
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
    *_STREAM,
    together(*(begin(f"t{number}") for number in range(20))).gives([(0, equal_ranges(1))] * 20),
    ids_are_right(*(f"t{number}" for number in range(20))),
)
case(
    "ids_are_of_one_cluster",
    create_scope(),
    create_stream(),
    create_stream("other"),
    create_scope("elsewhere"),
    create_stream("st", "elsewhere"),
    begin(),
    begin("b", "other"),
    begin("c", "st", "elsewhere"),
    ids_are_right("a", "b", "c"),
)
case(
    "after_a_scale_has_ids_of_its_epoch",
    *_SPLIT,
    begin().gives((1, _AFTER_SPLIT)),
    ids_are_right("a"),
    part(segment=0),
    part(segment=at(2, 1)),
    part(segment=at(3, 1)),
    part(segment=1).gives("gone"),
)
case(
    "after_two_scales",
    *_SPLIT,
    scale([at(2, 1), at(3, 1)], [(0.5, 1.0)]),
    check_scale(1).until("SUCCESS"),
    begin().gives((2, [(at(0, 2), 0.0, 0.5), (at(4, 2), 0.5, 1.0)])),
    part(segment=0),
    part(segment=at(4, 2)),
    part(segment=at(2, 1)).gives("gone"),
)
case(
    "before_and_after_a_scale",
    create_scope(),
    create_stream(segments=2),
    begin().gives((0, _HALVES)),
    scale([1], [(0.5, 0.75), (0.75, 1.0)]),
    check_scale(0).until("SUCCESS"),
    begin("b").gives((1, _AFTER_SPLIT)),
    ids_are_right("a", "b"),
    state("a"),
    state("b"),
    part("a", 1),
)
case(
    "after_an_update_that_scales",
    create_scope(),
    create_stream(),
    update_stream(segments=2),
    begin().gives((1, [(at(1, 1), 0.0, 0.5), (at(2, 1), 0.5, 1.0)])),
)
case(
    "after_an_update_that_does_not",
    *_STREAM,
    update_stream(tags=["x"]),
    begin().gives((0, equal_ranges(1))),
)
case(
    "after_truncation",
    *_STREAM,
    write(50),
    truncate({0: 50}),
    begin().gives((0, equal_ranges(1))),
    part(),
)
case(
    "on_the_next_stream_of_the_name",
    create_scope(),
    create_stream(segments=2),
    seal(),
    delete_stream(),
    create_stream(segments=2),
    begin().gives((0, equal_ranges(2, first=2))),
    part(segment=2),
    part(segment=0).gives("gone"),
)
case("on_internal_stream", create_scope(), create_stream("_st"), begin(stream="_st"), part(stream="_st"))
case("on_stream_of_a_reader_group", create_scope(), create_stream("_RGrg"), begin(stream="_RGrg"))
case("on_mark_stream", *_STREAM, begin(stream="_MARKst"), part(stream="_MARKst"), state("a", "_MARKst"))

case("on_sealed", *_STREAM, seal(), begin().gives(INTERNAL))
case("on_deleted", *_STREAM, seal(), delete_stream(), begin().gives(NOT_FOUND))
case("on_missing_stream", create_scope(), begin().gives(NOT_FOUND))
case("in_missing_scope", begin().gives(NOT_FOUND))
case("without_name", create_scope(), begin(stream="").gives(MALFORMED))
case("without_scope", begin(scope="").gives(MALFORMED))
case("on_bad_name", create_scope(), begin(stream="a/b").gives(NOT_FOUND))
case("on_name_of_300_characters", create_scope(), begin(stream="x" * 300).gives(NOT_FOUND))
case("on_table", create_scope(), create_table(), begin(stream="kv").gives(NOT_FOUND))
case("on_segments_of_table", create_scope(), create_table(), begin(stream="kv_kvtable").gives(NOT_FOUND))

case("with_least_lease", *_STREAM, begin(lease=LEAST_LEASE_MS), state())
case("with_longest_lease", *_STREAM, begin(lease=MOST_LEASE_MS), state())
case("with_a_grace_period_of_old", *_STREAM, begin(grace=2**62), state())
case("with_too_short_a_lease", *_STREAM, _too_short(9_999))
case("with_too_long_a_lease", *_STREAM, _too_long(600_001))
case("without_lease", *_STREAM, _too_short(0))
case("with_negative_lease", *_STREAM, _too_short(-1))
case("with_most_negative_lease", *_STREAM, _too_short(-(2**63)))
case("with_longest_number_as_lease", *_STREAM, _too_long(2**63 - 1))
case("with_bad_lease_on_missing_stream", create_scope(), begin(lease=0).gives(NOT_FOUND))
case("with_bad_lease_in_missing_scope", begin(lease=600_001).gives(NOT_FOUND))
case("with_bad_lease_without_name", create_scope(), begin(stream="", lease=0).gives(MALFORMED))
case("with_bad_lease_on_sealed", *_STREAM, seal(), _too_short(9_999))
case("refused_leaves_nothing", *_STREAM, _too_short(1), begin().gives((0, equal_ranges(1))), state())
