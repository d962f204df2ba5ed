"""What a stream looked like over time (admin-rest-api 5.11)."""

from typing import Any

from conformance.calls import at, check_scale, create_scope, scale
from conformance.case import Subject
from conformance.rest.calls import EVENTS, FAR, create_stream, good, rest, scaling_events
from conformance.run import Run

REST_EVENTS = Subject("rest_scaling_event")
case = REST_EVENTS.case

FIRST = ["0.0 0.0-0.5", "1.0 0.5-1.0"]
SPLIT = ["1.0 0.5-1.0", "2.1 0.0-0.25", "3.1 0.25-0.5"]
MERGED = ["2.1 0.0-0.25", "4.2 0.25-1.0"]

SPLIT_AT, MERGED_AT = 5_000_000_000_000, 6_000_000_000_000
"""Far in the future: a scale takes the time it is given, if that is later than the one before."""


def event(index: int, segments: list[str], splits: int = 0, merges: int = 0) -> dict[str, Any]:
    return {"index": index, "segments": segments, "splits": splits, "merges": merges}


def times(_run: Run, answer: Any) -> list[bool]:
    """Whether each segment says that it began when its event did, or before."""
    return [s["start"] <= one["timestamp"] for one in answer for s in one["segments"]]


def timestamps(_run: Run, answer: Any) -> list[int]:
    """Of all but the first event."""
    return [one["timestamp"] for one in answer[1:]]


SCALES = (
    create_scope(),
    create_stream(),
    scale([0], [(0.0, 0.25), (0.25, 0.5)], timestamp=SPLIT_AT),
    check_scale(0).until("SUCCESS"),
    scale([1, at(3, 1)], [(0.25, 1.0)], timestamp=MERGED_AT),
    check_scale(1).until("SUCCESS"),
)
LAST_TWO = good([event(0, SPLIT), event(1, MERGED, merges=1)])

case("none_yet", create_scope(), create_stream(), scaling_events().gives(good([event(0, FIRST)])))
case(
    "all",
    *SCALES,
    scaling_events().gives(good([event(0, FIRST), event(1, SPLIT, splits=1), event(2, MERGED, merges=1)])),
    rest("GET", f"{EVENTS}?from=0&to={FAR}", view=times).gives(good([True] * 7)),
    rest("GET", f"{EVENTS}?from=0&to={FAR}", view=timestamps).gives(good([SPLIT_AT, MERGED_AT])),
)
case("from_a_begin", *SCALES, scaling_events(f"from={SPLIT_AT}&to={FAR}").gives(LAST_TWO))
case("one_before_comes_first", *SCALES, scaling_events(f"from={SPLIT_AT + 1}&to={FAR}").gives(LAST_TWO))
case(
    "up_to_a_begin",
    *SCALES,
    scaling_events(f"from=0&to={SPLIT_AT}").gives(good([event(0, FIRST), event(1, SPLIT, 1)])),
)
case("between", *SCALES, scaling_events(f"from={SPLIT_AT + 1}&to={SPLIT_AT + 2}").gives(good([event(0, SPLIT)])))
case("after_all", *SCALES, scaling_events(f"from={FAR - 1}&to={FAR}").gives(good([event(0, MERGED)])))
case("before_all", create_scope(), create_stream(), scaling_events("from=0&to=1").gives((200, [])))
case("of_missing", create_scope(), scaling_events().gives(404))
case("in_missing_scope", scaling_events().gives(404))
case("without_from", create_scope(), create_stream(), scaling_events("to=1").gives(400))
case("without_to", create_scope(), create_stream(), scaling_events("from=1").gives(400))
case("of_missing_without_to", create_scope(), scaling_events("from=1").gives(400))
case("wrong_way_round", create_scope(), create_stream(), scaling_events("from=5&to=1").gives(400))
case("of_negative", create_scope(), create_stream(), scaling_events("from=-5&to=1").gives(400))
case("of_text", create_scope(), create_stream(), scaling_events("from=x&to=1").gives(404))
case("of_a_number_with_a_point", create_scope(), create_stream(), scaling_events("from=1.5&to=2").gives(404))
case("of_empty", create_scope(), create_stream(), scaling_events("from=&to=2").gives(400))
