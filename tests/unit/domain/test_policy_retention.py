"""Retention: the table of cases of the reference, one row each by its section, then what surrounds a decision."""

from itertools import pairwise
from typing import NamedTuple

import msgspec
import pytest
from support.decisions import sampled

from sluice.domain.config import RetentionPolicy, RetentionType
from sluice.domain.cut_order import Order, compare, lower_bound
from sluice.domain.ids import StreamId
from sluice.domain.policy import requests, retention, retention_set
from sluice.domain.policy.retention import (
    TRUNCATION_RETRY_MS,
    RetentionCode,
    RetentionState,
    decide_retention,
    observe,
    recorded,
)
from sluice.domain.policy.retention_set import RetentionSet, Sample
from sluice.domain.stream.retention import RetentionReport, SizedCut, gone

ONE = {0: (0.0, 1.0)}
TWO = {0: (0.0, 0.5), 1: (0.5, 1.0)}
FOREVER = 2**63 - 1
NOW = 1000
DAY = 24 * 3600 * 1000

STREAM = StreamId("s", "st")

Cut = dict[int, int]


def sized(cut: Cut) -> SizedCut:
    return SizedCut(cut, sum(max(at, 0) for at in cut.values()))


def reported(
    at: int,
    sample: Cut | None,
    policy: RetentionPolicy | None,
    readers: dict[str, Cut] | None = None,
    head: Cut | None = None,
    ranges: dict[int, tuple[float, float]] | None = None,
    creation_id: str = "r",
    stream: str = "st",
) -> RetentionReport:
    its_ranges = ranges or (ONE if len(sample or head or ONE) == 1 else TWO)
    subscribers = {name: sized(cut) for name, cut in (readers or {}).items()}
    bound = lower_bound((s.cut for s in subscribers.values()), its_ranges)
    return sampled(
        stream,
        at,
        0,
        policy,
        creation_id=creation_id,
        head=sized(head or dict.fromkeys(its_ranges, 0)),
        sample=sized(sample) if sample is not None else None,
        subscribers=subscribers,
        bound=sized(bound) if bound else None,
        ranges=its_ranges,
    )


def state_of(reports: list[RetentionReport]) -> RetentionState:
    state = None
    for report in reports:
        state = observe(state, report)
    assert state is not None
    return state


class Case(NamedTuple):
    section: str
    minimum: int
    maximum: int
    samples: dict[int, Cut]
    reader: Cut | None
    code: RetentionCode
    cut: Cut | None


