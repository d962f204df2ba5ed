"""The numbers that a decision rests on, as operators read them beside its reason."""

from typing import Any

from support.decisions import POLICY, halves, hot, sampled

from sluice.domain.config import RetentionPolicy, RetentionType, ScaleType
from sluice.domain.policy.retention import NO_MAXIMUM
from sluice.domain.stream.retention import SizedCut
from sluice.domain.stream.traffic import Direction, PolicyInForce
from sluice.policies.rules import RetentionRule, Rule, ScaleRule, Verdict

NOW = 1_700_000_000_000
MINUTE = 60_000


def verdict(rule: Rule, *reports: Any) -> Verdict:
    state = None
    for report in reports:
        state = rule.observe(state, report, report.at)
    return rule.decide(state, reports[-1].at)[0]


def test_a_split_has_its_segments_before_and_after_and_the_policy() -> None:
    found = verdict(ScaleRule(), hot("x", NOW, splits=8))
    assert found.code == "split"
    assert found.numbers == {
        "segments": 1, "segmentsAfter": 2, "hot": 1, "cold": 0, "targetEvents": 10, "minSegments": 1,
    }  # fmt: skip


def test_what_does_nothing_has_as_many_segments_after_it() -> None:
    by_bytes = PolicyInForce(ScaleType.KBYTES, 7, POLICY.scale_factor, 2)
    found = verdict(ScaleRule(), *(halves("x", NOW, s, Direction.DOWN, policy=by_bytes) for s in (0, 1)))
    assert found.code == "at-minimum"
    assert found.numbers == {
        "segments": 2, "segmentsAfter": 2, "hot": 0, "cold": 2, "targetKBytes": 7, "minSegments": 2,
    }  # fmt: skip


def test_a_truncation_has_the_bytes_that_are_held_and_those_that_it_keeps() -> None:
    policy = RetentionPolicy(RetentionType.SIZE, 100, NO_MAXIMUM)
    reports = [sampled("x", NOW + i * MINUTE, 100 * i, policy, head=SizedCut({0: 50}, 50)) for i in range(1, 6)]
    found = verdict(RetentionRule(), *reports)
    assert found.request is not None
    assert found.numbers == {"minimumBytes": 100, "heldBytes": 450, "keptBytes": 100}


def test_what_readers_hold_has_what_they_have_yet_to_read() -> None:
    policy = RetentionPolicy(RetentionType.TIME, 0, 60 * MINUTE)
    reader = SizedCut({0: 20}, 20)
    reports = [
        sampled("x", NOW + i * MINUTE, 100 * i, policy, subscribers={"s/g": reader}, bound=reader) for i in range(1, 4)
    ]
    assert verdict(RetentionRule(), *reports).numbers == {
        "minimumMs": 0, "maximumMs": 60 * MINUTE, "heldBytes": 300, "keptBytes": 280, "unreadBytes": 280,
    }  # fmt: skip
