"""What would have been decided under another policy: reports of the past folded again.

Retention is replayed with the head where the other policy would have put it; of subscribers that a truncation has since
forced on, the reports no longer say where they stood. Scaling cannot be followed any further than the next scale, for
the segments that would have come of it were never there to be reported on: each decision is one on the stream as it
was at that moment, the cool-down counted from the scales that would have been.
"""

from collections.abc import Iterable, Iterator

import msgspec

from sluice.domain.config import RetentionPolicy, ScaleType
from sluice.domain.policy import retention, scaling
from sluice.domain.policy.retention import PAUSE_MS, RetentionDecision, RetentionState
from sluice.domain.policy.scaling import COOLDOWN_MS, ScaleDecision, ScalingState
from sluice.domain.stream.retention import RetentionReport
from sluice.domain.stream.traffic import Direction, PolicyInForce, ScaleReport


class Retained(msgspec.Struct, frozen=True):
    """A decision on retention that would have been taken at `at`, epoch ms."""

    at: int
    decision: RetentionDecision


class Rescaled(msgspec.Struct, frozen=True):
    """A decision on scaling that would have been taken at `at`, epoch ms."""

    at: int
    decision: ScaleDecision


def retained(
    reports: Iterable[RetentionReport], policy: RetentionPolicy | None, now: int, pause_ms: int = PAUSE_MS
) -> Iterator[Retained]:
    """The truncations that the reports on a stream, in the order of their time, would have led to; last, that of `now`.

    Nothing comes of it if no report is at hand.
    """
    state: RetentionState | None = None
    for report in reports:
        state = retention.observe(state, _moved(report, policy, state))
        decision = retention.decide_retention(state, report.at, pause_ms)
        state = retention.noted(state, decision, report.at)
        if decision.target is not None:
            yield Retained(report.at, decision)
    if state is not None:
        yield Retained(now, retention.decide_retention(state, now, pause_ms))


def _moved(report: RetentionReport, policy: RetentionPolicy | None, state: RetentionState | None) -> RetentionReport:
    """The report as it would have been; one that tells of the stream's end stays."""
    if not report.incarnation:
        return report
    head = report.head
    if state is not None and state.incarnation == report.incarnation:
        head = state.asked.target if state.asked is not None else state.head
    return msgspec.structs.replace(report, policy=policy, head=head)


def rescaled(
    reports: Iterable[ScaleReport], policy: PolicyInForce, now: int, cooldown_ms: int = COOLDOWN_MS
) -> Iterator[Rescaled]:
    """The scales that the reports on a stream, in the order of their time, would have led to; last, that of `now`."""
    state: ScalingState | None = None
    for report in reports:
        translated = _translated(report, policy)
        if translated is None:
            continue
        state = scaling.observe(state, translated, report.at)
        if state is not None:
            decision = scaling.decide_scaling(state, report.at, cooldown_ms)
            state = scaling.noted(state, decision, report.at)
            if decision.seals:
                yield Rescaled(report.at, decision)
    if state is not None:
        yield Rescaled(now, scaling.decide_scaling(state, now, cooldown_ms))


def _translated(report: ScaleReport, policy: PolicyInForce) -> ScaleReport | None:
    """The report that the segment's load would surely have led to; None if that cannot be told from this one.

    A hot segment has at least as many times the target as it is to be split into, but for two, the least there is: then
    all that is known is that it is above. A cold one is below half of the target. Rates in another unit say nothing.
    """
    splits, was, target = report.splits, report.policy.target_rate, policy.target_rate
    if policy.scale_type is not ScaleType.FIXED and not report.silent:
        if policy.scale_type is not report.policy.scale_type:
            return None
        if report.direction is Direction.DOWN and target < was:
            return None
        if report.direction is Direction.UP and target != was:
            least = was * (splits if splits > 2 else 1)
            if least < target:
                return None
            splits = max(2, least // max(target, 1))
    return msgspec.structs.replace(report, policy=policy, splits=splits)
