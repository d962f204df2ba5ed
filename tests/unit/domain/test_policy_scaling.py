"""Scaling: the rules of the reference one by one, then what surrounds a decision."""

from typing import Any

import msgspec
import pytest
from support import decisions

from sluice.domain.config import MAX_SEGMENTS, ScaleType, ScalingPolicy
from sluice.domain.ids import StreamId
from sluice.domain.policy import requests
from sluice.domain.policy.scaling import (
    COOLDOWN_MS,
    MAX_LOADS,
    VALID_MS,
    ScaleCode,
    ScaleDecision,
    ScalingState,
    decide_scaling,
    muted_until,
    observe,
    recorded,
    split_range,
)
from sluice.domain.segment import Segment, segment_id
from sluice.domain.stream.traffic import Direction, PolicyInForce, ScaleReport

NOW = 10_000_000
EVENTS = PolicyInForce(ScaleType.EVENTS, 100, 4, 1)
C = ScaleCode


def segments(count: int) -> list[Segment]:
    return [Segment(i, i / count, (i + 1) / count) for i in range(count)]


def reported(
    segment: int, direction: Direction, of: list[Segment], at: int = NOW, splits: int = 2, **more: Any
) -> ScaleReport:
    its = next(s for s in of if s.id == segment)
    facts: dict[str, Any] = {
        "id": f"{segment}-{direction.value}-{at}",
        "range": (its.low, its.high),
        "splits": splits if direction is Direction.UP else 0,
        "epoch_since": 0,
        "epoch_segments": len(of),
        "neighbours": tuple(s for s in of if its.low == s.high or its.high == s.low)
        if more.get("active", True)
        else (),
        "policy": EVENTS,
    }
    return decisions.hot("st", at, segment=segment, direction=direction, **facts | more)


def state_of(reports: list[ScaleReport], now: int = NOW) -> ScalingState:
    state = None
    for report in reports:
        state = observe(state, report, now)
    assert state is not None
    return state


def decided(reports: list[ScaleReport], now: int = NOW) -> ScaleDecision:
    return decide_scaling(state_of(reports, now), now)


def cold(segment: int, of: list[Segment], **more: Any) -> ScaleReport:
    return reported(segment, Direction.DOWN, of, **more)


def hot(segment: int, of: list[Segment], **more: Any) -> ScaleReport:
    return reported(segment, Direction.UP, of, **more)


@pytest.mark.parametrize(
    ("splits", "factor", "parts"), [(0, 0, 2), (1, 5, 2), (3, 2, 2), (3, 0, 2), (3, 5, 3), (9, 4, 4)]
)
def test_9_2_up_splits_into_what_is_reported_within_the_factor(splits: int, factor: int, parts: int) -> None:
    policy = PolicyInForce(ScaleType.KBYTES, 100, factor, 1)
    found = decided([hot(1, segments(2), splits=splits, policy=policy)])
    assert (found.code, found.seals, len(found.ranges)) == (C.SPLIT, (1,), parts)
    assert found.ranges == split_range(0.5, 1.0, parts) and found.segments == 1 + parts
    assert found.reason == f"split 1.#epoch.0 into {parts}: above the target of 100 KB/s"


def test_9_2_ranges_are_those_of_the_example() -> None:
    third, two_thirds = 0.6666666666666666, 0.8333333333333333
    assert split_range(0.5, 1.0, 3) == ((0.5, third), (third, two_thirds), (two_thirds, 1.0))