C = RetentionCode
SIZES: dict[int, Cut] = {i: {0: i * 100} for i in range(1, 5)}
HALVES: dict[int, Cut] = {i: {0: i * 50, 1: i * 50} for i in range(1, 5)}
SIZE_CASES = [
    Case("1.7 no bound: min", 150, FOREVER, SIZES, None, C.BEYOND_MINIMUM, {0: 200}),
    Case("1.7 no bound, no min", 350, FOREVER, SIZES, None, C.WITHIN_MINIMUM, None),
    Case("1.7 no bound, one cut, no minimum", 0, FOREVER, {1: {0: 5}}, None, C.BEYOND_MINIMUM, {0: 5}),
    Case("1.7 less retained than the minimum, no min", 350, FOREVER, SIZES, {0: 300}, C.WITHIN_MINIMUM, None),
    Case("1.7 less retained, min before the bound", 150, FOREVER, SIZES, {0: 300}, C.BEYOND_MINIMUM, {0: 200}),
    Case("1.7 bound after the newest cut", 150, FOREVER, SIZES, {0: 450}, C.BEYOND_MINIMUM, {0: 200}),
    Case("1.7 less retained, overlap", 150, FOREVER, HALVES, {0: 90, 1: 190}, C.CONSUMED, {0: 50, 1: 50}),
    Case("1.7 less retained, overlap, none passed", 150, FOREVER, HALVES, {0: 40, 1: 230}, C.HELD_BY_READERS, None),
    Case("1.7 between minimum and maximum: bound", 150, 200, SIZES, {0: 220}, C.CONSUMED, {0: 220}),
    Case("1.7 the minimum exactly: bound", 150, 200, SIZES, {0: 250}, C.CONSUMED, {0: 250}),
    Case("1.7 the maximum exactly: bound, as far as max", 150, 200, SIZES, {0: 200}, C.CONSUMED, {0: 200}),
    Case("1.7 the maximum exactly: max", 50, 250, SIZES, {0: 150}, C.BEYOND_MAXIMUM, {0: 200}),
    Case("1.7 beyond the maximum: max", 150, 200, SIZES, {0: 120}, C.BEYOND_MAXIMUM, {0: 200}),
    Case("1.5 max is the oldest within the maximum", 50, 250, SIZES, {0: 20}, C.BEYOND_MAXIMUM, {0: 200}),
    Case("1.5 none within the maximum: max is min", 110, 190, SIZES, {0: 20}, C.BEYOND_MAXIMUM, {0: 200}),
    Case("1.7 max leaves as much: bound", 150, 200, {1: {0: 100}, 4: {0: 400}}, {0: 120}, C.CONSUMED, {0: 120}),
    Case("1.7 no max: bound", 150, 200, {4: {0: 400}}, {0: 120}, C.CONSUMED, {0: 120}),
    Case("1.1 a maximum below the minimum", 150, 0, SIZES, {0: 120}, C.BEYOND_MAXIMUM, {0: 200}),
    Case("1.1 a maximum below the minimum, near reader", 150, 0, SIZES, {0: 390}, C.BEYOND_MINIMUM, {0: 200}),
    Case("1.7 beyond the maximum, overlap", 50, 100, HALVES, {0: 0, 1: 190}, C.BEYOND_MAXIMUM, {0: 150, 1: 150}),
    Case("1.6 a reader at the head holds", 150, 500, SIZES, {0: 0}, C.HELD_BY_READERS, None),
]

TIMES: dict[int, Cut] = {at: {0: at} for at in (100, 300, 500, 700, 900)}
WIDE: dict[int, Cut] = {at: {0: at, 1: at} for at in TIMES}
TIME_CASES = [
    Case("1.8 no bound: min", 300, FOREVER, TIMES, None, C.BEYOND_MINIMUM, {0: 700}),
    Case("1.8 no bound, no min", 950, FOREVER, TIMES, None, C.WITHIN_MINIMUM, None),
    Case("1.8 no min", 950, FOREVER, TIMES, {0: 500}, C.WITHIN_MINIMUM, None),
    Case("1.8 min before the bound", 300, 600, TIMES, {0: 800}, C.BEYOND_MINIMUM, {0: 700}),
    Case("1.8 min at the bound", 300, 600, TIMES, {0: 700}, C.CONSUMED, {0: 700}),
    Case("1.8 min after the bound, none overdue: bound", 300, 2000, TIMES, {0: 250}, C.CONSUMED, {0: 250}),
    Case("1.8 bound after what is overdue: bound", 300, 600, TIMES, {0: 600}, C.CONSUMED, {0: 600}),
    Case("1.8 bound at what is overdue: bound", 300, 600, TIMES, {0: 300}, C.CONSUMED, {0: 300}),
    Case("1.8 bound before what is overdue: max", 300, 600, TIMES, {0: 250}, C.BEYOND_MAXIMUM, {0: 500}),
    Case("1.5 max at the maximum exactly", 300, 500, TIMES, {0: 250}, C.BEYOND_MAXIMUM, {0: 500}),
    Case("1.5 none within the maximum: max is min", 310, 390, TIMES, {0: 20}, C.BEYOND_MAXIMUM, {0: 500}),
    Case("1.8 bound overlaps what is overdue", 300, 600, WIDE, {0: 250, 1: 650}, C.BEYOND_MAXIMUM, {0: 300, 1: 300}),
    Case("1.8 min overlaps the bound", 300, FOREVER, WIDE, {0: 550, 1: 950}, C.CONSUMED, {0: 500, 1: 500}),
    Case("1.8 min overlaps, none passed", 300, FOREVER, WIDE, {0: 50, 1: 950}, C.HELD_BY_READERS, None),
    Case("1.8 min overlaps, the maximum does not count", 300, 600, WIDE, {0: 250, 1: 950}, C.CONSUMED, WIDE[100]),
    Case("1.8 the same, none passed", 300, 600, WIDE, {0: 50, 1: 950}, C.HELD_BY_READERS, None),
    Case("1.1 a maximum below the minimum", 300, 0, TIMES, {0: 250}, C.BEYOND_MAXIMUM, {0: 700}),
    Case("1.6 a reader at the head holds", 300, FOREVER, TIMES, {0: 0}, C.HELD_BY_READERS, None),
]


