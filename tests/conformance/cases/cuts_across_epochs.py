"""Stream cuts across epochs (semantics 4.4, 7.5, 8).

Epochs of most streams here: 0 and 1 of epoch 0; 2 and 3 of epoch 1, made by splitting 1 in the middle.
"""

from conformance.calls import (
    STREAM,
    TWO_SEGMENTS,
    at,
    between,
    check_scale,
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
    *TWO_SEGMENTS,
    write(100, segment=1),
    scale([1], [(0.5, 0.75), (0.75, 1.0)]),
    check_scale(0).until("SUCCESS"),
)
_AFTER = {0: 0, _LOWER: 0, _UPPER: 0}

case(
    "valid",
    *_SPLIT,
    cut_valid({0: 5, 1: 7}),
    cut_valid({0: 5, _LOWER: 0, _UPPER: 0}),
    # One that is not begun lies behind, or fills a gap.
    cut_valid({0: 5, 1: 20, _UPPER: -1}),
    cut_valid({0: 5, _LOWER: 3, _UPPER: -1}),
)
case(
    "valid_not",
    *_SPLIT,
    # With a gap, with half of one, overlapping, with one not begun below.
    cut_valid({0: 5}).gives(False),
    cut_valid({0: 5, _UPPER: 0}).gives(False),
    cut_valid({0: 5, 1: 7, _LOWER: 3}).gives(False),
    cut_valid({0: 5, 1: -1, _LOWER: 3, _UPPER: 4}).gives(False),
    cut_valid({0: -1, 1: -1}).is_invalid(),
)
case(
    "valid_not_with_one_gap_of_two",
    *_SPLIT,
    cut_valid({_LOWER: 3, _UPPER: -1}).differs(
        peer=True,
        sluice=False,
        why="nothing covers the keys below 0.5; the original lets its check of the last gap overwrite the first",
    ),
)

case(
    "between_two_epochs",
    *_SPLIT,
    between({0: 0, 1: 0}, {0: 9, _LOWER: 0, _UPPER: 0}).gives([0, 1, _LOWER, _UPPER]),
    between({}, {0: 9, _LOWER: 0, _UPPER: 0}).gives([0, 1, _LOWER, _UPPER]),
    between({0: 9, _LOWER: 0, _UPPER: 0}, {}).gives([0, _LOWER, _UPPER]),
    between({}, {0: 9, 1: 9}).gives([0, 1]),
    between({0: 9, _LOWER: 0, _UPPER: 0}, {0: 9, 1: 9}).is_invalid(),
)
case(
    "between_three_epochs",
    *STREAM,
    update_stream(segments=2),
    update_stream(segments=1),
    between({0: 0}, {}).gives([0, at(1, 1), at(2, 1), at(3, 2)]),
    between({at(1, 1): 0, at(2, 1): 0}, {}).gives([at(1, 1), at(2, 1), at(3, 2)]),
    between({0: 0}, {at(1, 1): 0, at(2, 1): 0}).gives([0, at(1, 1), at(2, 1)]),
)

case(
    "truncate_before_then_after",
    *_SPLIT,
    truncate({0: 0, 1: 0, _LOWER: 0}).gives("FAILURE"),
    head().gives({0: 0, 1: 0}),
    truncate({0: 0, 1: 50}),
    head().gives({0: 0, 1: 50}),
    fate(1).gives("sealed from 50"),
    truncate(_AFTER),
    head().gives(_AFTER),
    fate(1).gives("gone"),
    fate(0).gives("open"),
)
case(
    "truncate_after_then_before",
    *_SPLIT,
    truncate(_AFTER),
    fate(1).gives("gone"),
    truncate({0: 0, 1: 50}).gives("FAILURE"),
    head().gives(_AFTER),
)
case(
    "truncate_with_one_not_begun",
    *_SPLIT,
    truncate({0: 0, 1: 50, _UPPER: -1}),
    head().gives({0: 0, 1: 50, _UPPER: -1}),
    fate(_UPPER).gives("open"),
    peer_not_called="it sends the negative offset to the segment store and stays in TRUNCATING (two minutes)",
)
case(
    "truncate_through_three_epochs",
    *STREAM,
    write(32),
    update_stream(segments=2),
    update_stream(segments=1),
    truncate({at(3, 2): 0}),
    head().gives({at(3, 2): 0}),
    *(fate(segment).gives("gone") for segment in (0, at(1, 1), at(2, 1))),
)