@pytest.mark.parametrize(
    ("total", "least", "reported", "code", "seals"),
    [
        (4, 1, (1, 2), C.MERGE, (1, 2)),
        (4, 1, (0, 1, 2), C.MERGE, (0, 1, 2)),
        (4, 3, (0, 1, 2), C.MERGE, (0, 1)),
        (4, 4, (0, 1, 2), C.AT_MINIMUM, ()),
        (4, 9, (0, 1), C.AT_MINIMUM, ()),
        (4, 1, (0, 2), C.NO_COLD_NEIGHBOUR, ()),
        (4, 1, (3,), C.NO_COLD_NEIGHBOUR, ()),
        (6, 1, (0, 1, 2, 3, 4, 5), C.MERGE, (0, 1, 2, 3, 4, 5)),
        (6, 3, (0, 1, 2, 3, 4, 5), C.MERGE, (0, 1, 2, 3, 4)),
        (6, 1, (0, 1, 2, 3), C.MERGE, (0, 1, 2)),
        (6, 5, (0, 1, 4, 5), C.MERGE, (0, 1)),
        (6, 2, (0, 1, 4, 5), C.MERGE, (0, 1, 4, 5)),
    ],
)
def test_9_2_down_merges_adjacent_cold_segments(
    total: int, least: int, reported: tuple[int, ...], code: ScaleCode, seals: tuple[int, ...]
) -> None:
    policy = PolicyInForce(ScaleType.EVENTS, 100, 2, least)
    found = decided([cold(s, segments(total), policy=policy) for s in reported])
    assert (found.code, found.seals) == (code, seals)
    assert found.reason.startswith("merged " if seals else "not scaled: ")
    if seals:
        assert found.segments >= least and found.segments == total - len(seals) + len(found.ranges)
        assert found.ranges[0][0] == seals[0] / total and found.ranges[-1][1] == (seals[-1] + 1) / total


def test_9_2_fixed_streams_are_never_scaled() -> None:
    fixed = PolicyInForce(ScaleType.FIXED, 0, 0, 1)
    found = decided([hot(0, segments(2), policy=fixed), cold(1, segments(2), policy=fixed)])
    assert (found.code, found.seals) == (C.FIXED, ())


def test_9_2_reports_of_ten_minutes_ago_are_dropped() -> None:
    two = segments(2)
    assert observe(None, hot(0, two, at=NOW - VALID_MS), NOW) is None
    state = state_of([hot(0, two, at=NOW - VALID_MS + 1)])
    assert observe(state, cold(1, two, at=NOW - VALID_MS), NOW) is state
    assert decide_scaling(state, NOW).code is C.SPLIT


def test_a_report_of_a_silent_segment_counts_however_late_it_is_observed() -> None:
    """Stores say it once (users-ask 2.8, 2786): after an outage of hours the stream must still merge."""
    two, long_ago = segments(2), NOW - 50 * VALID_MS
    found = decided([cold(s, two, at=long_ago, silent=True) for s in (0, 1)])
    assert (found.code, found.seals) == (C.MERGE, (0, 1))
    assert observe(None, cold(0, two, at=long_ago, silent=True, active=False), NOW) is None, "it is gone"


def test_a_later_report_of_a_silent_segment_counts_however_late_it_is_observed() -> None:
    two, long_ago = segments(2), NOW - 50 * VALID_MS
    silent = [cold(s, two, at=long_ago, silent=True) for s in (0, 1)]
    woken = state_of([*silent, hot(0, two, at=long_ago + 1)])
    assert decide_scaling(woken, NOW).code is C.NO_COLD_NEIGHBOUR
    replaced = state_of([*silent, cold(0, two, at=long_ago + 1, epoch=1, active=False)])
    assert decide_scaling(replaced, NOW).seals == ()
    state = state_of(silent)
    assert observe(state, hot(0, two, at=long_ago - 1), NOW) is state, "it was received before"
    assert observe(state, hot(0, two, at=long_ago + 1, creation_id="other"), NOW) is state


def test_9_2_a_cold_segment_is_so_for_ten_minutes_a_silent_one_until_a_report() -> None:
    two = segments(2)
    for silent, code in ((False, C.STEADY), (True, C.NO_COLD_NEIGHBOUR)):
        state = state_of([cold(0, two, silent=silent)])
        assert decide_scaling(state, NOW + VALID_MS - 1).code is C.NO_COLD_NEIGHBOUR
        assert decide_scaling(state, NOW + VALID_MS).code is code
    silent_one = state_of([cold(0, two, silent=True)])
    much_later = NOW + 100 * VALID_MS
    both = observe(silent_one, cold(1, two, at=much_later), much_later)
    assert both is not None and decide_scaling(both, much_later).seals == (0, 1)
    woken = observe(both, cold(0, two, at=much_later), much_later)
    assert woken is not None and not woken.loads[0].silent
    busy = observe(both, hot(0, two, at=much_later), much_later)
    assert busy is not None and decide_scaling(busy, much_later).seals == (0,)


