"""Internal streams: what may be truncated of each."""

from itertools import takewhile

import pytest

from sluice.domain.ids import StreamId
from sluice.domain.policy import internal
from sluice.domain.policy.internal import InternalDecision, InternalRule, is_passed, rule_of
from sluice.domain.segment import Segment
from sluice.domain.stream.upper_bound import Watermark

WHOLE, LOW, HIGH = Segment(0, 0.0, 1.0), Segment((1 << 32) + 1, 0.0, 0.5), Segment((1 << 32) + 2, 0.5, 1.0)
MARKS = {
    10: Watermark(1, 2, {WHOLE: 100}),
    20: Watermark(2, 3, {WHOLE: 200}),
    30: Watermark(3, 4, {LOW: 0, HIGH: 5}),
    40: Watermark(4, 5, {LOW: 50, HIGH: 9}),
    50: Watermark(5, 6, {LOW: 60, HIGH: 60}),
}
RANGES = {s.id: (s.low, s.high) for s in (WHOLE, LOW, HIGH)}


@pytest.mark.parametrize(
    ("scope", "name", "rule"),
    [
        ("sc", "_MARKst", InternalRule.WATERMARKS),
        ("sc", "_MARK_RGrg", InternalRule.WATERMARKS),
        ("_system", "_MARK_requeststream", InternalRule.WATERMARKS),
        ("sc", "_RGrg", InternalRule.STATE),
        ("_system", "_requeststream", InternalRule.REPORTS),
        ("sc", "_requeststream", None),
        ("sc", "st", None),
        ("_system", "st", None),
    ],
)
def test_which_rule_a_stream_has(scope: str, name: str, rule: InternalRule | None) -> None:
    assert rule_of(StreamId(scope, name)) is rule


@pytest.mark.parametrize(
    ("head", "keeps_from"),
    [
        ({WHOLE.id: 0}, None),
        ({WHOLE.id: 100}, None),
        ({WHOLE.id: 199}, None),
        ({WHOLE.id: 200}, 20),
        ({LOW.id: 0, HIGH.id: 4}, 20),
        ({LOW.id: 0, HIGH.id: 5}, 30),
        ({LOW.id: 49, HIGH.id: 900}, 30),
        ({LOW.id: 50, HIGH.id: 9}, 40),
        ({LOW.id: 900, HIGH.id: 900}, 40),
    ],
)
def test_watermarks_go_once_the_head_has_passed_the_next_one_but_never_the_last_two(
    head: dict[int, int], keeps_from: int | None
) -> None:
    def decided(start: int) -> InternalDecision:
        left = {offset: mark for offset, mark in MARKS.items() if offset >= start}
        passed = len(list(takewhile(lambda mark: is_passed(mark, head, RANGES), left.values())))
        return internal.decide_watermarks(7, start, list(left), passed)

    found = decided(10)
    assert found.cut == ({7: keeps_from} if keeps_from is not None else None), found.reason
    assert found.reason.startswith("truncated behind" if found.cut else "not truncated: ")
    if keeps_from is not None:
        assert decided(keeps_from).cut is None, "once is enough"
        assert sum(offset >= keeps_from for offset in MARKS) >= internal.WATERMARKS_KEPT


def test_an_empty_mark_stream_is_left_alone() -> None:
    assert internal.decide_watermarks(7, 0, [], 0).cut is None


def test_reports_go_behind_what_was_passed_on() -> None:
    assert internal.decide_reports({0: 70, 1: 30}, 100, 101).cut is None
    assert internal.decide_reports({0: 70, 1: 30}, 100, 100).cut == {0: 70, 1: 30}
    assert internal.decide_reports({0: 0, 1: 0}, 0, 0).cut is None
