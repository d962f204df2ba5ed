"""The two rules behind one interface: fold a report into what is known of a stream, decide, say when to decide again.

The decisions themselves are the domain's; here stands only what a query needs to carry them out alike. Pure.
"""

from collections.abc import Hashable
from typing import Any, ClassVar, Protocol

import msgspec

from sluice.domain.policy import requests, retention, scaling
from sluice.domain.policy.retention import RetentionCode, RetentionState
from sluice.domain.policy.scaling import ScaleCode, ScalingState
from sluice.domain.stream.commands import DecisionKind, ScaleStream, TruncateStream
from sluice.domain.stream.retention import RetentionReport
from sluice.domain.stream.traffic import ScaleReport

DAY_MS = 24 * 3600 * 1000
GONE_MS = 30 * DAY_MS
"""A stream with a retention policy that was not sampled for so long is gone; what is shorter may be an outage."""


class Verdict(msgspec.Struct, frozen=True):
    """A decision in the form that all rules share; `request` is an id and a command, None for nothing to do.

    `passing` are decisions that only say that an earlier one is under way; `numbers` are those that it rests on.
    """

    code: str
    reason: str
    passing: bool = False
    request: tuple[str, ScaleStream | TruncateStream] | None = None
    numbers: dict[str, int] = {}


class Rule(Hashable, Protocol):
    """`state_type` is what is known of a stream, `report_type` what is reported on it; times in epoch ms.

    Both types have `scope`, `stream`, `stream_id` and `creation_id`.
    """

    kind: ClassVar[DecisionKind]
    report_type: ClassVar[type[Any]]
    state_type: ClassVar[Any]

    def observe(self, state: Any | None, report: Any, now: int) -> Any | None: ...

    def decide(self, state: Any, now: int) -> tuple[Verdict, Any]:
        """The decision, and what is known once it is on its way."""
        ...

    def wake_at(self, state: Any, now: int) -> int | None:
        """When to decide again even without a report; None once the stream may be forgotten."""
        ...


class ScaleRule(msgspec.Struct, frozen=True):
    """Splits and merges; a stream is forgotten when nothing that is known of it can lead to anything any more."""

    kind: ClassVar = DecisionKind.SCALE
    report_type: ClassVar = ScaleReport
    state_type: ClassVar = ScalingState
    cooldown_ms: int = scaling.COOLDOWN_MS

    def observe(self, state: ScalingState | None, report: ScaleReport, now: int) -> ScalingState | None:
        return scaling.observe(state, report, now)

    def decide(self, state: ScalingState, now: int) -> tuple[Verdict, ScalingState]:
        decision = scaling.decide_scaling(state, now, self.cooldown_ms)
        verdict = Verdict(
            decision.code.value,
            decision.reason,
            decision.code is ScaleCode.COOLING_DOWN,
            requests.scale(state, decision, now),
            scaling.numbers(state, decision, now),
        )
        return verdict, scaling.recorded(state, decision, now)

    def wake_at(self, state: ScalingState, now: int) -> int | None:
        muted = scaling.muted_until(state, now, self.cooldown_ms)
        ends = scaling.of_use_until(state, now)
        if ends:
            return muted if muted > now else min(ends)
        # Reports that are late must still meet what was decided.
        last = max(muted, state.last_report[1] + scaling.VALID_MS)
        return last if last > now else None


class RetentionRule(msgspec.Struct, frozen=True):
    """Truncations, none by an old report; a stream is forgotten when it was not reported on for a while.

    One with a policy is sampled each minute, so silence of 30 days means that it is gone. One without is remembered for
    a day, so that no late report revives its policy.
    """

    kind: ClassVar = DecisionKind.RETENTION
    report_type: ClassVar = RetentionReport
    state_type: ClassVar = RetentionState
    tick_ms: int = 60_000
    pause_ms: int = retention.PAUSE_MS

    def observe(self, state: RetentionState | None, report: RetentionReport, now: int) -> RetentionState | None:
        if retention.tells_rates_only(state, report):
            return state
        return msgspec.structs.replace(retention.observe(state, report), received_at=now)

    def decide(self, state: RetentionState, now: int) -> tuple[Verdict, RetentionState]:
        decision = retention.decide_held(state, now, self.pause_ms)
        verdict = Verdict(
            decision.code.value,
            decision.reason,
            decision.code in (RetentionCode.REQUESTED, RetentionCode.PAUSED),
            requests.truncation(state, decision, now),
            retention.numbers(state, decision),
        )
        return verdict, retention.recorded(state, decision, now)

    def wake_at(self, state: RetentionState, now: int) -> int | None:
        if state.policy is not None and retention.holds(state, now):
            return now + self.tick_ms
        forget = (state.received_at or state.last_report[0]) + (DAY_MS if state.policy is None else GONE_MS)
        return forget if forget > now else None


class Rules(msgspec.Struct, frozen=True):
    """Both rules as a system is configured: its cool-down, its ticks and its pauses."""

    scale: ScaleRule = ScaleRule()
    retention: RetentionRule = RetentionRule()

    @classmethod
    def of(cls, cooldown_s: float, tick_s: float, pause_s: float) -> "Rules":
        """The rules with the settings of a service; see PolicySettings."""
        return cls(ScaleRule(round(cooldown_s * 1000)), RetentionRule(round(tick_s * 1000), round(pause_s * 1000)))