def test_the_later_word_on_a_segment_counts() -> None:
    two = segments(2)
    reports = [hot(0, two, at=NOW - 5), cold(0, two, at=NOW - 9), cold(1, two, at=NOW - 7)]
    assert decided(reports).code is C.SPLIT
    assert decided([*reports, cold(0, two, at=NOW)]).code is C.MERGE


def test_all_that_is_due_is_one_scale() -> None:
    found = decided([hot(0, segments(5)), cold(2, segments(5)), cold(3, segments(5)), hot(4, segments(5))])
    assert (found.code, found.seals) == (C.SPLIT_AND_MERGE, (0, 2, 3, 4))
    assert sorted(found.ranges) == [(0, 0.1), (0.1, 0.2), (0.4, 0.8), (0.8, 0.9), (0.9, 1)]
    assert found.segments == 6


def test_a_stream_is_left_alone_after_each_scale_requested_or_not() -> None:
    four = segments(4)
    state = state_of([hot(0, four, epoch_since=NOW - 1000)])
    assert decide_scaling(state, NOW).code is C.COOLING_DOWN
    assert muted_until(state, NOW) == NOW - 1000 + COOLDOWN_MS
    assert decide_scaling(state, NOW, cooldown_ms=0).code is C.SPLIT
    assert decide_scaling(state, NOW - 1000 + COOLDOWN_MS).code is C.SPLIT
    state = state_of([hot(0, four)])
    state = recorded(state, decide_scaling(state, NOW), NOW)
    both = observe(state, hot(2, four, at=NOW + 1), NOW + 1)
    assert both is not None and decide_scaling(both, NOW + 1).code is C.COOLING_DOWN
    second = decide_scaling(both, NOW + COOLDOWN_MS)
    assert (second.seals, second.segments) == ((2,), 6), "0 was requested"
    again = observe(both, hot(0, four), NOW + 2)
    assert again is not None and decide_scaling(again, NOW + COOLDOWN_MS).seals == (2,)
    refused = NOW + VALID_MS
    still = observe(both, hot(0, four, at=refused), refused)
    assert still is not None and decide_scaling(still, refused).seals == (0, 2)


def test_the_limit_of_segments() -> None:
    two = segments(2)
    found = decided([hot(0, two, splits=9, epoch_segments=MAX_SEGMENTS - 2)])
    assert (len(found.ranges), found.segments) == (3, MAX_SEGMENTS)
    full = decided([hot(0, two, epoch_segments=MAX_SEGMENTS)])
    assert (full.code, full.seals) == (C.AT_MAXIMUM, ())
    narrow = [Segment(0, 0.5, 0.5000000000000001), Segment(1, 0.5000000000000001, 1)]
    assert decided([hot(0, narrow)]).code is C.AT_MAXIMUM


def test_segments_that_were_replaced_are_left_alone() -> None:
    two = segments(2)
    low, high = segment_id(1, 2), segment_id(1, 3)
    after = [two[0], Segment(low, 0.5, 0.75), Segment(high, 0.75, 1.0)]
    reports = [hot(1, two, at=NOW - 9), cold(0, two, at=NOW - 8, silent=True)]
    assert decided([*reports, hot(1, two, at=NOW - 9, epoch=1, active=False)]).code is C.STEADY
    state = state_of([*reports, cold(high, after, epoch=1, epoch_since=5)])
    assert decide_scaling(state, NOW).code is C.NO_COLD_NEIGHBOUR, "0 is not known to be there still"
    state = state_of([*reports, cold(low, after, epoch=1, epoch_since=5)])
    assert decide_scaling(state, NOW).seals == (0, low), "as a neighbour it is known to be"
    late = observe(state, hot(1, two, at=NOW - 1), NOW)
    assert late is not None and (late.epoch, late.epoch_segments) == (1, 3)
    assert decide_scaling(late, NOW).seals == (0, low), "a report of an epoch that has passed"


