"""What another policy would have come to: where it first differs, what it would have kept, how far that holds."""

import msgspec
from support.decisions import POLICY, halves, hot, sampled

from sluice.domain.config import RetentionPolicy, RetentionType
from sluice.domain.stream.commands import DecisionKind
from sluice.domain.stream.retention import RetentionReport
from sluice.domain.stream.traffic import Direction, ScaleReport
from sluice.policies.policy_parser import NO_TARGET
from sluice.policies.replay import OtherScaling, Policy, Record, replay_of, replayed
from sluice.policies.rules import RetentionRule, Rules
from sluice.policies.what_if import (
    BEFORE_SPAN,
    MAX_POINTS,
    NO_DIFFERENCE,
    NO_REPORTS,
    ONLY_UP_TO,
    WhatIf,
    WhatIfReplay,
)

NOW = 1_700_000_000_000
MINUTE = 60_000
RULES = Rules(retention=RetentionRule(pause_ms=0))


def ask(policy: Policy, *reports: ScaleReport | RetentionReport, since: int = NOW, minutes: int = 60) -> WhatIf:
    replay = WhatIfReplay(RULES, policy, since, NOW + minutes * MINUTE)
    for report in reports:
        replay.observe(Record(report.at, msgspec.json.encode(report)))
    found = replay.result([])
    # Nothing is recorded here, which the answer says where something would have been done anyway.
    return msgspec.structs.replace(found, notes=[note for note in found.notes if "are recorded" not in note])


MIN_TWO = msgspec.structs.replace(POLICY, min_segments=2)
COLD = [halves("x", NOW + MINUTE, segment, Direction.DOWN) for segment in (0, 1)]


def test_the_first_difference_of_a_scaling_is_where_it_first_acts_otherwise() -> None:
    later = hot("x", NOW + 20 * MINUTE, splits=8, epoch=1, epoch_since=NOW + MINUTE, segment=1 << 32)
    found = ask(OtherScaling(scale_factor=4), *COLD, later)
    assert [(one.code, one.segments, one.acts) for one in found.would if one.acts] == [
        ("merge", 1, True),
        ("split", 4, True),
    ]
    assert found.first_difference == NOW + 20 * MINUTE
    assert found.notes == [ONLY_UP_TO, NO_TARGET] and found.kept is None and found.kind is DecisionKind.SCALE


def test_another_reason_for_doing_nothing_is_no_difference() -> None:
    found = ask(
        OtherScaling(min_segments=3), *(halves("x", NOW, s, Direction.DOWN, policy=MIN_TWO) for s in (0, 1)), minutes=5
    )
    assert [one.code for one in found.would] == ["at-minimum"]
    assert found.first_difference is None and found.notes == [NO_DIFFERENCE, NO_TARGET]


def test_a_difference_before_the_span_says_that_nothing_is_certain() -> None:
    found = ask(OtherScaling(min_segments=2), *COLD, since=NOW + 30 * MINUTE)
    assert found.first_difference == NOW + MINUTE and found.notes[0] == BEFORE_SPAN
    assert [one.at for one in found.would if one.at < NOW + 30 * MINUTE] == []


def test_the_bytes_that_a_retention_would_have_kept_stand_beside_those_that_were() -> None:
    reports = [sampled("x", NOW + i * MINUTE, 100 * i) for i in range(1, 31)]
    found = ask(RetentionPolicy(RetentionType.SIZE, 500, 1 << 62), *reports, minutes=31)
    assert found.kept is not None
    assert found.kept.at == [report.at for report in reports]
    # Nothing was truncated, although the policy in force would have kept 100 bytes.
    assert found.kept.happened == [100 * i for i in range(1, 31)]
    assert found.kept.would == [min(100 * i, 500) for i in range(1, 31)]
    assert found.first_difference == NOW + 2 * MINUTE


def test_the_lines_of_kept_bytes_are_thinned_and_end_where_the_reports_do() -> None:
    reports = [sampled("x", NOW + i, 100 + i) for i in range(2 * MAX_POINTS + 1)]
    kept = ask(RetentionPolicy(RetentionType.SIZE, 1 << 40, 1 << 62), *reports).kept
    assert kept is not None
    assert len(kept.at) <= MAX_POINTS and kept.at == sorted(kept.at) and kept.at[-1] == reports[-1].at


def test_it_is_what_the_batch_job_says_of_the_same_reports() -> None:
    for policy, reports in (
        (OtherScaling(scale_factor=3, cooldown_ms=30_000), [*COLD, hot("x", NOW + 5 * MINUTE, splits=8)]),
        (
            RetentionPolicy(RetentionType.TIME, 5 * MINUTE, 1 << 62),
            [sampled("x", NOW + i * MINUTE, i) for i in range(9)],
        ),
    ):
        records = [Record(report.at, msgspec.json.encode(report)) for report in reports]
        rows = replayed(replay_of(RULES, policy), records, NOW + 60 * MINUTE)
        found = ask(policy, *reports)
        assert [(one.at, one.code, one.reason, one.acts) for one in found.would] == [
            (row.at, row.code, row.reason, bool(row.request)) for row in rows
        ]


def test_samples_of_a_stream_without_a_retention_are_no_reports_to_replay() -> None:
    samples = [sampled("x", NOW + i * MINUTE, 100 * i, policy=None) for i in range(3)]
    found = ask(RetentionPolicy(RetentionType.SIZE, 50, 1 << 62), *samples)
    assert found.notes == [NO_REPORTS] and found.kept is not None and found.kept.at == []


def test_without_reports_there_is_nothing_to_say() -> None:
    found = ask(OtherScaling(min_segments=2))
    assert found.would == [] and found.notes == [NO_REPORTS]
