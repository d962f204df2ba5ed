"""Questions about segments (controller-grpc-api 5.5; semantics 7)."""

from functools import partial

from conformance.answers import MALFORMED, NOT_FOUND, UNKNOWN
from conformance.calls import (
    STREAM,
    TWO_SEGMENTS,
    at,
    create_scope,
    current_segments,
    epoch_segments,
    following,
    head,
    missing,
    seal,
    segment_valid,
    update_stream,
    uri,
)
from conformance.case import Subject
from conformance.run import Exactly

SEGMENTS = Subject("segments")
case = SEGMENTS.case

_ONE_CODE = "an empty name is malformed here as in all other calls (the reference says so of this one too, wrongly)"

case("current_of_missing_stream", create_scope(), current_segments().gives(NOT_FOUND))
case("current_in_missing_scope", current_segments().gives(NOT_FOUND))
case(
    "current_without_name", create_scope(), current_segments("").differs(peer=UNKNOWN, sluice=MALFORMED, why=_ONE_CODE)
)
case("current_without_scope", current_segments("st", "").differs(peer=UNKNOWN, sluice=MALFORMED, why=_ONE_CODE))

case(
    "of_epochs",
    *STREAM,
    epoch_segments(-1).gives(MALFORMED),
    epoch_segments(0).gives([(0, 0.0, 1.0)]),
    epoch_segments(1).gives(NOT_FOUND),
    update_stream(segments=2),
    epoch_segments(0).gives([(0, 0.0, 1.0)]),
    epoch_segments(1).gives([(at(1, 1), 0.0, 0.5), (at(2, 1), 0.5, 1.0)]),
    epoch_segments(2).gives(NOT_FOUND),
    seal(),
    epoch_segments(0).gives([(0, 0.0, 1.0)]),
)
case("of_epoch_missing", *missing(partial(epoch_segments, 0), NOT_FOUND), epoch_segments(-1).gives(MALFORMED))

case("head", *TWO_SEGMENTS, *(head(timestamp=time).gives({0: 0, 1: 0}) for time in (0, 1 << 60, -1)))
case("head_missing", *missing(head, NOT_FOUND))

for _misspelt in (False, True):
    _suffix = "_misspelt" if _misspelt else ""
    _following = partial(following, misspelt=_misspelt)
    case(
        f"following_none{_suffix}",
        *STREAM,
        *(_following(segment).gives({}) for segment in (0, 7, at(0, 7), -1)),
        seal(),
        _following(0).gives({}),
    )
    case(f"following_missing{_suffix}", *missing(partial(_following, 0), NOT_FOUND))
    case(
        f"following_a_replaced_one{_suffix}",
        *TWO_SEGMENTS,
        update_stream(segments=3),
        _following(0).gives(
            {
                at(2, 1): (0.0, 1 / 3, [0]),
                at(3, 1): (1 / 3, 2 * (1 / 3), [0, 1]),
            }
        ),
        _following(at(2, 1)).gives({}),
    )
case(
    "following_a_replaced_one_in_sealed",
    *STREAM,
    update_stream(segments=2),
    seal(),
    following(0).gives({at(1, 1): (0.0, 0.5, [0]), at(2, 1): (0.5, 1.0, [0])}),
    following(at(1, 1)).gives({}),
)

case(
    "valid",
    *TWO_SEGMENTS,
    segment_valid(1),
    *(segment_valid(segment).gives(False) for segment in (2, at(0, 1), -1)),
    update_stream(segments=3),
    segment_valid(0).gives(False),
    segment_valid(at(2, 1)),
    seal(),
    segment_valid(at(2, 1)).gives(False),
)
case("valid_missing", *missing(partial(segment_valid, 0), NOT_FOUND))

case("uri", *STREAM, uri(), uri(at(9, 9)), uri(0, "missing"))
case(
    "uri_of_any_text",
    uri(),
    uri(0, "kv_kvtable"),
    uri(0, "a_b/c ä"),
    uri(0, "_requeststream", Exactly("_system")),
    uri(0, "").gives(MALFORMED),
    uri(0, "st", "").gives(MALFORMED),
)