def test_what_a_scale_of_ours_left_out_is_there_still() -> None:
    four = segments(4)
    state = state_of([hot(0, four), cold(2, four, silent=True)])
    split = decide_scaling(state, NOW)
    state = recorded(state, split, NOW)
    later = NOW + VALID_MS
    halves = [Segment(segment_id(1, 4 + i), *r) for i, r in enumerate(split.ranges)]
    after = [*halves, *four[1:]]
    for since, code in ((NOW, C.NO_COLD_NEIGHBOUR), (NOW + 1, C.STEADY)):
        seen = observe(state, hot(halves[0].id, after, at=NOW + 2, epoch=1, epoch_since=since), NOW + 2)
        assert seen is not None and seen.epoch_segments == split.segments
        assert decide_scaling(seen, later + 5).code is code, "another scale may have replaced it"


def test_reports_of_another_life() -> None:
    two = segments(2)
    state = state_of([hot(0, two, epoch_since=50)])
    assert observe(state, hot(1, two, epoch_since=40, creation_id="before"), NOW) is state
    after = observe(state, cold(1, two, epoch_since=60, creation_id="after"), NOW)
    assert after is not None and (after.creation_id, list(after.loads)) == ("after", [1])


def test_reports_of_a_new_stream_count_though_the_one_before_scaled_in_the_future() -> None:
    two = segments(2)
    state = observe(None, hot(0, two, epoch_since=2 * NOW), NOW)
    after = observe(state, hot(1, two, epoch_since=NOW - 1, creation_id="after"), NOW)
    assert after is not None and after.creation_id == "after"
    assert decide_scaling(after, NOW + COOLDOWN_MS).code is C.SPLIT


def test_the_state_is_bounded_and_survives_as_json() -> None:
    state = state_of([hot(0, segments(5)), cold(2, segments(5)), cold(3, segments(5))])
    state = recorded(state, decide_scaling(state, NOW), NOW)
    assert msgspec.json.decode(msgspec.json.encode(state), type=ScalingState) == state
    load = state.loads[2]
    many = {
        i: msgspec.structs.replace(load, segment=Segment(i, 0.0, 1.0), at=NOW + i) for i in range(10, MAX_LOADS + 10)
    }
    full = observe(msgspec.structs.replace(state, loads=many), hot(0, segments(5), at=NOW + 9), NOW)
    assert full is not None and len(full.loads) == MAX_LOADS and 0 not in full.loads


def test_ids_follow_from_the_decision() -> None:
    state = state_of([hot(0, segments(2))])
    found = decide_scaling(state, NOW)
    request = requests.scale(state, found, NOW)
    assert request is not None
    id, command = request
    assert command.policy is not None
    assert id == requests.scale_id(StreamId("s", "st"), "i", 0, (0,), command.policy) and command.seals == (0,)
    again = requests.scale(state, decide_scaling(state, NOW + 5), NOW + 5)
    assert again is not None and again[0] == id
    others = [
        (StreamId("s", "st"), "i", 1, (0,), command.policy),
        (StreamId("s", "st"), "i", 0, (0, 1), command.policy),
        (StreamId("s", "st"), "q", 0, (0,), command.policy),
        (StreamId("s", "t"), "i", 0, (0,), command.policy),
        (StreamId("s", "st"), "i", 0, (0,), ScalingPolicy()),
    ]
    assert id not in {requests.scale_id(*other) for other in others}
    assert requests.scale(state, ScaleDecision(C.STEADY, "not scaled"), NOW) is None


def test_limits_hold_over_all_parts_of_a_scale_and_over_scales_not_yet_observed() -> None:
    two = segments(2)
    found = decided([hot(0, two, epoch_segments=MAX_SEGMENTS - 1), hot(1, two, epoch_segments=MAX_SEGMENTS - 1)])
    assert (found.seals, found.segments) == ((0,), MAX_SEGMENTS)
    four, policy = segments(4), PolicyInForce(ScaleType.EVENTS, 100, 2, 3)
    state = state_of([cold(0, four, policy=policy), cold(1, four, policy=policy)])
    state = recorded(state, decide_scaling(state, NOW), NOW)
    for segment in (2, 3):
        state = state_of_more(state, cold(segment, four, at=NOW + 1, policy=policy))
    assert decide_scaling(state, NOW + COOLDOWN_MS).code is C.AT_MINIMUM