@pytest.mark.parametrize(
    ("kind", "case"),
    [(RetentionType.SIZE, c) for c in SIZE_CASES] + [(RetentionType.TIME, c) for c in TIME_CASES],
    ids=lambda value: value.section if isinstance(value, Case) else "",
)
def test_the_table(kind: RetentionType, case: Case) -> None:
    policy = RetentionPolicy(kind, case.minimum, case.maximum)
    readers = {"sc/rg": case.reader} if case.reader is not None else None
    state = state_of([reported(at, cut, policy, readers) for at, cut in case.samples.items()])
    found = decide_retention(state, NOW)
    assert (found.code, found.cut) == (case.code, case.cut), found.reason
    assert found.reason.startswith("truncated to " if found.cut else "not truncated: ")
    if found.code in (C.CONSUMED, C.HELD_BY_READERS, C.BEYOND_MAXIMUM):
        assert "reader group sc/rg" in found.reason


def test_reasons_name_the_reader_group_that_is_last_and_the_age() -> None:
    policy = RetentionPolicy(RetentionType.TIME, 7 * DAY, FOREVER)
    readers = {"sc/far": {0: 90}, "sc/near": {0: 0}}
    reports = [reported(DAY, {0: 100}, policy), reported(2 * DAY, {0: 300}, policy)]
    found = decide_retention(state_of(reports), 9 * DAY)
    assert found.reason == "truncated to the cut of 7 days ago: older than 7 days"
    held = decide_retention(state_of([*reports, reported(3 * DAY, None, policy, readers)]), 9 * DAY)
    assert held.reason == "not truncated: reader group sc/near stands 0 bytes after the head"
    passed = decide_retention(state_of([*reports, reported(3 * DAY, None, policy, {"sc/far": {0: 90}})]), 9 * DAY)
    assert passed.reason == (
        "truncated to where reader group sc/far stands, 90 bytes after the head: all have read what is before"
    )


SIZE = RetentionPolicy(RetentionType.SIZE, 100, FOREVER)
TIME = RetentionPolicy(RetentionType.TIME, 100, FOREVER)


def test_a_stream_without_a_policy_or_a_cut_and_internal_streams_are_left_alone() -> None:
    none = state_of([reported(1, {0: 500}, TIME), reported(2, None, None, head={0: 0})])
    assert decide_retention(none, NOW).code is C.NO_POLICY
    again = observe(none, reported(3, None, TIME, head={0: 0}))
    assert decide_retention(again, NOW).cut == {0: 500}, "what was sampled before is good still"
    assert decide_retention(state_of([reported(1, None, TIME, head={0: 0})]), NOW).code is C.NO_CUT
    for name in ("_MARKst", "_RGrg", "_MARK_RGrg"):
        internal = state_of([reported(1, {0: 500}, TIME, stream=name)])
        assert decide_retention(internal, NOW).code is C.INTERNAL_STREAM


def test_the_head_is_never_moved_back_nor_to_where_it_is() -> None:
    for head in ({0: 200}, {0: 350}):
        state = state_of([reported(i, {0: i * 100}, SIZE, head=head) for i in range(1, 5)])
        assert decide_retention(state, NOW).cut == ({0: 300} if head == {0: 200} else None)
    partly = state_of([reported(1, {0: 100, 1: 100}, TIME), reported(2, None, TIME, head={0: 150, 1: 0})])
    found = decide_retention(partly, NOW)
    assert (found.code, found.cut) == (C.AT_HEAD, None)


