"""scale, refused (controller-grpc-api 5.4, semantics 4.1 and 4.2). Whatever is refused changes nothing."""

from functools import partial

from conformance.answers import MALFORMED, NOT_FOUND, Such
from conformance.calls import (
    STREAM,
    at,
    check_scale,
    create_scope,
    create_stream,
    current_segments,
    delete_stream,
    epoch_segments,
    missing,
    refused_scale,
    scale,
    seal,
)
from conformance.case import Subject
from conformance.cases.scaling import DONE, HALVES
from conformance.cases.streams_created import equal_ranges
from conformance.views import Range

REFUSED = Subject("scale_refused")
case = REFUSED.case

_FAILURE, _PRECONDITION = refused_scale("FAILURE"), refused_scale("PRECONDITION_FAILED")
_STARTS = Such("starts", lambda answer: answer[0] == "STARTED")

_NOTHING = "the original takes a scale of nothing, can never complete it, and refuses every other one from then on"


def refuse(name: str, segments: int, sealed: list[int], ranges: list[tuple[float, float]], answer: object) -> None:
    """A scale of a fresh stream that is refused, after which the stream is as it was and scales as ever."""
    before: list[Range] = equal_ranges(segments)
    case(
        name,
        create_scope(),
        create_stream(segments=segments),
        scale(sealed, ranges).gives(answer),
        current_segments().gives(before),
        check_scale(0).gives("IN_PROGRESS"),
        scale(list(range(segments)), [(low, high) for _, low, high in before]),
        DONE,
    )


refuse("gap_between", 1, [0], [(0.0, 0.25), (0.5, 1.0)], _FAILURE)
refuse("gap_at_the_end", 1, [0], [(0.0, 0.25), (0.25, 0.75)], _FAILURE)
refuse("gap_at_the_start", 1, [0], [(0.25, 0.5), (0.5, 1.0)], _FAILURE)
refuse("overlap", 1, [0], [(0.0, 0.6), (0.5, 1.0)], _FAILURE)
refuse("overlap_of_all", 1, [0], [(0.0, 1.0), (0.25, 0.5)], _FAILURE)
refuse("more_than_was_sealed", 2, [0], [(0.0, 0.5), (0.5, 1.0)], _FAILURE)
refuse("less_than_was_sealed", 2, [0, 1], [(0.0, 0.25), (0.25, 0.5)], _FAILURE)
refuse("elsewhere_than_was_sealed", 2, [0], [(0.5, 0.75), (0.75, 1.0)], _FAILURE)
refuse("empty_range", 1, [0], [(0.0, 0.5), (0.5, 0.5), (0.6, 1.0)], _FAILURE)
refuse("range_backwards", 1, [0], [(0.0, 0.5), (1.0, 0.5)], _FAILURE)
refuse("range_below_0", 1, [0], [(-0.5, 0.0), (0.0, 1.0)], _FAILURE)
refuse("range_above_1", 1, [0], [(0.0, 0.5), (0.5, 1.5)], _FAILURE)
refuse("nearly_the_same_borders", 1, [0], [(0.0, 0.5), (0.5, 0.9999999999999999)], _FAILURE)
refuse("no_ranges", 2, [0], [], _FAILURE)
refuse("nothing_sealed", 1, [], [(0.0, 1.0)], _FAILURE)
refuse("two_ranges_with_one_start", 1, [0], [(0.0, 0.5), (0.0, 1.0)], MALFORMED)
refuse("unknown_number", 1, [7], [(0.0, 0.5), (0.5, 1.0)], _PRECONDITION)
refuse("unknown_epoch", 1, [at(0, 1)], [(0.0, 0.5), (0.5, 1.0)], _PRECONDITION)
refuse("negative_segment", 1, [-1], [(0.0, 0.5), (0.5, 1.0)], _PRECONDITION)
refuse("unknown_number_and_bad_ranges", 1, [7], [(0.0, 0.25), (0.5, 1.0)], _PRECONDITION)
refuse("below_the_least", 2, [0, 1], [(0.0, 1.0)], _PRECONDITION)
refuse("below_the_least_and_bad_ranges", 2, [0, 1], [(0.0, 0.5)], _FAILURE)

case("missing", *missing(partial(scale, [0], HALVES), _FAILURE))
case(
    "sealed_and_deleted",
    *STREAM,
    seal(),
    scale([0], HALVES).gives(_FAILURE),
    delete_stream(),
    scale([0], HALVES).gives(_FAILURE),
)
case(
    "of_replaced_segment",
    *STREAM,
    scale([0], HALVES),
    DONE,
    scale([0], HALVES).gives(_PRECONDITION),
    scale([0], [(0.0, 0.25), (0.25, 1.0)]).gives(_PRECONDITION),
    epoch_segments(2).gives(NOT_FOUND),
)
case(
    "nothing_into_nothing",
    *STREAM,
    scale([], []).differs(peer=("STARTED", 0, [], []), sluice=_FAILURE, why=_NOTHING),
    current_segments().gives([(0, 0.0, 1.0)]),
    scale([0], HALVES).differs(peer=_FAILURE, sluice=_STARTS, why=_NOTHING),
)