def test_a_scale_dated_in_the_future_delays_no_other() -> None:
    year = 365 * 24 * 3_600_000
    two = segments(2)
    assert decided([hot(0, two, epoch_since=NOW + year)]).code is C.SPLIT
    state = state_of([hot(0, two)])
    wrong = recorded(state, decide_scaling(state, NOW), NOW + year)
    assert decide_scaling(state_of_more(wrong, hot(1, two, at=NOW + 1)), NOW + 1).seals == (0, 1)


def test_a_scale_that_was_not_carried_out_is_not_believed_for_ever() -> None:
    four, policy = segments(4), PolicyInForce(ScaleType.EVENTS, 100, 2, 3)
    state = state_of([cold(0, four, policy=policy), cold(1, four, policy=policy)])
    state = recorded(state, decide_scaling(state, NOW), NOW)
    for segment in (2, 3):
        state = state_of_more(state, cold(segment, four, at=NOW + VALID_MS - 1, policy=policy))
    assert decide_scaling(state, NOW + VALID_MS).code is C.AT_MINIMUM
    state = state_of_more(state, cold(0, four, at=NOW + VALID_MS, policy=policy))
    assert decide_scaling(state, NOW + VALID_MS).seals == (2, 3)


def test_silent_segments_of_a_refused_merge_are_merged_after_a_later_report() -> None:
    """Stores report them once, so what was known of them must not be lost with the scale."""
    four, later = segments(4), NOW + 50 * VALID_MS
    state = state_of([cold(s, four, silent=True) for s in (0, 1)])
    state = recorded(state, decide_scaling(state, NOW), NOW)
    assert decide_scaling(state, later).code is C.STEADY, "no report shows it"
    assert decide_scaling(state_of_more(state, hot(3, four, at=NOW + VALID_MS - 1)), later).code is C.STEADY
    assert decide_scaling(state_of_more(state, hot(3, four, at=later)), later).seals == (0, 1, 3)


def test_silent_segments_are_forgotten_once_a_report_shows_their_merge() -> None:
    four = segments(4)
    state = state_of([cold(s, four, silent=True) for s in (0, 1)])
    state = recorded(state, decide_scaling(state, NOW), NOW)
    whole = segment_id(1, 4)
    after = [Segment(whole, 0.0, 0.5), *four[2:]]
    report = cold(whole, after, at=NOW + 1, silent=True, epoch=1, epoch_since=NOW)
    seen = state_of_more(state, report)
    assert seen.loads.keys() == {whole} == state_of_more(seen, cold(0, four, at=NOW + 1)).loads.keys()


def test_a_hot_segment_of_a_refused_scale_is_split_by_a_report_of_the_next_epoch() -> None:
    """A client has replaced segment 3 before, so the whole scale was refused."""
    four = segments(4)
    state = state_of([hot(0, four), cold(2, four), cold(3, four)])
    state = recorded(state, decide_scaling(state, NOW), NOW)
    after = [*four[:3], Segment(segment_id(1, 4), 0.75, 0.875), Segment(segment_id(1, 5), 0.875, 1.0)]
    later = NOW + COOLDOWN_MS
    state = state_of_more(state, hot(0, after, at=later, epoch=1, epoch_since=NOW - 1))
    assert decide_scaling(state, later).seals == (0,)


def test_the_later_report_on_a_position_is_that_of_the_later_epoch() -> None:
    two = segments(2)
    state = state_of([hot(1, two, at=NOW - 9, epoch=1, active=False), hot(1, two, at=NOW)])
    assert not state.loads[1].active and state.loads[1].at == NOW


def state_of_more(state: ScalingState, report: ScaleReport) -> ScalingState:
    more = observe(state, report, report.at)
    assert more is not None
    return more