def test_a_truncation_is_requested_a_second_time_only_much_later() -> None:
    state = state_of([reported(i, {0: i * 100}, SIZE) for i in range(1, 5)])
    first = decide_retention(state, NOW)
    state = recorded(state, first, NOW)
    assert first.cut == {0: 300}
    assert decide_retention(state, NOW).code is C.REQUESTED
    further = observe(state, reported(5, {0: 500}, SIZE))
    assert decide_retention(further, NOW + 1000).code is C.PAUSED
    assert decide_retention(further, NOW + 1000, pause_ms=0).cut == {0: 400}
    assert decide_retention(further, NOW + retention.PAUSE_MS).cut == {0: 400}
    assert decide_retention(state, NOW + TRUNCATION_RETRY_MS).cut == {0: 300}
    keeps_more = observe(further, reported(6, None, RetentionPolicy(RetentionType.SIZE, 300, FOREVER), head={0: 0}))
    assert decide_retention(keeps_more, NOW + 1000, pause_ms=0).code is C.REQUESTED, "not backwards"


def test_a_change_of_policy_from_consumption_to_none() -> None:
    readers = {"sc/rg": {0: 50}}
    state = state_of([reported(i, {0: i * 100}, SIZE, readers) for i in range(1, 5)])
    assert decide_retention(state, NOW).cut == {0: 50}
    state = observe(state, reported(9, None, SIZE, head={0: 0}))
    assert decide_retention(state, NOW).cut == {0: 300}
    state = observe(state, reported(10, None, TIME, head={0: 0}))
    assert decide_retention(state, NOW).cut == {0: 400}


def test_reports_late_of_another_life_and_of_the_end() -> None:
    state = state_of([reported(10, {0: 100}, SIZE)])
    late = observe(state, reported(5, {0: 50}, TIME, {"sc/rg": {0: 1}}))
    assert (late.policy, late.subscribers) == (SIZE, {}) and [s.at for s in late.sampled.samples] == [5, 10]
    assert observe(state, reported(5, {0: 50}, SIZE, creation_id="before")) is state
    after = observe(state, reported(11, {7: 70}, SIZE, ranges={7: (0.0, 1.0)}, creation_id="after"))
    assert after.creation_id == "after" and after.ranges == {7: (0.0, 1.0)}
    assert [s.at for s in after.sampled.samples] == [11]
    ended = observe(state, gone(STREAM, "g", "test", 12))
    assert decide_retention(ended, NOW).code is C.NO_POLICY and not ended.sampled.references() and not ended.ranges
    assert observe(ended, reported(11, {0: 200}, SIZE)) is ended


def test_the_newest_report_is_that_of_the_latest_version_whatever_the_clocks_say() -> None:
    def of(version: int, report: RetentionReport) -> RetentionReport:
        return msgspec.structs.replace(report, version=version)

    known = state_of([of(3, reported(10, {0: 100}, SIZE))])
    removed = observe(known, of(4, reported(8, None, None, head={0: 0})))
    assert removed.policy is None and (removed.version, removed.last_report[0]) == (4, 8)
    assert observe(removed, of(3, reported(12, {0: 200}, SIZE))).policy is None
    ended = observe(known, of(5, gone(STREAM, "g", "test", 1)))
    assert ended.policy is None and observe(ended, of(3, reported(12, {0: 200}, SIZE))) is ended
    assert observe(known, reported(11, None, None, head={0: 0})).policy is None, "without a version, time decides"


def test_the_state_survives_as_json() -> None:
    state = state_of([reported(i, {0: i * 100}, SIZE, {"sc/rg": {0: 320}}) for i in range(1, 5)])
    state = recorded(state, decide_retention(state, NOW), NOW)
    assert msgspec.json.decode(msgspec.json.encode(state), type=RetentionState) == state


def test_ids_follow_from_the_decision() -> None:
    state = state_of([reported(i, {0: i * 100}, SIZE) for i in range(1, 5)])
    found = decide_retention(state, NOW)
    request, later = (requests.truncation(state, decide_retention(state, now), now) for now in (NOW, NOW + 5))
    assert request is not None and later is not None and request[0] == later[0]
    id, command = request
    assert command.cut == {0: 300} and (command.scope, command.stream) == STREAM
    others = {
        requests.truncation_id(STREAM, "r", {0: 301}, SIZE),
        requests.truncation_id(STREAM, "other", {0: 300}, SIZE),
        requests.truncation_id(STREAM, "r", {0: 300, 1: 0}, SIZE),
        requests.truncation_id(STREAM, "r", {0: 300}, TIME),
    }
    assert id not in others and len(others) == 4
    same = [requests.truncation_id(STREAM, "r", cut, SIZE) for cut in ({1: 0, 0: 3}, {0: 3, 1: 0})]
    assert same[0] == same[1]
    assert requests.truncation(state, decide_retention(recorded(state, found, NOW), NOW), NOW) is None


