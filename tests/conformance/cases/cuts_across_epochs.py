"""Stream cuts across epochs (semantics 4.4, 7.5, 8).

Epochs of most streams here: 0 and 1 of epoch 0; 2 and 3 of epoch 1, made by splitting 1 in the middle.
"""

from conformance.answers import UNKNOWN
from conformance.calls import (
    at,
    between,
    check_scale,
    create_scope,
    create_stream,
    cut_valid,
    head,
    scale,
    truncate,
    update_stream,
)
from conformance.case import Step, Subject
from conformance.data import fate, write

EPOCHS = Subject("cut_across_epochs")
case = EPOCHS.case

_LOWER, _UPPER = at(2, 1), at(3, 1)
_SPLIT: tuple[Step, ...] = (
    create_scope(),
    create_stream(segments=2),
    write(100, segment=1),
    scale([1], [(0.5, 0.75), (0.75, 1.0)]),
    check_scale(0).until("SUCCESS"),
)

case("valid_before", *_SPLIT, cut_valid({0: 5, 1: 7}))
case("valid_after", *_SPLIT, cut_valid({0: 5, _LOWER: 0, _UPPER: 0}))
case("valid_with_one_not_begun", *_SPLIT, cut_valid({0: 5, 1: 20, _UPPER: -1}))
case("valid_with_future_for_a_gap", *_SPLIT, cut_valid({0: 5, _LOWER: 3, _UPPER: -1}))
case("valid_not_with_gap", *_SPLIT, cut_valid({0: 5}).gives(False))
case("valid_not_with_half_a_gap", *_SPLIT, cut_valid({0: 5, _UPPER: 0}).gives(False))
case("valid_not_overlapping", *_SPLIT, cut_valid({0: 5, 1: 7, _LOWER: 3}).gives(False))
case("valid_not_with_future_below", *_SPLIT, cut_valid({0: 5, 1: -1, _LOWER: 3, _UPPER: 4}).gives(False))
case(
    "valid_not_with_one_gap_of_two",
    *_SPLIT,
    cut_valid({_LOWER: 3, _UPPER: -1}).differs(
        peer=True,
        sluice=False,
        why="nothing covers the keys below 0.5; the original lets its check of the last gap overwrite the first",
    ),
)
case("valid_not_of_futures_only", *_SPLIT, cut_valid({0: -1, 1: -1}).gives(UNKNOWN))

case(
    "between_before_and_after",
    *_SPLIT,
    between({0: 0, 1: 0}, {0: 9, _LOWER: 0, _UPPER: 0}).gives([0, 1, _LOWER, _UPPER]),
)
case("between_start_and_end", *_SPLIT, between({}, {0: 9, _LOWER: 0, _UPPER: 0}).gives([0, 1, _LOWER, _UPPER]))
case("between_after_and_end", *_SPLIT, between({0: 9, _LOWER: 0, _UPPER: 0}, {}).gives([0, _LOWER, _UPPER]))
case("between_start_and_before", *_SPLIT, between({}, {0: 9, 1: 9}).gives([0, 1]))
case("between_after_and_before", *_SPLIT, between({0: 9, _LOWER: 0, _UPPER: 0}, {0: 9, 1: 9}).gives(UNKNOWN))
case(
    "between_three_epochs",
    create_scope(),
    create_stream(),
    update_stream(segments=2),
    update_stream(segments=1),
    between({0: 0}, {}).gives([0, at(1, 1), at(2, 1), at(3, 2)]),
    between({at(1, 1): 0, at(2, 1): 0}, {}).gives([at(1, 1), at(2, 1), at(3, 2)]),
    between({0: 0}, {at(1, 1): 0, at(2, 1): 0}).gives([0, at(1, 1), at(2, 1)]),
)

case(
    "truncate_before",
    *_SPLIT,
    truncate({0: 0, 1: 50}),
    head().gives({0: 0, 1: 50}),
    fate(1).gives("sealed from 50"),
)
case(
    "truncate_after_takes_the_replaced",
    *_SPLIT,
    truncate({0: 0, _LOWER: 0, _UPPER: 0}),
    head().gives({0: 0, _LOWER: 0, _UPPER: 0}),
    fate(1).gives("gone"),
    fate(0).gives("open"),
)
case(
    "truncate_after_then_before",
    *_SPLIT,
    truncate({0: 0, _LOWER: 0, _UPPER: 0}),
    truncate({0: 0, 1: 50}).gives("FAILURE"),
    head().gives({0: 0, _LOWER: 0, _UPPER: 0}),
)
case(
    "truncate_before_then_after",
    *_SPLIT,
    truncate({0: 0, 1: 50}),
    truncate({0: 0, _LOWER: 0, _UPPER: 0}),
    fate(1).gives("gone"),
)
case("truncate_overlapping", *_SPLIT, truncate({0: 0, 1: 0, _LOWER: 0}).gives("FAILURE"), head().gives({0: 0, 1: 0}))
case(
    "truncate_with_one_not_begun",
    *_SPLIT,
    truncate({0: 0, 1: 50, _UPPER: -1}),
    head().gives({0: 0, 1: 50, _UPPER: -1}),
    fate(_UPPER).gives("open"),
    peer_not_asked="it sends the negative offset to the segment store and stays in TRUNCATING (two minutes)",
)
case(
    "truncate_through_three_epochs",
    create_scope(),
    create_stream(),
    write(32),
    update_stream(segments=2),
    update_stream(segments=1),
    truncate({at(3, 2): 0}),
    head().gives({at(3, 2): 0}),
    fate(0).gives("gone"),
    fate(at(1, 1)).gives("gone"),
    fate(at(2, 1)).gives("gone"),
)