def test_the_worked_example_of_the_lower_bound() -> None:
    """1.6: segment 5 came of 1, 2 and a part of 0."""
    ranges = {0: (0.0, 0.4), 1: (0.4, 0.7), 2: (0.7, 1.0), 5: (0.2, 1.0)}
    first, second, third = {0: 9, 5: -1}, {0: 8, 2: 9, 5: -1}, {0: 9, 1: 9, 2: 9}
    assert lower_bound([first, second], ranges) == {0: 8, 2: 9, 5: -1}
    assert lower_bound([first, second, third], ranges) == {0: 8, 1: 9, 2: 9}
    assert lower_bound([third, second, first], ranges) == {0: 8, 1: 9, 2: 9}
    assert lower_bound([], ranges) == {}
    assert compare(first, second, ranges) is Order.AFTER and compare(second, second, ranges) is Order.SAME
    assert compare({5: 0}, first, ranges) is Order.AFTER and compare({0: 1, 1: 0, 2: 0}, {5: 3}, ranges) is Order.BEFORE
    assert compare({0: 1, 1: 5, 2: 0}, {0: 0, 1: 7, 2: 0}, ranges) is Order.OVERLAPS


@pytest.mark.parametrize("kind", RetentionType)
def test_the_set_is_bounded_whatever_the_order_and_keeps_an_even_choice(kind: RetentionType) -> None:
    samples = [Sample(i * 60_000, i * 1000, {0: i * 1000}) for i in range(1, 4001)]
    forward = backward = RetentionSet()
    for sample in samples:
        forward = retention_set.added(forward, sample, kind)
    for sample in (*samples[2000:], *reversed(samples)):
        backward = retention_set.added(backward, sample, kind)
    assert forward == backward
    assert 500 < len(forward.samples) <= retention_set.MAX_SAMPLES
    assert forward.references()[-1] == samples[-1] and forward.samples[0] == samples[0]
    ats = [s.at for s in forward.references()]
    assert max(b - a for a, b in pairwise(ats)) < 4000 * 60_000 / 400
    for done in range(0, 3_900_001, 100_000):
        forward = retention_set.beyond(forward, done)
    assert forward.references()[0].size > 3_900_000 and forward.level < backward.level


def test_cells_of_bytes_are_none_of_time() -> None:
    state = state_of([reported(1, {0: 100}, SIZE)])
    coarse = msgspec.structs.replace(state, sampled=msgspec.structs.replace(state.sampled, level=30))
    assert observe(coarse, reported(2, {0: 200}, SIZE)).sampled.level == 30
    without = observe(coarse, reported(2, None, None, head={0: 0}))
    for before in (coarse, without):
        after = observe(before, reported(3, {0: 200}, TIME)).sampled
        assert after.level == 0 and [s.at for s in after.samples] == [1, 3]


def test_wide_cuts_make_the_set_shorter() -> None:
    known = RetentionSet()
    for i in range(1, 100):
        known = retention_set.added(known, Sample(i, i, dict.fromkeys(range(10_000), i)), RetentionType.TIME)
        assert len(known.samples) <= retention_set.MIN_SAMPLES


def test_ranges_go_with_what_named_their_segments() -> None:
    ranges = {0: (0.0, 1.0), 7: (0.0, 1.0)}
    state = state_of([reported(1, {7: 9}, SIZE, {"sc/rg": {0: 5}}, head={0: 1}, ranges=ranges)])
    assert state.ranges == ranges
    state = observe(state, reported(2, None, SIZE, head={7: 3}, ranges={7: (0.0, 1.0)}))
    assert state.ranges == {7: (0.0, 1.0)}
